"""The way out: every send carries an id of its own, so one whose answer was lost may be sent again."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Final

import msgspec
import structlog

from bridges.feishu.inbound import Route
from bridges.feishu.rest import Answer, BadSecret, Posted, Refused, Rest
from bridges.http import CallFailed, Unreached
from bridges.message import NotSent, RetryAfter, SendOutcome, Sent, SentId
from harness_client.clock import Clock

TRIES: Final = 3
"""Of one message whose answer is lost."""

LOST_SECONDS: Final = 1.0
"""Before the next of them."""

LONGEST_WAIT: Final = 10.0
"""The most that such a message waits where the platform asks for a wait; then nobody knows what became of it."""

UNREACHED_SECONDS: Final = 2.0
"""When to try again what never left this machine."""

SLOWER_SECONDS: Final = 2.0
"""How long to wait when the platform says "too fast" and not until when."""

_OUTCOMES: Final[dict[int, NotSent]] = {
    **dict.fromkeys((230002, 230013, 230018, 230035, 230053), NotSent.BLOCKED),  # not in the chat, not for this person
    230025: NotSent.TOO_LONG,
}
_TOO_FAST: Final = frozenset({99991400, 230020, 230006, 11232})
"""Of the app, and of the chat with all its bots; the first says how long to wait."""

_MENTION: Final = re.compile(r"<(?=/?at\b)", re.IGNORECASE)


class Outbox:
    """Sends for one bot."""

    def __init__(self, rest: Rest, clock: Clock) -> None:
        self._rest = rest
        self._clock = clock
        self._log = structlog.get_logger(__name__)

    async def send(self, route: Route, text: str) -> SendOutcome:
        """Send one message of plain text."""
        return await self.post(route, "text", {"text": harmless(text)})

    async def post(self, route: Route, kind: str, content: Mapping[str, object]) -> SendOutcome:
        """Send one message of any kind, in its topic if it has one."""
        body = {"msg_type": kind, "content": msgspec.json.encode(content).decode(), "uuid": uuid.uuid4().hex}
        lost = False
        for _ in range(TRIES):
            outcome = await self._try(route, body)
            if isinstance(outcome, Sent) or not (lost or outcome is NotSent.UNKNOWN):
                return outcome
            lost = True
            wait = outcome.seconds if isinstance(outcome, RetryAfter) else LOST_SECONDS
            await self._clock.sleep(min(wait, LONGEST_WAIT))
        return NotSent.UNKNOWN

    async def withdraw(self, message: SentId) -> bool:
        """Take back a message of ours; return whether it is gone."""
        try:
            await self._rest.call("DELETE", "/im/v1/messages/{}", Answer, message)
        except (CallFailed, Refused, BadSecret) as error:
            self._log.warning("not withdrawn", error=str(error))
            return False
        return True

    async def _try(self, route: Route, body: dict[str, str]) -> SendOutcome:
        try:
            posted = await self._post(route, body)
        except (CallFailed, Refused, BadSecret) as error:
            self._log.warning("not sent", error=str(error))
            return outcome_of(error)
        return Sent(SentId(posted.data.message_id) if posted.data else None)

    async def _post(self, route: Route, body: dict[str, str]) -> Posted:
        if route.message is not None:
            reply = {**body, "reply_in_thread": True}
            return await self._rest.call("POST", "/im/v1/messages/{}/reply", Posted, route.message, body=reply)
        new = {**body, "receive_id": route.chat}
        return await self._rest.call("POST", "/im/v1/messages", Posted, body=new, params={"receive_id_type": "chat_id"})


def outcome_of(error: CallFailed | Refused | BadSecret) -> SendOutcome:
    """Return what a call that failed means for what it was to send."""
    if isinstance(error, Unreached):
        return RetryAfter(UNREACHED_SECONDS)
    if isinstance(error, CallFailed):
        return NotSent.UNKNOWN
    if isinstance(error, BadSecret) or error.unauthorized:
        return NotSent.REAUTHENTICATE
    if error.status == 429 or error.code in _TOO_FAST:
        return RetryAfter(SLOWER_SECONDS if error.seconds is None else error.seconds)
    if error.status >= 500:
        return NotSent.UNKNOWN
    return _OUTCOMES.get(error.code, NotSent.REJECTED)


def harmless(text: str) -> str:
    """Return ``text`` with its mentions disarmed, its length kept, and every character one that can be sent."""
    return _MENTION.sub("＜", text.encode("utf-8", "replace").decode())

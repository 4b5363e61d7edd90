"""The way out: the conversation's webhook while it lasts, then the API. Plain text both ways."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec
import structlog

from bridges.dingtalk.inbound import Route
from bridges.dingtalk.rest import BadSecret, Posted, Refused, Rest
from bridges.http import CallFailed, Unreached
from bridges.message import NotSent, RetryAfter, SendOutcome, Sent, SentId
from bridges.pace import Pace, Window
from bridges.trusted import UntrustedHost
from harness_client.clock import Clock

WINDOW: Final = Window(20, 60.0)
"""Messages to one conversation."""

MARGIN_SECONDS: Final = 60.0
"""So long before its end a webhook is not used any more."""

UNREACHED_SECONDS: Final = 2.0
SLOWER_SECONDS: Final = 10.0
"""Before the next try where the platform says "slower" and not how much."""

_WEBHOOK_TOO_FAST: Final = frozenset({"130101", "130102"})
_GONE: Final = re.compile("notexist|notfound|invalidstaff|notingroup|robotnotin|resignedstaff", re.IGNORECASE)
"""In the code of a refusal: the person or the group cannot be reached (any more)."""

_UNSENDABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


class Outbox:
    """Sends for one bot."""

    def __init__(self, rest: Rest, clock: Clock) -> None:
        self._rest = rest
        self._clock = clock
        self._pace = Pace(clock, WINDOW)
        self._log = structlog.get_logger(__name__)

    async def send(self, route: Route, text: str) -> SendOutcome:
        """Send one message."""
        wait = self._pace.wait(route.chat)
        if wait > 0:
            return RetryAfter(wait)
        self._pace.count(route.chat)
        content = sendable(text)
        outcome = await self._by_webhook(route, content)
        return await self._by_api(route, content) if outcome is None else outcome

    async def _by_webhook(self, route: Route, content: str) -> SendOutcome | None:
        """Reply in the session; None when that cannot be and nothing was sent."""
        if not route.webhook or route.until - MARGIN_SECONDS < self._clock.time():
            return None
        body = {"msgtype": "text", "text": {"content": content}, "at": {"isAtAll": False}}
        try:
            await self._rest.webhook(route.webhook, body)
        except UntrustedHost:
            self._log.warning("a webhook that is not on a host of DingTalk was not used")
            return None
        except Refused as error:
            self._log.warning("not sent by webhook", error=str(error))
            if error.too_fast or error.code in _WEBHOOK_TOO_FAST:
                return RetryAfter(error.seconds or SLOWER_SECONDS)
            return None
        except CallFailed as error:
            self._log.warning("not sent by webhook", error=str(error))
            return outcome_of(error)
        return Sent(None)

    async def _by_api(self, route: Route, content: str) -> SendOutcome:
        """Write as the bot, whenever."""
        if route.user == "":
            return NotSent.WINDOW_CLOSED
        if route.user is None:
            path, to = "/v1.0/robot/groupMessages/send", {"openConversationId": route.chat}
            return await self._post(path, to, route, content)
        return await self._post("/v1.0/robot/oToMessages/batchSend", {"userIds": [route.user]}, route, content)

    async def _post(self, path: str, to: Mapping[str, object], route: Route, content: str) -> SendOutcome:
        message = {
            "robotCode": route.robot,
            "msgKey": "sampleText",
            "msgParam": msgspec.json.encode({"content": content}).decode(),
        }
        try:
            posted = await self._rest.call("POST", path, Posted, {**message, **to})
        except (CallFailed, Refused, BadSecret) as error:
            self._log.warning("not sent", error=str(error) or type(error).__name__)
            return outcome_of(error)
        if posted.invalid_staff_id_list:
            return NotSent.BLOCKED
        if posted.flow_controlled_staff_id_list:
            return RetryAfter(SLOWER_SECONDS)
        return Sent(SentId(posted.process_query_key) if posted.process_query_key else None)


def outcome_of(error: CallFailed | Refused | BadSecret) -> SendOutcome:
    """Return what a call that failed means for what it was to send."""
    if isinstance(error, CallFailed):
        return RetryAfter(UNREACHED_SECONDS) if isinstance(error, Unreached) else NotSent.UNKNOWN
    if isinstance(error, BadSecret) or error.unauthorized:
        return NotSent.REAUTHENTICATE
    if error.too_fast:
        return RetryAfter(error.seconds or SLOWER_SECONDS)
    if error.status == 413:
        return NotSent.TOO_LONG
    if _GONE.search(error.code):
        return NotSent.BLOCKED
    return NotSent.UNKNOWN if error.status >= 500 else NotSent.REJECTED


def sendable(text: str) -> str:
    """Return ``text`` with what no message can hold left out."""
    return _UNSENDABLE.sub("", text).encode("utf-8", "replace").decode()

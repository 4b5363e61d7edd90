"""The way out: each send is a numbered reply to a message of the chat, and what no message allows waits for the next.

The number makes a reply unique, so one whose answer was lost may be sent again: the platform shows it once.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import structlog

from bridges.http import CallFailed, Unreached
from bridges.message import NotSent, RetryAfter, SendOutcome, Sent, SentId
from bridges.qq.chats import Chat, Ticket
from bridges.qq.harmless import dotless, harmless
from bridges.qq.inbound import Place, Route
from bridges.qq.rest import BadSecret, Posted, Refused, Rest
from bridges.records import Records
from harness_client.clock import Clock

TRIES: Final = 4
"""Of one reply: its answer may be lost, its number taken, its text looked at as an address."""

UNREACHED_SECONDS: Final = 2.0
SLOWER_SECONDS: Final = 10.0
"""Before the next try where the platform asks for less and does not say how much."""

_TAKEN: Final = frozenset({40054005})
"""This number was used for a reply to this message."""

_ADDRESS: Final = frozenset({40054010, 304003})
"""There is something in the text that looks like an address."""

_OVER: Final = frozenset({22009, 304027, 40034024, 40034025, 40034102})
"""No reply to this message any more: too many, too late, or not of this chat."""

_TOO_LONG: Final = frozenset({40034006})
_TOO_FAST: Final = frozenset({100001, 11281, 20028})

_NUMBERED: Final = frozenset({Place.USER, Place.GROUP})
"""Where the platform numbers replies."""

_PATHS: Final = {
    Place.USER: "/v2/users/{}/messages",
    Place.GROUP: "/v2/groups/{}/messages",
    Place.GUILD: "/channels/{}/messages",
    Place.GUILD_DIRECT: "/dms/{}/messages",
}


class _Trouble(Enum):
    """What one try may meet that another one may mend."""

    TAKEN = auto()
    ADDRESS = auto()
    LOST = auto()


class Outbox:
    """Sends for one bot."""

    def __init__(self, rest: Rest, chats: Records[Chat], clock: Clock) -> None:
        self._rest = rest
        self._chats = chats
        self._clock = clock
        self._log = structlog.get_logger(__name__)

    async def send(self, route: Route, text: str, *, aside: bool = False) -> SendOutcome:
        """Send one message now, or keep it. What is said ``aside`` leaves the last reply alone, and is not kept."""
        chat = await self._chats.get(chat_name(route))
        async with chat.sending:
            outcome = await self._reply(chat, route, text, route.message, spare=aside)
            if outcome is not None:
                return outcome
            return NotSent.WINDOW_CLOSED if aside else await chat.saved.backlog.keep(text, self._chats, chat)

    async def left(self, route: Route) -> int:
        """Return how many messages would be sent now rather than kept. Raises OSError."""
        return (await self._chats.get(chat_name(route))).left(route.message, self._clock.time())

    async def send_waiting(self, chat: Chat, route: Route) -> None:
        """Send what waited for a message; each message keeps a reply for its own answer."""

        async def put(text: str) -> SendOutcome | None:
            outcome = await self._reply(chat, route, text, None, spare=True)
            return None if isinstance(outcome, RetryAfter) else outcome

        def room() -> bool:
            return chat.ticket(None, self._clock.time(), spare=True) is not None

        async with chat.sending:
            await chat.saved.backlog.send(put, room, lambda: self._chats.note(chat))

    async def _reply(
        self, chat: Chat, route: Route, text: str, message: str | None, *, spare: bool
    ) -> SendOutcome | None:
        """Send a reply to ``message`` or another of the chat; None when none of them may be replied to."""
        while ticket := chat.ticket(message, self._clock.time(), spare=spare):
            ticket.left -= 1
            outcome = await self._send(chat, ticket, route, text)
            if outcome is None:
                ticket.left = 0
                continue
            if not isinstance(outcome, Sent) and outcome is not NotSent.UNKNOWN:
                ticket.left += 1
            return outcome
        await self._chats.note(chat)
        return None

    async def _send(self, chat: Chat, ticket: Ticket, route: Route, text: str) -> SendOutcome | None:
        """Send one reply, again where that is safe; None when the message may not be replied to any more."""
        content, lost = harmless(text), False
        for _ in range(TRIES):
            if not lost:
                ticket.seq += 1
                await self._chats.note(chat)
            match await self._try(route, ticket, content):
                case _Trouble.TAKEN if lost:
                    return Sent(None)
                case _Trouble.TAKEN:
                    pass  # by a process whose last count was not written down
                case _Trouble.ADDRESS if content != dotless(text):
                    content, lost = dotless(text), False
                case _Trouble.ADDRESS:
                    return NotSent.REJECTED
                case _Trouble.LOST if not lost and route.place in _NUMBERED:
                    lost = True
                case Sent() as sent:
                    return sent
                case outcome:
                    return NotSent.UNKNOWN if lost or outcome is _Trouble.LOST else outcome
        return NotSent.UNKNOWN if lost else None

    async def _try(self, route: Route, ticket: Ticket, content: str) -> SendOutcome | _Trouble | None:
        try:
            posted = await self._post(route, ticket, content)
        except Refused as error:
            self._log.warning("not sent", error=str(error))
            if error.code in _TAKEN:
                return _Trouble.TAKEN
            return _Trouble.ADDRESS if error.code in _ADDRESS else outcome_of(error)
        except CallFailed as error:
            self._log.warning("not sent", error=str(error))
            return RetryAfter(UNREACHED_SECONDS) if isinstance(error, Unreached) else _Trouble.LOST
        except BadSecret:
            return NotSent.REAUTHENTICATE
        return Sent(SentId(posted.id) if posted.id else None)

    async def _post(self, route: Route, ticket: Ticket, content: str) -> Posted:
        body: dict[str, object] = {"content": content, "msg_id": ticket.message}
        if route.place in _NUMBERED:
            body |= {"msg_type": 0, "msg_seq": ticket.seq}
        return await self._rest.call("POST", _PATHS[route.place].format(route.chat), Posted, body)


def chat_name(route: Route) -> str:
    """Return the name of the chat's record."""
    return f"{route.place}:{route.chat}"


def outcome_of(error: Refused) -> SendOutcome | None:
    """Return what a refusal means, by its code and then by its status; None when the message takes no more replies."""
    if error.code in _OVER:
        return None
    if error.unauthorized:
        return NotSent.REAUTHENTICATE
    if error.status == 429 or error.code in _TOO_FAST:
        return RetryAfter(error.seconds or SLOWER_SECONDS)
    if error.code in _TOO_LONG or error.status == 413:
        return NotSent.TOO_LONG
    if error.status == 403:
        return NotSent.BLOCKED
    return NotSent.UNKNOWN if error.status >= 500 else NotSent.REJECTED

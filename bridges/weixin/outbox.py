"""The way out: paced, counted, and what the platform does not take now kept for when the person writes again.

The platform allows about ten replies to a message and no more than a few in a row, and says no to all of it with one
code. So the channel counts, and a message held back in spite of that is tried once more after a rest.
"""

from __future__ import annotations

import uuid
from typing import Final

import structlog

from bridges.http import CallFailed, Unreached
from bridges.message import NotSent, RetryAfter, SendOutcome, Sent, SentId
from bridges.records import Records
from bridges.weixin.peers import Peer
from bridges.weixin.wire import HELD_BACK, LOGIN_GONE, ChatConfig, Refused, SendResult, Wire
from harness_client.clock import Clock

REPLIES: Final = 9
"""To one message."""

SPARED: Final = 3
"""Of these are left to the new message's own reply when older ones that waited are sent first."""

GAP_SECONDS: Final = 1.5
"""Between two messages to one person."""

REST_SECONDS: Final = 30.0
"""Before a message that was held back is tried again."""

HELD_BACK_LIMIT: Final = 2
"""So many in a row, and nothing more is tried until the person writes."""

UNREACHED_SECONDS: Final = 2.0
"""Before a message is tried again for which there was no connection."""

_REFUSALS: Final[dict[int, SendOutcome | None]] = {
    HELD_BACK: None,
    LOGIN_GONE: NotSent.REAUTHENTICATE,
    401: NotSent.REAUTHENTICATE,
    413: NotSent.TOO_LONG,
    429: RetryAfter(REST_SECONDS),
}
_TYPING, _DONE = 1, 2
_TYPING_CALL_SECONDS: Final = 10.0


class Outbox:
    """Sends for one account over one wire."""

    def __init__(self, wire: Wire, peers: Records[Peer], clock: Clock) -> None:
        self._wire = wire
        self._peers = peers
        self._clock = clock
        self._log = structlog.get_logger(__name__)

    async def send(self, user: str, token: str, text: str, *, aside: bool = False) -> SendOutcome:
        """Send one message now, or keep it; ``token`` serves a person of whom nothing is known.

        What is said ``aside`` leaves the last reply alone, and is not kept.
        """
        peer = await self._peers.get(user)
        async with peer.sending:
            allowed = REPLIES - 1 if aside else REPLIES
            if peer.saved.sent < allowed and peer.held_back < HELD_BACK_LIMIT:
                outcome = await self._put(peer, token, text)
                if outcome is not None:
                    return outcome
                if peer.held_back < HELD_BACK_LIMIT:
                    return RetryAfter(REST_SECONDS)
            return NotSent.WINDOW_CLOSED if aside else await peer.saved.backlog.keep(text, self._peers, peer)

    async def left(self, user: str) -> int:
        """Return how many messages would be sent now rather than kept. Raises OSError."""
        peer = await self._peers.get(user)
        return max(0, REPLIES - peer.saved.sent) if peer.held_back < HELD_BACK_LIMIT else 0

    async def send_waiting(self, peer: Peer) -> None:
        """Send what waited for the person to write."""

        async def put(text: str) -> SendOutcome | None:
            outcome = await self._put(peer, "", text)
            return None if isinstance(outcome, RetryAfter) else outcome

        async with peer.sending:
            await peer.saved.backlog.send(
                put, lambda: peer.saved.sent < REPLIES - SPARED, lambda: self._peers.note(peer)
            )

    async def type(self, user: str, token: str) -> None:
        """Show that the bot is at work; best effort."""
        try:
            peer = await self._peers.get(user)
            if not peer.ticket:
                body = {"ilink_user_id": user, "context_token": peer.saved.token or token}
                config = await self._wire.post("getconfig", body, ChatConfig, seconds=_TYPING_CALL_SECONDS)
                peer.ticket = config.typing_ticket or ""
            peer.typing = True
            await self._show(peer, _TYPING)
        except OSError as error:
            self._log.debug("no typing sign", error=type(error).__name__)
        except CallFailed as error:
            self._log.debug("no typing sign", error=str(error))

    async def _put(self, peer: Peer, token: str, text: str) -> SendOutcome | None:
        """Send, in the person's pace; None when the platform holds the message back. The count is kept first."""
        await self._clock.sleep(peer.next_send - self._clock.monotonic())
        counted = peer.saved
        counted.sent += 1
        await self._peers.note(peer)
        message = {
            "from_user_id": "",
            "to_user_id": peer.name,
            "client_id": uuid.uuid4().hex,
            "message_type": 2,
            "message_state": 2,
            "item_list": [{"type": 1, "text_item": {"text": text}}],
            "context_token": peer.saved.token or token,
        }
        try:
            result = await self._wire.post("sendmessage", {"msg": message}, SendResult)
        except CallFailed as error:
            self._log.warning("not sent", error=str(error))
            outcome = outcome_of(error)
            if isinstance(error, Unreached):
                counted.sent -= 1
            if outcome is None:
                peer.held_back += 1
            return outcome
        finally:
            peer.next_send = self._clock.monotonic() + GAP_SECONDS
        peer.held_back = 0
        await self._show(peer, _DONE)
        return Sent(SentId(str(result.message_id)) if result.message_id else None)

    async def _show(self, peer: Peer, status: int) -> None:
        """Turn the typing sign on or off where there is one."""
        if not peer.typing or not peer.ticket:
            return
        peer.typing = status == _TYPING
        try:
            body = {"ilink_user_id": peer.name, "typing_ticket": peer.ticket, "status": status}
            await self._wire.post("sendtyping", body, SendResult, seconds=_TYPING_CALL_SECONDS)
        except CallFailed as error:
            peer.ticket = ""
            self._log.debug("no typing sign", error=str(error))


def outcome_of(error: CallFailed) -> SendOutcome | None:
    """Return what came of a send by how its call failed; None when the platform holds the message back."""
    match error:
        case Unreached():
            return RetryAfter(UNREACHED_SECONDS)
        case Refused():
            return _REFUSALS.get(error.code, NotSent.REJECTED)
        case _:
            return NotSent.UNKNOWN

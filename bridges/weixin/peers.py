"""What is kept for each person: the newest context token, the replies it still allows, and what waits for the next."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

import msgspec
import structlog

from bridges.backlog import Backlog
from bridges.message import Cursors

REMEMBERED: Final = 1024
"""People in memory; the others are read anew."""


class Saved(msgspec.Struct):
    """The part that outlives the process. ``at`` is when the person wrote, in milliseconds since the epoch."""

    token: str = ""
    at: int = 0
    sent: int = 0
    """Replies since then."""
    backlog: Backlog = msgspec.field(default_factory=Backlog)


class Peer:
    """One person. Hold ``sending`` while sending to them: messages go out one after the other."""

    __slots__ = ("held_back", "next_send", "saved", "sending", "ticket", "typing", "user")

    def __init__(self, user: str, saved: Saved) -> None:
        self.user = user
        self.saved = saved
        self.sending = asyncio.Lock()
        self.next_send = 0.0
        """On the monotonic clock."""
        self.held_back = False
        """Whether the platform held a message back since the person wrote."""
        self.ticket = ""
        self.typing = False

    def wrote(self, token: str, at: int, *, anew: bool) -> None:
        """Take on the token of a message unless a newer one is known; one heard for the first time allows replies."""
        if at < self.saved.at:
            return
        self.saved.at = at
        self.saved.token = token or self.saved.token
        if anew:
            self.saved.sent = 0
            self.held_back = False


class Peers:
    """The people of one account."""

    def __init__(self, cursors: Cursors, account: str) -> None:
        self._cursors = cursors
        self._account = account
        self._known: OrderedDict[str, Peer] = OrderedDict()

    async def get(self, user: str) -> Peer:
        """Return the one and only record of a person. Raises OSError."""
        if user not in self._known:
            data = await self._cursors.load(self._key(user))
            self._known.setdefault(user, Peer(user, msgspec.json.decode(data, type=Saved) if data else Saved()))
        self._known.move_to_end(user)
        peer = self._known[user]
        if len(self._known) > REMEMBERED:
            idle = next((name for name, known in self._known.items() if not known.sending.locked()), user)
            if idle != user:
                del self._known[idle]
        return peer

    async def save(self, peer: Peer) -> None:
        """Write the record down. Raises OSError."""
        await self._cursors.save(self._key(peer.user), msgspec.json.encode(peer.saved))

    async def note(self, peer: Peer) -> None:
        """Write the record down if that is possible: a full disk does not stop an answer."""
        try:
            await self.save(peer)
        except OSError as error:
            structlog.get_logger(__name__).warning("replies not counted on disk", error=type(error).__name__)

    def _key(self, user: str) -> str:
        return f"peer:{self._account}:{user}"

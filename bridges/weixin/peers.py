"""What is kept for each person: the newest context token, the replies it still allows, and what waits for the next."""

from __future__ import annotations

import asyncio

import msgspec

from bridges.backlog import Backlog


class Saved(msgspec.Struct):
    """The part that outlives the process. ``at`` is when the person wrote, in milliseconds since the epoch."""

    token: str = ""
    at: int = 0
    sent: int = 0
    """Replies since then."""
    backlog: Backlog = msgspec.field(default_factory=Backlog)


class Peer:
    """One person; see :class:`bridges.records.Record`."""

    __slots__ = ("held_back", "name", "next_send", "saved", "sending", "ticket", "typing")

    def __init__(self, name: str, data: bytes | None) -> None:
        self.name = name
        self.saved = msgspec.json.decode(data, type=Saved) if data else Saved()
        self.sending = asyncio.Lock()
        self.next_send = 0.0
        """On the monotonic clock."""
        self.held_back = 0
        """Messages in a row that the platform held back since the person wrote."""
        self.ticket = ""
        self.typing = False

    def encode(self) -> bytes:
        """See :meth:`bridges.records.Record.encode`."""
        return msgspec.json.encode(self.saved)

    def wrote(self, token: str, at: int) -> bool:
        """Take on a message that is newer than all others: its token, and the replies it allows; say if it is.

        One without a time counts as newer.
        """
        if 0 < at <= self.saved.at:
            return False
        self.saved = Saved(token or self.saved.token, at or self.saved.at, backlog=self.saved.backlog)
        self.held_back = 0
        return True

"""The replies each chat may still get: some for every message, for some time."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from bridges.backlog import Backlog
from bridges.qq.inbound import Place

ALLOWANCE: Final = {
    Place.USER: (4, 3_540.0),
    Place.GROUP: (5, 285.0),
    Place.GUILD: (5, 285.0),
    Place.GUILD_DIRECT: (5, 285.0),
}
"""Replies to one message, and seconds in which they may be sent; a little less than the platform allows."""

NEWEST: Final = 8
"""Messages of one chat whose replies are counted."""


class Ticket(msgspec.Struct):
    """One message that may be replied to. ``seq`` numbers its replies and never repeats; ``until`` since the epoch."""

    message: str
    until: float
    left: int
    seq: int = 0


class Saved(msgspec.Struct):
    """The part that outlives the process."""

    tickets: list[Ticket] = msgspec.field(default_factory=list)
    backlog: Backlog = msgspec.field(default_factory=Backlog)


class Chat:
    """One chat; see :class:`bridges.records.Record`."""

    __slots__ = ("name", "saved", "sending")

    def __init__(self, name: str, data: bytes | None) -> None:
        self.name = name
        self.saved = msgspec.json.decode(data, type=Saved) if data else Saved()
        self.sending = asyncio.Lock()

    def encode(self) -> bytes:
        """See :meth:`bridges.records.Record.encode`."""
        return msgspec.json.encode(self.saved)

    def wrote(self, message: str, place: Place, now: float) -> bool:
        """Take on the replies that a message allows; False for one that is known already and allows no more."""
        if any(ticket.message == message for ticket in self.saved.tickets):
            return False
        replies, seconds = ALLOWANCE[place]
        valid = [ticket for ticket in self.saved.tickets if ticket.until > now]
        self.saved.tickets = [*valid, Ticket(message, now + seconds, replies)][-NEWEST:]
        return True

    def left(self, message: str, now: float) -> int:
        """Return how many replies :meth:`ticket` has for an answer to ``message``."""
        valid = [ticket for ticket in self.saved.tickets if ticket.until > now]
        return sum(max(0, ticket.left - (ticket.message != message)) for ticket in valid)

    def ticket(self, message: str | None, now: float, *, spare: bool) -> Ticket | None:
        """Return what to reply to: ``message`` itself, else the newest one that keeps a reply for its own answer.

        With ``spare`` the last reply of ``message`` is kept as well.
        """
        for ticket in reversed(self.saved.tickets):
            if ticket.message == message and ticket.until > now and ticket.left > spare:
                return ticket
        return next((each for each in reversed(self.saved.tickets) if each.until > now and each.left > 1), None)

"""What a channel keeps for each chat: one record in memory while it is in use, one cursor on disk."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

import msgspec
import structlog

from bridges.message import Cursors

REMEMBERED: Final = 1024
"""Records in memory; the others are read anew."""


class Record(Protocol):
    """One chat's. Hold ``sending`` while sending there: messages go out one after the other."""

    name: str
    sending: asyncio.Lock

    def encode(self) -> bytes:
        """Return the part that outlives the process."""


R = TypeVar("R", bound=Record)


class Records(Generic[R]):
    """All records of one kind; ``prefix`` keeps them apart from other cursors of the bot."""

    def __init__(self, cursors: Cursors, prefix: str, make: Callable[[str, bytes | None], R]) -> None:
        """``make`` builds a record from its name and what was kept of it; may raise msgspec.DecodeError."""
        self._cursors = cursors
        self._prefix = prefix
        self._make = make
        self._known: OrderedDict[str, R] = OrderedDict()

    async def get(self, name: str) -> R:
        """Return the one and only record of that name. Raises OSError."""
        if name not in self._known:
            self._known.setdefault(name, self._read(name, await self._cursors.load(self._prefix + name)))
        self._known.move_to_end(name)
        record = self._known[name]
        if len(self._known) > REMEMBERED:
            idle = next((known for known, other in self._known.items() if not other.sending.locked()), name)
            if idle != name:
                del self._known[idle]
        return record

    def _read(self, name: str, data: bytes | None) -> R:
        """Begin anew where what was kept cannot be read: the chat must go on."""
        try:
            return self._make(name, data)
        except msgspec.DecodeError:
            structlog.get_logger(__name__).warning("a chat's record was damaged")
            return self._make(name, None)

    async def save(self, record: R) -> None:
        """Write the record down. Raises OSError."""
        await self._cursors.save(self._prefix + record.name, record.encode())

    async def note(self, record: R) -> None:
        """Write the record down if that is possible: a full disk does not stop an answer."""
        try:
            await self.save(record)
        except OSError as error:
            structlog.get_logger(__name__).warning("replies not counted on disk", error=type(error).__name__)

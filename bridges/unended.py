"""What a channel opened in chats and must end: written down first, so that a later process ends what was left open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from bridges.message import Cursors

MOST: Final = 100
"""Things that are remembered; the oldest go first."""


class Unended:
    """The open things of one bot by name, in one cursor; what cannot be written down is opened all the same."""

    def __init__(self, cursors: Cursors, key: str) -> None:
        self._cursors = cursors
        self._key = key
        self._open: list[str] = []
        self._left: list[str] = []
        self._looked_back = False

    def __len__(self) -> int:
        return len(self._open)

    async def begin(self, name: str) -> None:
        """Remember something that is about to be opened."""
        self._open = [*self._open, name][-MOST:]
        await self._note()

    async def end(self, name: str) -> None:
        """Forget something that is over; again is no error."""
        if name in self._open:
            self._open.remove(name)
            await self._note()

    async def end_left_over(self, end: Callable[[str], Awaitable[object]]) -> None:
        """Call ``end`` for each thing that an earlier process left open; once. Raises OSError."""
        if self._looked_back:
            return
        data = await self._cursors.load(self._key)
        self._looked_back = True
        try:
            self._left = msgspec.json.decode(data or b"[]", type=list[str])
        except msgspec.DecodeError:
            return
        while self._left:
            await end(self._left[0])
            self._left.pop(0)
            await self._note()

    async def _note(self) -> None:
        try:
            await self._cursors.save(self._key, msgspec.json.encode([*self._left, *self._open]))
        except OSError as error:
            structlog.get_logger(__name__).warning("what is open is not written down", error=type(error).__name__)

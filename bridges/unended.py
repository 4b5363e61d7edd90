"""What a channel opened in chats and must end: written down first, so that a later process ends what was left open."""

from __future__ import annotations

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
        self._looked_back = False

    async def begin(self, name: str) -> None:
        """Remember something that is about to be opened."""
        self._open = [*self._open, name][-MOST:]
        await self._note()

    async def end(self, name: str) -> None:
        """Forget something that is over; again is no error."""
        if name in self._open:
            self._open.remove(name)
            await self._note()

    async def left_over(self) -> list[str]:
        """Return what an earlier process left open; once, and then it is forgotten. Raises OSError."""
        if self._looked_back:
            return []
        data = await self._cursors.load(self._key)
        self._looked_back = True
        try:
            names = msgspec.json.decode(data or b"[]", type=list[str])
        except msgspec.DecodeError:
            names = []
        if names:
            await self._note()
        return names

    async def _note(self) -> None:
        try:
            await self._cursors.save(self._key, msgspec.json.encode(self._open))
        except OSError as error:
            structlog.get_logger(__name__).warning("what is open is not written down", error=type(error).__name__)

"""What a channel opened in chats and must end: written down first, so that a later process ends what was left open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from bridges.message import Cursors, NotSent, RetryAfter, SendOutcome

MOST: Final = 100
"""Things that are remembered; the oldest go first."""

ROUNDS: Final = 3
"""How often one process tries to end what an earlier one left open; then it is forgotten."""


class Unended:
    """The open things of one bot by name, in one cursor; what cannot be written down is opened all the same."""

    def __init__(self, cursors: Cursors, key: str) -> None:
        self._cursors = cursors
        self._key = key
        self._open: list[str] = []
        self._left: list[str] = []
        self._rounds = 0
        self._looked_back = False
        self._looking = asyncio.Lock()

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

    async def end_left_over(self, end: Callable[[str], Awaitable[SendOutcome | None]]) -> None:
        """Call ``end`` for each thing that an earlier process left open, once a link is there to end it.

        What is open still by what it returns is tried again with the next links. Raises OSError.
        """
        await self._look_back()
        self._rounds += 1
        for name in list(self._left):
            outcome = await end(name)
            if self._rounds >= ROUNDS or not _open_still(outcome):
                self._left.remove(name)
                await self._note()

    async def _note(self) -> None:
        try:
            await self._look_back()  # or it would be written over
            await self._cursors.save(self._key, msgspec.json.encode([*self._left, *self._open]))
        except OSError as error:
            structlog.get_logger(__name__).warning("what is open is not written down", error=type(error).__name__)

    async def _look_back(self) -> None:
        """Read what was left open, once."""
        async with self._looking:
            if self._looked_back:
                return
            data = await self._cursors.load(self._key)
            self._looked_back = True
            try:
                self._left = msgspec.json.decode(data or b"[]", type=list[str])
            except msgspec.DecodeError:
                structlog.get_logger(__name__).warning("what was left open cannot be read")


def _open_still(outcome: SendOutcome | None) -> bool:
    return isinstance(outcome, RetryAfter) or outcome in {NotSent.UNKNOWN, NotSent.REAUTHENTICATE}

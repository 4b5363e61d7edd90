"""The threads a bot opened, where nobody needs to name it. Imports no SDK."""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Final

import structlog

from bridges.message import Cursors

KEY: Final = "threads"
REMEMBERED: Final = 1_000
"""Threads; 8 bytes each in the one value that holds them. Those opened longest ago are forgotten first."""


class OwnThreads:
    """Ids of threads, kept across restarts."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors
        self._ids: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, thread: object) -> bool:
        return thread in self._ids

    async def load(self) -> None:
        """Read what an earlier process wrote. Raises OSError."""
        value = await self._cursors.load(KEY) or b""
        for (thread,) in struct.iter_unpack(">Q", value[: len(value) // 8 * 8]):
            self._ids[thread] = None

    async def add(self, thread: int) -> None:
        """Remember a thread; one that cannot be written down is known until the program ends."""
        self._ids[thread] = None
        while len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)
        try:
            await self._cursors.save(KEY, struct.pack(f">{len(self._ids)}Q", *self._ids))
        except OSError as error:
            structlog.get_logger(__name__).warning("thread not remembered", error=type(error).__name__)

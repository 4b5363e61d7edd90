"""What a channel under test has around it: an inbox that remembers and cursors in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from bridges.message import Acceptance, InboundMessage
from tests.fakes.clock import FakeClock


class RecordingInbox:
    """Takes everything on once, unless told otherwise."""

    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []
        self.answers: deque[Acceptance | OSError] = deque()
        """For the next messages; then ACCEPTED, or DUPLICATE for an id seen before."""
        self.ups = 0
        self.changed = asyncio.Event()

    def connected(self) -> None:
        self.ups += 1
        self.changed.set()

    async def accept(self, message: InboundMessage) -> Acceptance:
        answer = self.answers.popleft() if self.answers else None
        if isinstance(answer, OSError):
            raise answer
        seen = any(known.id == message.id for known in self.messages)
        self.messages.append(message)
        self.changed.set()
        return answer or (Acceptance.DUPLICATE if seen else Acceptance.ACCEPTED)

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def heard(self, count: int = 1) -> list[InboundMessage]:
        await self.until(lambda: len(self.messages) >= count)
        return self.messages


class SlowInbox(RecordingInbox):
    """Takes nothing before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.free = asyncio.Event()

    async def accept(self, message: InboundMessage) -> Acceptance:
        self.asked.set()
        await self.free.wait()
        return await super().accept(message)


class NotingClock(FakeClock):
    """Knows who asked to sleep for how long."""

    def __init__(self) -> None:
        super().__init__()
        self.naps: list[float] = []
        self._noted = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self._noted.set()
        await super().sleep(seconds)

    async def napping(self, count: int) -> None:
        """Wait until somebody has asked so many times."""
        while len(self.naps) < count:
            self._noted.clear()
            await self._noted.wait()


class MemoryCursors:
    """Cursors without a disk, that can be full."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.full = False
        self.writes: list[str] = []

    async def load(self, key: str) -> bytes | None:
        return self.values.get(key)

    async def save(self, key: str, value: bytes) -> None:
        if self.full:
            raise OSError("no space left")
        assert len(value) <= 64 * 1024
        self.writes.append(key)
        self.values[key] = value

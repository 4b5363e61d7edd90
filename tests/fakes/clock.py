"""Time that stands still until a test moves it.

Two ways to move it. :meth:`FakeClock.advance` is exact and works beside real sockets: the test says when, after it
has waited for whatever must have happened before. ``autojump`` is for pure code: when the event loop has nothing left
to run and no socket is open, only a sleeper can be what everybody waits for, so time jumps to the earliest one.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Self

IDLE_PASSES = 3
"""How often in a row the loop must have nothing ready before time jumps: a callback may still be on its way."""


class FakeClock:
    """A :class:`harness_client.clock.Clock` that a test moves. Use it inside one event loop."""

    def __init__(self, start: float = 1_000_000.0, *, autojump: bool = False) -> None:
        self._now = start
        self._autojump = autojump
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._arrived = asyncio.Event()
        self._jumper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to jump, when asked to."""
        if self._autojump:
            self._jumper = asyncio.create_task(self._jump_when_idle(), name="autojump")
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop jumping."""
        if self._jumper is not None:
            self._jumper.cancel()
            await asyncio.wait([self._jumper])
            self._jumper = None

    def monotonic(self) -> float:
        """See :meth:`harness_client.clock.Clock.monotonic`."""
        return self._now

    def time(self) -> float:
        """See :meth:`harness_client.clock.Clock.time`."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """See :meth:`harness_client.clock.Clock.sleep`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        await self._until(self._now + seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """See :meth:`harness_client.clock.Clock.timeout`."""
        return self._timeout(seconds)

    @asynccontextmanager
    async def _timeout(self, seconds: float) -> AsyncIterator[None]:
        deadline = self._now + max(0.0, seconds)
        async with asyncio.timeout(None) as real:

            async def expire() -> None:
                await self._until(deadline)
                real.reschedule(asyncio.get_running_loop().time())

            timer = asyncio.create_task(expire(), name=f"timeout of {seconds} s")
            try:
                yield
            finally:
                timer.cancel()

    # -- what a test does -------------------------------------------------------------------------------------------

    @property
    def sleepers(self) -> int:
        """How many sleeps and timeouts are pending."""
        return sum(not future.done() for _, _, future in self._waiting)

    @property
    def soonest(self) -> float:
        """In how many seconds the first of them is due; infinity when there is none."""
        return min((when - self._now for when, _, future in self._waiting if not future.done()), default=math.inf)

    async def sleeping(self, count: int = 1) -> None:
        """Wait until so many sleeps and timeouts are pending."""
        while self.sleepers < count:
            self._arrived.clear()
            await self._arrived.wait()

    async def advance(self, seconds: float) -> None:
        """Move time forward, waking everybody due on the way in order, each at its own moment."""
        target = self._now + seconds
        while self._waiting and self._waiting[0][0] <= target:
            self._wake_next()
            await _let_run()
        self._now = target
        await _let_run()

    # -- how it works -----------------------------------------------------------------------------------------------

    async def _until(self, when: float) -> None:
        if when <= self._now:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (when, next(self._order), future))
        self._arrived.set()
        await future

    def _wake_next(self) -> None:
        when, _, future = heapq.heappop(self._waiting)
        if not future.done():
            self._now = max(self._now, when)
            future.set_result(None)

    async def _jump_when_idle(self) -> None:
        while True:
            await self.sleeping()
            idle = 0
            while idle < IDLE_PASSES:
                idle = idle + 1 if await _nothing_ready() else 0
            while self._waiting and self._waiting[0][2].done():
                heapq.heappop(self._waiting)
            if self._waiting:
                self._wake_next()


async def _let_run() -> None:
    """Let everything that is ready run, and what becomes ready by that."""
    for _ in range(100):
        if await _nothing_ready():
            return


async def _nothing_ready() -> bool:
    """Let the loop make one pass; return whether only this very coroutine was ready in it."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    ready = getattr(loop, "_ready", None)  # no public name says how many callbacks wait
    assert ready is not None, "the fake clock needs asyncio's own event loop"
    return len(ready) == 0

"""An event loop whose time passes only while everybody waits for it: a day of waits in a minute or two.

Where :class:`tests.fakes.clock.FakeClock` moves what asks a clock, this moves everything on the loop alike: our
program, the SDKs, HTTP's own timeouts and the fakes. When the real sockets have had nothing for a BREATH, and no thread
is at work for the loop, nobody can be waiting but for the time: it moves from timer to timer, STEP seconds at most
before the next breath. So a packet that is late by a breath is late by seconds and not by hours.

What keeps real time is not moved: another process (Feishu's SDK), a thread that sleeps (the heart of Discord's SDK),
``time.time`` of others.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Future as ThreadFuture
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar
from unittest import mock

T = TypeVar("T")

STEP: Final = 10.0
"""Seconds that pass at most between two breaths."""
BREATH: Final = 0.001
"""Real seconds; what epoll can wait at least."""
PATIENCE: Final = 0.02
"""Real seconds between two looks at what keeps real time."""
BEGINNING: Final = 1_790_000_000.0
"""Seconds since the epoch at which every such loop begins."""


class SwiftLoop(asyncio.SelectorEventLoop):
    """Use it through :func:`run_swiftly`. While one of ``held`` says True, no time passes."""

    def __init__(self) -> None:
        self._now = 0.0
        self.held: list[Callable[[], bool]] = []
        self._threads = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Return the seconds that passed on the loop."""
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    @property
    def busy(self) -> bool:
        """Whether somebody works who cannot wait for the loop's time."""
        return self._threads > 0 or any(hold() for hold in self.held)

    def awaited(self, work: ThreadFuture[T]) -> ThreadFuture[T]:
        """Note that a thread works for the loop."""
        self._threads += 1
        work.add_done_callback(lambda _: self.call_soon_threadsafe(self._returned))
        return work

    def _returned(self) -> None:
        self._threads -= 1


class _Selector(selectors.DefaultSelector):
    """Waits as little as it can."""

    def __init__(self, loop: SwiftLoop) -> None:
        super().__init__()
        self._loop = loop
        self._left = 0.0
        """Seconds that may pass before the next breath."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0:
            if timeout is None or self._loop.busy:
                ready = super().select(PATIENCE)
            elif self._left > 0:
                passed = min(timeout, self._left)
                self._loop.pass_time(passed)
                self._left -= passed
            else:
                ready = super().select(BREATH)
                self._left = STEP
        if ready:
            self._left = 0.0
        return ready


class LoopClock:
    """A :class:`harness_client.clock.Clock` that tells the loop's time."""

    def monotonic(self) -> float:
        """See :meth:`harness_client.clock.Clock.monotonic`."""
        return asyncio.get_running_loop().time()

    def time(self) -> float:
        """See :meth:`harness_client.clock.Clock.time`."""
        return BEGINNING + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """See :meth:`harness_client.clock.Clock.sleep`."""
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """See :meth:`harness_client.clock.Clock.timeout`."""
        return asyncio.timeout(max(0.0, seconds))


def run_swiftly(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine on a swift loop."""
    wrap_future = asyncio.wrap_future

    def wrap(future: ThreadFuture[T], *, loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[T]:
        running = loop or asyncio.get_running_loop()
        assert isinstance(running, SwiftLoop)
        return wrap_future(running.awaited(future), loop=loop)

    # The two names under which the work of a thread is awaited: the state's, and that of the loop's own executor.
    with (
        mock.patch("asyncio.wrap_future", wrap),
        mock.patch("asyncio.futures.wrap_future", wrap),
        asyncio.Runner(loop_factory=SwiftLoop) as runner,
    ):
        return runner.run(main)

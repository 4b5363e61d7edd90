"""Time as a parameter, so that a test of a ten-second deadline takes no time."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Clock(Protocol):
    """What the program asks of time. Seconds throughout."""

    def monotonic(self) -> float:
        """Seconds on a clock that never steps back; only differences mean anything."""

    def time(self) -> float:
        """Seconds since the epoch, for stamps that outlive the process."""

    async def sleep(self, seconds: float) -> None:
        """Wait; a negative number waits not at all."""

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return a context that raises :class:`TimeoutError` when its body lasts longer than ``seconds``."""


class SystemClock:
    """The real thing."""

    def monotonic(self) -> float:
        """See :meth:`Clock.monotonic`."""
        return time.monotonic()

    def time(self) -> float:
        """See :meth:`Clock.time`."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """See :meth:`Clock.sleep`."""
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """See :meth:`Clock.timeout`."""
        return asyncio.timeout(max(0.0, seconds))


SYSTEM_CLOCK = SystemClock()

"""Timing, memory and stalls. Seconds and bytes throughout; a figure is a median, a comparison a ratio in one run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value beside what it should reach. ``unit`` is printed after both."""

    name: str
    value: float
    reach: float
    unit: str
    note: str = ""

    def __str__(self) -> str:
        verdict = "reached" if self.value <= self.reach else "NOT REACHED"
        value = f"{self.value:,.2f} {self.unit} (reach {self.reach:g} {self.unit}, {verdict})"
        return f"{self.name}: {value}{'; ' + self.note if self.note else ''}"


@dataclass(frozen=True, slots=True)
class Sample:
    """What one call took: wall time, and the processor time of this process with all its threads."""

    wall: float
    cpu: float


async def sample(call: Callable[[], Awaitable[object]]) -> Sample:
    """Time one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    await call()
    return Sample(time.perf_counter() - wall, time.process_time() - cpu)


@dataclass(slots=True)
class StallMeter:
    """How late the event loop wakes a sleeper; ``longest`` in seconds."""

    step: float = 0.001
    longest: float = 0.0
    stalls: list[float] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Measure while the body runs."""
        task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            await asyncio.sleep(0)  # a stall at the very end is seen as well
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self.longest = max(self.stalls, default=0.0)

    async def _watch(self) -> None:
        while True:
            before = time.perf_counter()
            try:
                await asyncio.sleep(self.step)
            finally:
                self.stalls.append(max(0.0, time.perf_counter() - before - self.step))


def resident(pid: int) -> int:
    """Bytes of physical memory a process holds (Linux)."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def median(values: list[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def machine() -> str:
    """Describe what the figures were measured on."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, load {load:.1f}"
    )

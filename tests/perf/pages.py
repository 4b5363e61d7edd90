"""One page of 20 MB: how long it takes, and how long the event loop is held meanwhile."""

from __future__ import annotations

import asyncio
from functools import partial

from harness_client.client import Address, HarnessClient
from tests.perf.host import BIG, BIG_BYTES, BIG_EVENTS
from tests.perf.measure import Figure, Sample, StallMeter, median, sample

ROUNDS = 7


async def figures(address: str) -> list[Figure]:
    """Read the page a few times; the stall is the longest of the median round."""
    samples: list[Sample] = []
    stalls: list[float] = []
    async with HarnessClient(Address.parse(address)) as client:
        for _ in range(ROUNDS):
            meter = StallMeter()
            async with meter.watch():
                samples.append(await sample(partial(client.page, BIG)))
            stalls.append(meter.longest)
    what = f"a page of {BIG_BYTES / 1e6:.0f} MB with {BIG_EVENTS:,} events"
    note = f"median of {ROUNDS}, worst {max(stalls) * 1000:.1f} ms; an idle loop {await _idle() * 1000:.1f} ms"
    wall = [sample.wall for sample in samples]
    return [
        Figure(f"{what}: longest stall of the event loop", median(stalls) * 1000, 20, "ms", note),
        Figure(f"{what}: in total", median(wall), 1.5, "s", f"median of {ROUNDS}, worst {max(wall):.2f} s"),
    ]


async def _idle() -> float:
    """Return the longest stall of a loop that does nothing for a second: what the machine itself adds."""
    meter = StallMeter()
    async with meter.watch():
        await asyncio.sleep(1)
    return meter.longest

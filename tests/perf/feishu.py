"""The start of the vendor's SDK for Feishu, in the process the product gives it. The platform is a fake, in here."""

from __future__ import annotations

import time

from bridges.feishu.link import link_of
from bridges.feishu.rest import Application
from tests.fakes.feishu import APP_ID, SECRET, FakeFeishu
from tests.perf.measure import Figure, StallMeter, median

STARTS = 5


async def figures() -> list[Figure]:
    """Connect some times."""
    stalls, ready = [], []
    async with FakeFeishu() as fake:
        for _ in range(STARTS):
            meter, began = StallMeter(), time.perf_counter()
            async with meter.watch(), link_of(Application(APP_ID, SECRET, fake.url)) as link:
                await link.next()
                ready.append(time.perf_counter() - began)
            stalls.append(meter.longest)
    note = f"median of {STARTS}"
    return [
        Figure("Feishu's SDK: from nothing to connected", median(ready), 2.0, "s", note),
        Figure("the longest stall of our event loop meanwhile", median(stalls) * 1000, 20, "ms", note),
    ]

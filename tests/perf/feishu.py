"""``harness-im run`` with one Feishu bot and the process of the vendor's SDK. The platform is a fake, in here."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bridges.feishu.link import link_of
from bridges.feishu.rest import Application
from tests.bridges.bench import eventually
from tests.fakes.feishu import APP_ID, SECRET, FakeFeishu
from tests.perf.host import FIFTY
from tests.perf.measure import Figure, StallMeter, median, resident
from tests.perf.program import running

TIMES = 50
STARTS = 5


async def figures(harness: str) -> list[Figure]:
    """Run one bot against the host at ``harness``."""
    async with FakeFeishu() as fake:
        stalls, ready = await _starts(fake)
        table = (
            f'channel = "feishu"\napp_id = "{APP_ID}"\napp_secret = "{SECRET}"\nendpoints = {{ api = "{fake.url}" }}\n'
        )
        async with running(table, harness) as child:
            await eventually(lambda: bool(fake.gateway.sockets), 60)
            await _reply(fake, f"/session {FIFTY}")
            replies = [await _reply(fake, "/history 5") for _ in range(TIMES)]
            sdk = [int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]
            held = resident(child.pid) + sum(resident(pid) for pid in sdk)
            alone = sum(resident(pid) for pid in sdk)
    note = f"{TIMES} in turn, fake platform and host included, pace not counted"
    return [
        Figure("Feishu's SDK: from nothing to connected", median(ready), 2.0, "s", f"median of {STARTS}"),
        Figure("the longest stall of our event loop meanwhile", median(stalls) * 1000, 20, "ms", f"median of {STARTS}"),
        Figure(
            "run with one Feishu bot, memory with its SDK (RSS)", held / 1e6, 150, "MB", f"SDK {alone / 1e6:.0f} MB"
        ),
        Figure("/history 5 through Feishu, median", median(replies) * 1000, 15, "ms", note),
    ]


async def _starts(fake: FakeFeishu) -> tuple[list[float], list[float]]:
    """Connect some times; return the longest stalls and the seconds it took."""
    stalls, ready = [], []
    for _ in range(STARTS):
        meter, began = StallMeter(), time.perf_counter()
        async with meter.watch(), link_of(Application(APP_ID, SECRET, fake.url)) as link:
            await link.next()
            ready.append(time.perf_counter() - began)
        stalls.append(meter.longest)
    return stalls, ready


async def _reply(fake: FakeFeishu, text: str) -> float:
    """Return the seconds until the chat sees the beginning of a reply; the chat's pace is waited for before."""
    await asyncio.sleep(1.0)
    fake.said.clear()
    began = time.perf_counter()
    await fake.says(text)
    await fake.said.wait()
    return time.perf_counter() - began

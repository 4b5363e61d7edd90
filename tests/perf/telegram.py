"""``harness-im run`` with one Telegram bot: start, memory, one reply, many replies. The platform is a fake, in here."""

from __future__ import annotations

import asyncio
import statistics
import time

from tests.fakes.telegram import FakeTelegram, Obj
from tests.perf.host import FIFTY, SHORT
from tests.perf.measure import Figure, median, resident
from tests.perf.program import running

CHATS = 100
FIRST_PERSON = 10_000
PACE = 1.2
"""Seconds after which every chat may be written to again."""


async def figures(harness: str) -> list[Figure]:
    """Run one bot against the host at ``harness``."""
    async with FakeTelegram() as fake:
        began = time.perf_counter()
        table = f'channel = "telegram"\ntoken = "{fake.token}"\nendpoints = {{ api = "{fake.api}" }}\n'
        async with running(table, harness) as child:
            await fake.until(lambda: fake.count("getUpdates") > 0)
            start = time.perf_counter() - began
            await _all(fake, f"/session {FIFTY}")
            await asyncio.sleep(PACE)
            one = [await _reply(fake, FIRST_PERSON + number) for number in range(CHATS)]
            await asyncio.sleep(PACE)
            await _all(fake, f"/session {SHORT}")
            await asyncio.sleep(PACE)
            together = await _all(fake, "/history 5")
            held = resident(child.pid)
    slow = statistics.quantiles(one, n=20)[-1] * 1000
    note = f"{CHATS} chats in turn, fake platform and host included"
    return [
        Figure("run with one Telegram bot, to its first poll", start, 1.0, "s"),
        Figure("the same, memory after all of this (RSS)", held / 1e6, 90, "MB"),
        Figure("/history 5 through Telegram, median", median(one) * 1000, 12, "ms", note),
        Figure("/history 5 through Telegram, 95th percentile", slow, 20, "ms", note),
        Figure("a reply when 100 chats ask at once", together / CHATS * 1000, 1000 / 150, "ms",
               f"{CHATS / together:.0f} replies a second"),
    ]  # fmt: skip


async def _all(fake: FakeTelegram, text: str) -> float:
    """Let all chats ask at once; return the seconds until each has its answer."""
    before = len(fake.said)
    began = time.perf_counter()
    await fake.deliver(*(_asks(fake, FIRST_PERSON + number, text) for number in range(CHATS)))
    await fake.until(lambda: len({said.chat for said in fake.said[before:]}) == CHATS, 60)
    return time.perf_counter() - began


async def _reply(fake: FakeTelegram, person: int) -> float:
    """Return the seconds until one chat sees the beginning of its history."""
    before = len(fake.texts(person))
    began = time.perf_counter()
    await fake.deliver(_asks(fake, person, "/history 5"))
    await fake.until(lambda: len(fake.texts(person)) > before)
    return time.perf_counter() - began


def _asks(fake: FakeTelegram, person: int, text: str) -> Obj:
    return fake.write.update(fake.write.message(text, sender=person))

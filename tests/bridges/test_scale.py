"""A thousand chats at once. The host is a fake in this very process, so every figure here is an upper bound."""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import time
import tracemalloc
from pathlib import Path

import pytest

from commands.model import ChatKey
from i18n import Key, Language, Words
from tests.bridges.bench import Bench, PlainChannel, bench, eventually
from tests.fakes.harness import FakeHarness, say

WORDS = Words(Language.EN)
CHATS = [ChatKey("test", "bot", str(number)) for number in range(1_000)]

BYTES_A_CHAT = 200_000
"""The bound on what one chat with a running turn may cost, its half of the fake host included."""

STATUS_SECONDS = 0.05
"""What 95 of 100 ``/status`` answers may take while every chat streams."""

STATUSES = 100
STREAM_SECONDS = 2.0
"""Each chat gets one piece of text in this time, at a moment of its own."""

WAVE = 100

pytestmark = pytest.mark.timeout(300)


class CountingChannel(PlainChannel):
    """Keeps nothing but what was sent last in each chat."""

    async def until_all(self, count: int) -> None:
        await self.until(lambda: len(self.sent) >= count, 120)


async def streaming(host: FakeHarness, count: int) -> None:
    async with asyncio.timeout(60):
        await host.until(lambda: sum(bool(session.partial) for session in host.world.sessions.values()) >= count)


async def settled(desk: Bench, count: int) -> None:
    await desk.channel.until(lambda: len(desk.outcomes) >= count, 120)


@pytest.fixture
def channel() -> CountingChannel:
    return CountingChannel()


async def test_memory_is_bounded_and_idle_chats_cost_nothing(
    host: FakeHarness, tmp_path: Path, channel: CountingChannel
) -> None:
    host.model.title = ""
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("warm up", chat=ChatKey("test", "bot", "warm"))
        await settled(desk, 1)
        hold = asyncio.Event()
        host.model.default = lambda prompt: (say("part of ", hold, prompt),)
        gc.collect()
        tracemalloc.start()
        for start in range(0, len(CHATS), WAVE):  # tracing makes everything several times slower
            await asyncio.gather(*(desk.say("hello", chat=chat) for chat in CHATS[start : start + WAVE]))
            await streaming(host, start + WAVE)
        gc.collect()
        active = tracemalloc.get_traced_memory()[0]
        assert len(desk.intake.conversations._chats) == len(CHATS)
        hold.set()
        await settled(desk, len(CHATS) + 1)
        conversations = desk.intake.conversations
        await eventually(lambda: not desk.intake.conversations._bot.replies._chats)  # type: ignore[attr-defined]  # the real delivery
        tracemalloc.stop()
        print(f"{host.dialect.generation}: {active / len(CHATS):,.0f} bytes a chat")
        assert active / len(CHATS) < BYTES_A_CHAT
        assert channel.texts.count("part of hello") == len(CHATS)
        assert (conversations._chats, conversations._late, conversations._total) == ({}, {}, 0)
        assert (conversations.interactions._by_chat, conversations.interactions._by_session) == ({}, {})
        assert desk.intake._rebinding == {}
        assert await desk.state.turns.outstanding(desk.intake._bot.key) == ()
        assert len(host.world.sessions) == len(CHATS) + 1


async def test_status_is_quick_while_all_stream(host: FakeHarness, tmp_path: Path, channel: CountingChannel) -> None:
    host.model.title = ""
    ticks = [[asyncio.Event() for _ in range(60)] for _ in range(100)]
    groups = itertools.cycle(ticks)

    def story(_: str) -> tuple[object, ...]:
        pieces = [piece for tick in next(groups) for piece in ("words ", tick)]
        return (say(*pieces),)

    host.model.default = story  # type: ignore[assignment]  # a tuple of one step
    async with bench(host, tmp_path, channel) as desk:
        await asyncio.gather(*(desk.say("hello", chat=chat) for chat in CHATS))
        await streaming(host, len(CHATS))

        async def pace() -> None:
            for round_ in itertools.count():
                for group in ticks:
                    if round_ < len(group):
                        group[round_].set()
                    await asyncio.sleep(STREAM_SECONDS / len(ticks))

        pacing = asyncio.create_task(pace())
        waits: list[float] = []
        for chat in CHATS[:: len(CHATS) // STATUSES]:
            before, began = len(channel.sent), time.perf_counter()
            await desk.say("/status", chat=chat)
            await channel.until(lambda: len(channel.sent) > before)  # noqa: B023 - awaited within the round
            waits.append(time.perf_counter() - began)
        pacing.cancel()
        for event in itertools.chain(*ticks):
            event.set()
        p95 = statistics.quantiles(waits, n=20)[-1]
        print(f"{host.dialect.generation}: /status p50 {statistics.median(waits) * 1e3:.1f} p95 {p95 * 1e3:.1f} ms")
        assert p95 < STATUS_SECONDS
        await settled(desk, len(CHATS) + STATUSES)


async def test_a_chat_that_floods_holds_nobody_back(desk: Bench) -> None:
    desk.host.model.title = ""
    hold = asyncio.Event()
    desk.host.model.default = lambda prompt: (say(hold, "slow") if prompt.startswith("flood") else say("quick"),)
    flooding = ChatKey("test", "bot", "flood")
    for number in range(25):
        await desk.say(f"flood {number}", chat=flooding)
    await asyncio.gather(*(desk.say("hello", chat=chat) for chat in CHATS[:200]))
    await desk.channel.until(lambda: desk.channel.texts.count("quick") == 200, 60)
    assert "slow" not in desk.channel.texts
    assert desk.channel.texts.count(WORDS(Key.CHAT_FULL)) == 4, "21 of the flood were taken"
    hold.set()
    await desk.channel.until(lambda: desk.channel.texts.count("slow") == 21, 60)

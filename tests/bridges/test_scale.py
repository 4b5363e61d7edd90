"""A thousand chats at once. The host is a fake in this very process, so every figure here is an upper bound."""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Sequence

import pytest

from commands.model import ChatKey
from i18n import Key, Language, Words
from tests.bridges.bench import Bench, eventually
from tests.fakes.harness import Step, say

WORDS = Words(Language.EN)
CHATS = [ChatKey("test", "bot", str(number)) for number in range(1_000)]

BYTES_A_CHAT = 200_000
"""The bound on what one chat with a running turn may cost, its half of the fake host included."""

TRACED = 100
"""The last chats to begin, whose memory is traced: beside 900 others, and not all, for tracing is slow."""

STATUS_SECONDS = 0.05
"""What 95 of 100 ``/status`` answers may take while every chat streams."""

STATUSES, SAMPLES = 100, 3
"""Other programs of the machine can only add to the times, so the best of some samples counts."""

STREAM_SECONDS = 2.0
"""Each chat gets one piece of text in this time, at a moment of its own."""

ROUNDS, GROUPS = 10, 100
"""Pieces of each chat's answer; groups of chats that get theirs at the same moment."""

pytestmark = pytest.mark.timeout(300)


class Story:
    """The same answer for every chat, but to its own prompt, in pieces."""

    def __init__(self) -> None:
        self.ticks = [[asyncio.Event() for _ in range(ROUNDS)] for _ in range(GROUPS)]
        self._groups = itertools.cycle(self.ticks)

    def __call__(self, prompt: str) -> tuple[Step]:
        pieces: list[str | asyncio.Event] = []
        for tick in next(self._groups):
            pieces += (tick, " words")
        return (say(f"To {prompt}:", *pieces),)

    async def pace(self) -> None:
        for round_ in range(ROUNDS):
            for group in self.ticks:
                group[round_].set()
                await asyncio.sleep(STREAM_SECONDS / GROUPS)

    def finish(self) -> None:
        for event in itertools.chain(*self.ticks):
            event.set()


async def streaming(desk: Bench, chats: Sequence[ChatKey], count: int) -> None:
    """Say something in ``chats``; return when ``count`` sessions in all have begun to answer."""

    def all_stream() -> bool:
        return sum(bool(session.partial) for session in desk.host.world.sessions.values()) >= count

    await asyncio.gather(*(desk.say(f"hello {chat.chat}", chat=chat) for chat in chats))
    await eventually(all_stream, 60, pause=0.05)  # after each of the host's thousands of events it would cost too much


async def traced(desk: Bench) -> int:
    """Let the last chats begin too; return the bytes they hold."""
    gc.collect()
    tracemalloc.start()
    await streaming(desk, CHATS[-TRACED:], len(CHATS))
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


async def statuses(desk: Bench) -> list[float]:
    """Return how long ``/status`` took in a tenth of the chats, one after another."""
    waits: list[float] = []
    for chat in CHATS[:: len(CHATS) // STATUSES]:
        before, began = len(desk.channel.sent), time.perf_counter()
        await desk.say("/status", chat=chat)
        await desk.channel.until(lambda: len(desk.channel.sent) > before)  # noqa: B023 - awaited within the round
        waits.append(time.perf_counter() - began)
    return waits


async def nothing_left(desk: Bench) -> None:
    conversations = desk.intake.conversations
    await eventually(lambda: not conversations._bot.replies._chats)  # type: ignore[attr-defined]  # the real delivery
    assert (conversations._chats, conversations._late, conversations._total) == ({}, {}, 0)
    assert (conversations.interactions._by_chat, conversations.interactions._by_session) == ({}, {})
    assert (desk.intake._rebinding, desk.intake._batching) == ({}, {})
    assert await desk.nothing_outstanding()


async def test_a_thousand_chats_at_once(desk: Bench) -> None:
    """Memory is bounded, ``/status`` is quick, every chat gets its own answer, idle chats cost nothing."""
    host, story = desk.host, Story()
    host.model.title = ""
    host.model.default = story
    await streaming(desk, CHATS[:-TRACED], len(CHATS) - TRACED)
    held = await traced(desk)
    assert len(desk.intake.conversations._chats) == len(CHATS)
    pacing = asyncio.create_task(story.pace())
    best = float("inf")
    taken = 0
    while best >= STATUS_SECONDS and taken < SAMPLES:
        best = min(best, statistics.quantiles(await statuses(desk), n=20)[-1])
        taken += 1
        assert not pacing.done(), "every chat streamed all the time"
    pacing.cancel()
    story.finish()
    await desk.channel.until(lambda: len(desk.outcomes) == len(CHATS) + taken * STATUSES, 120)
    print(f"{host.dialect.generation}: {held / TRACED:,.0f} bytes a chat, /status p95 {best * 1e3:.1f} ms")
    assert held / TRACED < BYTES_A_CHAT
    assert best < STATUS_SECONDS
    answers = {target.chat: text for target, text in desk.channel.sent if text.startswith("To ")}
    assert answers == {chat: f"To hello {chat.chat}:" + " words" * ROUNDS for chat in CHATS}
    await nothing_left(desk)


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

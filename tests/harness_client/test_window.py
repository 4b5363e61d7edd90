"""Bounded backward reading (spec HISTORY 3). Cases of what is shown are in tests/commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from harness_client import window
from harness_client.errors import HarnessError, Malformed, TimedOut, Unreachable
from harness_client.pages import read_page
from harness_client.streams import Page
from harness_client.transcript import text_of
from harness_client.types import SessionId
from harness_client.window import Window, read_window
from tests.fakes.clock import FakeClock
from tests.wire_events import Obj, assistant, dialogue, other, page_body, start, user

SESSION = SessionId("s")
Waiting = Callable[[], Awaitable[None]]


@dataclass
class Source:
    """Pages in turn, each after something else has happened."""

    pages: list[tuple[list[Obj], bool]]
    before_page: dict[int, Waiting] = field(default_factory=dict)
    before_running: Waiting | None = None
    runs: bool | HarnessError = True
    asked: list[tuple[int | None, int | None]] = field(default_factory=list)

    async def page(
        self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
    ) -> Page:
        self.asked.append((before, through))
        number = len(self.asked)
        if number in self.before_page:
            await self.before_page[number]()
        events, more = self.pages[number - 1]
        return await read_page(page_body(events, more), "page", through=77)

    async def running(self, session: SessionId) -> bool:
        if self.before_running is not None:
            await self.before_running()
        if isinstance(self.runs, HarnessError):
            raise self.runs
        return self.runs


async def read(source: Source, count: int = 3, clock: FakeClock | None = None) -> Window:
    return await read_window(
        source,
        SESSION,
        count,
        clock=clock or FakeClock(),
        is_command=lambda text: text.startswith("/history"),
        without_marks=lambda blocks: blocks,
    )


def texts(found: Window) -> list[str]:
    return [text_of(message.blocks) for message in found.messages]


async def test_the_cursor_of_the_first_page_goes_with_every_later_one() -> None:
    source = Source([([user(50, "u2")], True), ([user(40, "u1")], True), ([user(30, "u0")], False)])
    assert texts(await read(source)) == ["u0", "u1", "u2"]
    assert source.asked == [(None, None), (50, 77), (40, 77)]


async def test_an_empty_log() -> None:
    assert await read(Source([([], False)])) == Window((), more=False, running=False)


async def test_pages_may_overlap_identically() -> None:
    source = Source([([user(50, "u2"), user(51, "u3")], True), ([user(40, "u1"), user(50, "u2")], False)])
    assert texts(await read(source, 5)) == ["u1", "u2", "u3"]


async def test_pages_may_not_contradict_each_other() -> None:
    with pytest.raises(Malformed):
        await read(Source([([other(50, x=1)], True), ([user(40, "u1"), other(50, x=True)], False)]))


async def test_newer_events_on_later_pages_do_not_exist() -> None:
    source = Source([([user(50, "u2")], True), ([user(40, "u1"), user(51, "late"), start(52, 9)], False)])
    assert await read(source) == Window((await read(source_of(source))).messages, more=False, running=False)


def source_of(source: Source) -> Source:
    return Source(
        [([event for event in events if int(str(event["seq"])) <= 50], more) for events, more in source.pages]
    )


@pytest.mark.parametrize(
    "large", [[*(other(n) for n in range(3_000)), user(5_000, "u1")], [user(1, "u1" * 300_000)]], ids=["many", "long"]
)
async def test_a_large_page_is_merged_off_the_loop(monkeypatch: pytest.MonkeyPatch, large: list[Obj]) -> None:
    offloaded = []

    async def offload(work: Callable[[], object]) -> object:
        offloaded.append(work)
        return work()

    monkeypatch.setattr(window, "offload", offload)
    assert texts(await read(Source([(large, False)])))[0].startswith("u1")
    assert len(offloaded) == 1
    assert texts(await read(Source([(dialogue(3), False)]))) == ["a2", "u3", "a3"]
    assert len(offloaded) == 1


# -- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_page_that_never_comes_ends_at_ten_seconds(number: int) -> None:
    clock = FakeClock()
    pages = [([user(50, "u2")], True), ([user(40, "u1")], True), ([user(30, "u0")], False)]
    never = asyncio.Event()

    async def wait() -> None:
        never.set()
        await asyncio.Event().wait()

    async def pass_time() -> None:
        await clock.advance(3)

    waits: dict[int, Waiting] = {**dict.fromkeys(range(1, number), pass_time), number: wait}
    reading = asyncio.create_task(read(Source(pages, before_page=waits), clock=clock))
    await never.wait()
    await clock.advance(10 - 3 * (number - 1) - 0.001)
    assert not reading.done()
    await clock.advance(0.002)
    with pytest.raises(TimedOut):
        await reading


async def test_what_comes_too_late_is_not_shown() -> None:
    clock = FakeClock()

    async def jump() -> None:
        clock._now += 10.001  # what a blocked process sees: the timer has had no chance to fire

    with pytest.raises(TimedOut):
        await read(Source([(dialogue(3), False)], before_page={1: jump}), clock=clock)


OPEN = [*dialogue(1), start(20, 2), assistant(21, 2, "half")]


@pytest.mark.parametrize(("spent", "left"), [(0, 2), (9, 1)])
async def test_the_running_check_has_two_seconds_or_what_is_left(spent: float, left: float) -> None:
    clock = FakeClock()
    asked = asyncio.Event()

    async def wait() -> None:
        asked.set()
        await asyncio.Event().wait()

    async def spend() -> None:
        await clock.advance(spent)

    reading = asyncio.create_task(
        read(Source([(OPEN, False)], before_page={1: spend}, before_running=wait), clock=clock)
    )
    await asked.wait()
    await clock.advance(left - 0.001)
    assert not reading.done()
    await clock.advance(0.002)
    found = await reading
    assert (texts(found), found.running) == (["u1", "a1"], False)


@pytest.mark.parametrize(("runs", "running"), [(True, True), (False, False), (Unreachable("gone"), False)])
async def test_a_turn_runs_when_the_host_says_so(runs: bool | HarnessError, running: bool) -> None:
    assert (await read(Source([(OPEN, False)], runs=runs))).running is running


async def test_a_finished_log_runs_nothing() -> None:
    assert not (await read(Source([(dialogue(2), False)]))).running


async def test_a_cancelled_reader_ends_at_once() -> None:
    asked = asyncio.Event()

    async def wait() -> None:
        asked.set()
        await asyncio.Event().wait()

    reading = asyncio.create_task(read(Source([([], False)], before_page={1: wait})))
    await asked.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

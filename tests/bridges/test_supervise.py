"""A bot's link: run, back off, run again, stop for good; and never a word to its neighbours."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from bridges.log import Redactor
from bridges.message import (
    Acceptance,
    ChannelStopped,
    EventId,
    InboundMessage,
    Inbox,
    Limits,
    ReplyTarget,
    SendOutcome,
    Stop,
)
from bridges.state import BotKey
from bridges.supervise import HEALTHY_SECONDS, LONGEST_DELAY, STOP_SECONDS, Link, Supervisor
from commands.model import ChatKey, ChatKind, SenderId
from tests.fakes.clock import FakeClock

OPS = BotKey("fake", "ops")
CHAT = ChatKey("fake", "ops", "1")
MESSAGE = InboundMessage(EventId("1"), CHAT, ChatKind.DIRECT, SenderId("ann"), "hello", ReplyTarget(CHAT, "1"))

Run = Callable[["Link_", Inbox], Awaitable[None]]


@dataclass
class Link_:  # noqa: N801 - the fake channel; Link is the state's name
    """A channel whose runs are scripted; the last one is repeated."""

    clock: FakeClock
    runs: list[Run]
    limits: Limits = field(default_factory=lambda: Limits(text=10))
    began: list[float] = field(default_factory=list)
    at_once: int = 0
    closed: int = 0

    async def run(self, inbox: Inbox) -> None:
        self.began.append(self.clock.monotonic())
        self.at_once += 1
        assert self.at_once == 1
        try:
            await self.runs[min(len(self.began), len(self.runs)) - 1](self, inbox)
        finally:
            self.at_once -= 1

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed += 1


class Accepting:
    """The bot's own inbox."""

    def __init__(self) -> None:
        self.connections = 0

    async def accept(self, message: InboundMessage) -> Acceptance:
        return Acceptance.ACCEPTED

    def connected(self) -> None:
        self.connections += 1


async def forever(_: Link_, inbox: Inbox) -> None:
    inbox.connected()
    await asyncio.get_running_loop().create_future()


async def refused(_: Link_, __: Inbox) -> None:
    raise ConnectionError("refused by fake-token-1234")


def held(seconds: float) -> Run:
    async def run(link: Link_, inbox: Inbox) -> None:
        inbox.connected()
        await link.clock.sleep(seconds)
        raise ConnectionError("lost")

    return run


def stopping(failure: Exception) -> Run:
    async def run(_: Link_, __: Inbox) -> None:
        raise failure

    return run


@pytest.fixture
async def clock() -> AsyncIterator[FakeClock]:
    async with FakeClock(autojump=True) as clock:
        yield clock


def supervisor(link: Link_, inbox: Inbox | None = None, chance: float = 1.0) -> Supervisor:
    redact = Redactor(["fake-token-1234"])
    return Supervisor(OPS, link, inbox or Accepting(), redact=redact, clock=link.clock, chance=lambda: chance)


async def until(clock: FakeClock, condition: Callable[[], bool], *, step: float = 1.0) -> None:
    for _ in range(1_000):
        if condition():
            return
        await clock.sleep(step)
    raise AssertionError("never came true")


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_the_wait_between_runs_doubles_up_to_a_cap(clock: FakeClock) -> None:
    link = Link_(clock, [refused])
    task = asyncio.create_task(supervisor(link).run())
    await until(clock, lambda: len(link.began) >= 10)
    await ended(task)
    waits = [later - earlier for earlier, later in itertools.pairwise(link.began)]
    assert waits[:9] == [1, 2, 4, 8, 16, 32, LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY]
    assert link.closed == 1


async def test_chance_spreads_the_waits(clock: FakeClock) -> None:
    link = Link_(clock, [refused])
    task = asyncio.create_task(supervisor(link, chance=0.25).run())
    await until(clock, lambda: len(link.began) >= 4)
    await ended(task)
    assert [later - link.began[0] for later in link.began[:4]] == [0, 0.25, 0.75, 1.75]


async def test_a_healthy_while_starts_the_waits_anew(clock: FakeClock) -> None:
    short, long = held(HEALTHY_SECONDS - 1), held(HEALTHY_SECONDS)
    link = Link_(clock, [refused, refused, short, long, forever])
    task = asyncio.create_task(supervisor(link).run())
    await until(clock, lambda: len(link.began) == 5)
    await ended(task)
    first, second, third, fourth, fifth = link.began
    assert (second - first, third - second) == (1, 2)
    assert fourth - third == HEALTHY_SECONDS - 1 + 4
    assert fifth - fourth == HEALTHY_SECONDS + 1


async def test_ten_hours_of_lost_links_end_in_a_good_one(clock: FakeClock) -> None:
    link = Link_(clock, [*[held(30)] * 410, forever])
    running = supervisor(link)
    task = asyncio.create_task(running.run())
    await until(clock, lambda: len(link.began) == 411, step=60)
    assert running.health.link is Link.UP
    assert clock.monotonic() - link.began[0] > 10 * 3600
    await ended(task)


@pytest.mark.parametrize("grouped", [False, True])
async def test_a_channel_that_stops_is_not_run_again(clock: FakeClock, grouped: bool) -> None:
    stop = ChannelStopped(Stop.NEEDS_LOGIN, "log in with fake-token-1234")
    link = Link_(clock, [stopping(ExceptionGroup("", [OSError(), ExceptionGroup("", [stop])]) if grouped else stop)])
    running = supervisor(link)
    await running.run()
    assert len(link.began) == link.closed == 1
    assert running.health.link is Link.STOPPED
    assert running.health.why is Stop.NEEDS_LOGIN
    assert running.health.error == "log in with [hidden]"


async def test_health_tells_the_link_its_age_and_the_last_event(clock: FakeClock) -> None:
    async def run(_: Link_, inbox: Inbox) -> None:
        await clock.sleep(3)
        inbox.connected()
        await clock.sleep(4)
        await inbox.accept(MESSAGE)
        await forever(_, inbox)

    inbox = Accepting()
    running = supervisor(Link_(clock, [refused, run]), inbox)
    began = clock.time()
    seen = [running.health.link]
    task = asyncio.create_task(running.run())
    await asyncio.sleep(0)
    seen.append(running.health.link)
    assert seen == [Link.CLOSED, Link.CONNECTING]
    await until(clock, lambda: running.health.link is Link.WAITING)
    assert running.health.error == "ConnectionError: refused by [hidden]"
    await until(clock, lambda: running.health.last_event is not None)
    assert running.health.link is Link.UP
    assert running.health.since == began + 4
    assert running.health.last_event == began + 8
    assert inbox.connections >= 1
    await ended(task)
    seen.append(running.health.link)
    assert seen[-1] is Link.CLOSED


async def test_a_run_that_just_ends_or_cancels_itself_is_run_again(clock: FakeClock) -> None:
    async def end(_: Link_, __: Inbox) -> None:
        pass

    async def cancel(_: Link_, __: Inbox) -> None:
        raise asyncio.CancelledError

    link = Link_(clock, [end, cancel, forever])
    task = asyncio.create_task(supervisor(link).run())
    await until(clock, lambda: len(link.began) == 3)
    await ended(task)


async def test_one_bots_failure_never_touches_another(clock: FakeClock) -> None:
    bad = Link_(clock, [stopping(LookupError("a defect"))])
    gone = Link_(clock, [stopping(ChannelStopped(Stop.REPLACED, "replaced"))])
    good = Link_(clock, [forever])
    running = supervisor(good)

    async def together() -> None:
        async with asyncio.TaskGroup() as tasks:
            for each in (supervisor(bad), supervisor(gone), running):
                tasks.create_task(each.run())

    task = asyncio.create_task(together())
    await until(clock, lambda: len(bad.began) == 10)
    assert running.health.link is Link.UP
    assert len(good.began) == 1
    await ended(task)


async def test_the_old_run_has_ended_before_the_channel_is_closed(clock: FakeClock) -> None:
    async def slow_to_end(link: Link_, inbox: Inbox) -> None:
        try:
            await forever(link, inbox)
        finally:
            await clock.sleep(STOP_SECONDS - 1)
            assert link.closed == 0

    link = Link_(clock, [slow_to_end])
    running = supervisor(link)
    task = asyncio.create_task(running.run())
    await until(clock, lambda: running.health.link is Link.UP)
    await ended(task)
    assert link.closed == 1
    assert link.at_once == 0


async def test_a_channel_deaf_to_cancellation_is_left_behind_in_time(clock: FakeClock) -> None:
    release = asyncio.Event()

    async def deaf(link: Link_, inbox: Inbox) -> None:
        inbox.connected()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise ConnectionError("at last")

    link = Link_(clock, [deaf])
    running = supervisor(link)
    task = asyncio.create_task(running.run())
    await until(clock, lambda: running.health.link is Link.UP)
    began = clock.monotonic()
    await ended(task)
    assert clock.monotonic() - began == STOP_SECONDS
    release.set()
    while link.at_once:  # noqa: ASYNC110 - the run it left behind has no event to wait for
        await asyncio.sleep(0)


async def test_a_close_that_fails_or_hangs_changes_nothing(clock: FakeClock) -> None:
    class Stubborn(Link_):
        async def close(self) -> None:
            await super().close()
            if self.closed == 1:
                raise OSError("already gone")

    class Hanging(Link_):
        async def close(self) -> None:
            await asyncio.get_running_loop().create_future()

    for kind in (Stubborn, Hanging):
        await supervisor(kind(clock, [stopping(ChannelStopped(Stop.MISCONFIGURED, "no intents"))])).run()


async def test_what_a_platform_says_cannot_act_on_the_operators_screen(clock: FakeClock) -> None:
    said = ChannelStopped(Stop.MISCONFIGURED, "\x1b[2Jall\nwell\x9b1m\u202e fake-\u200btoken-1234")
    running = supervisor(Link_(clock, [stopping(said)]))
    await running.run()
    assert running.health.error is not None
    assert "[2Jall well 1m [hidden]" in running.health.error
    assert running.health.error.isprintable()


async def test_a_missing_package_stops_the_bot_and_says_what_to_install(clock: FakeClock) -> None:
    async def without(link: Link_, inbox: Inbox) -> None:
        raise ModuleNotFoundError("No module named 'telegram'")

    link = Link_(clock, [without])
    running = supervisor(link)
    await running.run()
    assert (running.health.link, running.health.why) == (Link.STOPPED, Stop.NOT_INSTALLED)
    assert running.health.error is not None
    assert f"pip install 'harness-im[{running.health.bot.channel}]'" in running.health.error

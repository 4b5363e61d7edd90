"""Watching a prompt on both host generations, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from harness_client.client import Address, HarnessClient
from harness_client.clock import SYSTEM_CLOCK
from harness_client.errors import SessionNotFound, Unreachable
from harness_client.turn import TurnEnding, TurnReader
from harness_client.types import Generation, RequestId, SessionId, TextPart
from harness_client.watch import PromptLost, PromptParked, Watch
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, Tool, say
from tests.fakes.harness.dialect import Flavour

OURS = RequestId("ours")


@pytest.fixture(params=list(Generation))
async def host(request: pytest.FixtureRequest) -> AsyncIterator[FakeHarness]:
    async with FakeHarness(request.param) as host:
        yield host


@pytest.fixture
async def client(host: FakeHarness) -> AsyncIterator[HarnessClient]:
    async with HarnessClient(Address.parse(host.url)) as client:
        yield client


class Watched:
    """One watched prompt of a test."""

    def __init__(self, client: HarnessClient, session: str) -> None:
        self.client = client
        self.reader = TurnReader(OURS)
        self.seen: list[str] = []
        self._changed = asyncio.Event()
        self.watch = Watch(client, SessionId(session), self.reader, SYSTEM_CLOCK, self.note)

    def note(self) -> None:
        self.seen.append(self.reader.text())
        self._changed.set()

    def send(self, text: str = "hello") -> Callable[[], Awaitable[None]]:
        return lambda: self.client.prompt(self.watch.session, [TextPart(text)], request=OURS)

    async def until(self, text: str) -> None:
        async with asyncio.timeout(10):
            while self.reader.text() != text:
                self._changed.clear()
                await self._changed.wait()


def waiting(client: HarnessClient, session: str) -> tuple[FakeClock, asyncio.Task[None]]:
    """Look, on a clock of its own, for a prompt that was sent and never arrived."""
    clock = FakeClock()
    watch = Watch(client, SessionId(session), TurnReader(OURS), clock, lambda: None)
    watch.sent.set()
    return clock, asyncio.create_task(watch.until_lost())


async def moved_on(clock: FakeClock, task: asyncio.Task[None]) -> None:
    """Move the time that ``task`` waits for, as long as it waits."""
    async with asyncio.timeout(10):
        while not task.done():
            if clock.sleepers:
                await clock.advance(3)
            await asyncio.wait([task], timeout=0.01)


async def test_an_answer_streams_and_ends(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    hold = asyncio.Event()
    host.model.script(say("Hel", "lo", hold, " there", reasoning=["secret"]))
    watched = Watched(client, session.id)
    task = asyncio.create_task(watched.watch.until_ended(watched.send(), patience=5))
    await watched.until("Hello")
    hold.set()
    await task
    assert watched.reader.text() == "Hello there"
    assert watched.reader.ending is TurnEnding.COMPLETED
    assert not any("secret" in text for text in watched.seen)


async def test_all_steps_of_a_turn_are_in_the_answer(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    host.model.script(say("First.", tools=[Tool("bash", {"command": "ls"}, "TOOL OUTPUT")]), say("Second."))
    watched = Watched(client, session.id)
    await watched.watch.until_ended(watched.send(), patience=5)
    assert watched.reader.text() == "First.\n\nSecond."


async def test_a_cut_link_loses_nothing(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    hold = asyncio.Event()
    host.model.script(say("One.", tools=[Tool("bash")]), say("Two", hold, "."))
    watched = Watched(client, session.id)
    task = asyncio.create_task(watched.watch.until_ended(watched.send(), patience=5))
    await watched.until("One.\n\nTwo")
    host.cut()
    hold.set()
    await task
    assert watched.reader.text() == "One.\n\nTwo."
    assert [call.name for call in host.writes].count("session.prompt") + [c.name for c in host.writes].count(
        "session/prompt"
    ) == 1


async def test_a_lost_answer_to_the_prompt_is_looked_for_and_not_sent_again(
    host: FakeHarness, client: HarnessClient
) -> None:
    session = host.session()
    for name in ("session.prompt", "session/prompt"):
        host.fail(name, drop="before", effect=True, times=1)
    watched = Watched(client, session.id)
    await watched.watch.until_ended(watched.send(), patience=5)
    assert watched.reader.text() == "You said: hello"
    assert sum(call.name in ("session.prompt", "session/prompt") for call in host.calls) == 1


async def test_a_prompt_the_host_never_got_is_lost(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    for name in ("session.prompt", "session/prompt"):
        host.fail(name, drop="before", times=1)
    clock = FakeClock()
    watched = Watched(client, session.id)
    watch = Watch(client, watched.watch.session, watched.reader, clock, watched.note)
    link = asyncio.create_task(watch.until_ended(watched.send(), patience=3600))
    await watch.sent.wait()
    lost = asyncio.create_task(watch.until_lost())
    await moved_on(clock, lost)
    with pytest.raises(PromptLost):
        await lost
    link.cancel()
    await asyncio.wait([link])


async def test_a_prompt_that_a_stop_parked_is_noticed(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    hold = asyncio.Event()
    host.model.script(say("theirs", hold))
    await client.prompt(SessionId(session.id), [TextPart("theirs")], request=RequestId("theirs"))
    await host.until(lambda: bool(session.partial))
    clock = FakeClock()
    watched = Watched(client, session.id)
    watch = Watch(client, watched.watch.session, watched.reader, clock, watched.note)
    link = asyncio.create_task(watch.until_ended(watched.send(), patience=3600))
    await watch.sent.wait()
    parked = asyncio.create_task(watch.until_lost())
    await client.cancel(SessionId(session.id))
    await moved_on(clock, parked)
    with pytest.raises(PromptParked):
        await parked
    link.cancel()
    await asyncio.wait([link])


async def test_an_old_turn_is_found_pages_back(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    watched = Watched(client, session.id)
    await watched.watch.until_ended(watched.send("old"), patience=5)
    for number in range(60):
        await client.prompt(watched.watch.session, [TextPart(f"later {number}")], request=RequestId(f"r{number}"))
    await host.settle()
    found = Watched(client, session.id)
    await found.watch.until_ended(patience=5)
    assert found.reader.text() == "You said: old"
    assert found.reader.ending is TurnEnding.COMPLETED


async def test_nothing_is_sent_when_the_session_is_gone_or_the_host_is_away(
    host: FakeHarness, client: HarnessClient
) -> None:
    watched = Watched(client, "session-nowhere")
    with pytest.raises(SessionNotFound):
        await watched.watch.until_ended(watched.send(), patience=5)
    await host.stop()
    with pytest.raises(Unreachable):
        await watched.watch.until_ended(watched.send(), patience=5)
    assert not host.writes or all("prompt" not in call.name for call in host.writes)


@pytest.mark.parametrize("flavour", ["0.1.2", "0.1.5"])
async def test_a_host_without_projections_is_asked_whether_it_runs(flavour: Flavour) -> None:
    async with FakeHarness(flavour=flavour) as host, HarnessClient(Address.parse(host.url)) as client:
        clock, lost = waiting(client, host.session().id)
        await moved_on(clock, lost)
        with pytest.raises(PromptLost):
            await lost


async def test_no_answer_is_no_proof_that_a_prompt_is_lost(host: FakeHarness, client: HarnessClient) -> None:
    clock, lost = waiting(client, host.session().id)
    await client.health()
    fault = host.fail("*", status=500)
    async with asyncio.timeout(10):
        while fault.met < 6:
            await clock.advance(3)
            await asyncio.wait([lost], timeout=0.01)
    assert not lost.done()
    host.heal()
    host.world.sessions.clear()
    await moved_on(clock, lost)
    with pytest.raises(SessionNotFound):
        await lost

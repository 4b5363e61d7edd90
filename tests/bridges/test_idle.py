"""When dsh's summaries are written, over a fake host on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from archive.files import ArchiveFolder
from archive.model import Host, Summary
from archive.service import RemoteDsh
from bridges.archives import WORKSPACES, Archives
from bridges.idle import IdleSummaries
from harness_client.client import Address, HarnessClient
from harness_client.clock import SystemClock
from harness_client.types import SessionId
from tests.bridges.bench import eventually
from tests.fakes.harness import FakeHarness, Session
from tests.fakes.harness.events import text
from tests.fakes.harness.model import say

A, B = SessionId("session-a"), SessionId("session-b")


class AtOnce(SystemClock):
    """Nobody waits for a workspace to stay quiet."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Scribe:
    """Writes summaries, or stands with the pen in its hand until it is taken away."""

    def __init__(self) -> None:
        self.asked = 0
        self.taken_away = 0
        self.hangs = False

    async def write(self, instructions: str, material: str) -> str:
        self.asked += 1
        if self.hangs:
            try:
                await asyncio.Event().wait()
            finally:
                self.taken_away += 1
        return "in short"


class Rig:
    """A host with two sessions in one folder, each with four pairs."""

    def __init__(self, host: FakeHarness, client: HarnessClient, folder: Path) -> None:
        self.host, self.folder, self.scribe = host, folder, Scribe()
        self.sessions = {name: self._session(name, folder) for name in (A, B)}
        self.idle = IdleSummaries(client, Archives(RemoteDsh(client)), self.scribe, AtOnce())

    def _session(self, name: SessionId, folder: Path) -> Session:
        session = self.host.session(name, cwd=str(folder))
        session.dialogue(4)
        return session

    def written(self, folder: Path | None = None) -> int:
        archives = ArchiveFolder(folder or self.folder, Host.DSH).load().archives.values()
        return sum(isinstance(node, Summary) and node.ready for each in archives for node in each.nodes.values())

    async def until(self, condition: Callable[[], bool]) -> None:
        await eventually(condition)

    async def over(self) -> None:
        """Wait until whatever was started is done."""
        work = self.idle._work
        assert work is not None
        async with asyncio.timeout(10):
            await asyncio.wait({work})


@pytest.fixture
async def rig(host: FakeHarness, tmp_path: Path) -> AsyncIterator[Rig]:
    async with HarnessClient(Address.parse(host.url)) as client:
        made = Rig(host, client, tmp_path)
        async with made.idle:
            yield made


def turn(rig: Rig, session: SessionId = A, *, normally: bool = True) -> None:
    rig.idle.began(session)
    rig.idle.ended(session, normally=normally)


async def test_a_normal_end_has_the_workspace_summarised(rig: Rig) -> None:
    turn(rig)
    await rig.until(lambda: rig.written() == 2)
    await rig.over()
    assert rig.scribe.asked == 2
    assert rig.host.writes == []
    turn(rig)
    await rig.over()
    assert rig.scribe.asked == 2


async def test_another_end_has_not(rig: Rig) -> None:
    turn(rig, normally=False)
    assert rig.idle._work is None


async def test_not_while_a_turn_of_ours_goes_on(rig: Rig) -> None:
    rig.idle.began(B)
    turn(rig)
    await rig.over()
    assert rig.scribe.asked == 0
    rig.idle.ended(B, normally=False)
    await rig.until(lambda: rig.written() == 2)


async def test_not_while_somebody_else_s_turn_goes_on(rig: Rig) -> None:
    go_on = asyncio.Event()
    rig.host.model.script(say("slow", go_on))
    rig.sessions[B].prompt([text("from elsewhere")], None, "queue")
    turn(rig)
    await rig.over()
    assert rig.scribe.asked == 0
    go_on.set()
    await rig.host.settle()
    turn(rig)
    await rig.until(lambda: rig.written() >= 2)


async def test_a_new_prompt_takes_the_pen_away(rig: Rig) -> None:
    rig.scribe.hangs = True
    turn(rig)
    await rig.until(lambda: rig.scribe.asked == 1)
    rig.idle.began(B)
    await rig.over()
    assert (rig.scribe.taken_away, rig.written()) == (1, 0)
    rig.scribe.hangs = False
    rig.idle.ended(B, normally=False)
    await rig.until(lambda: rig.written() == 2)


async def test_a_turn_that_somebody_else_begins_does_too(rig: Rig) -> None:
    rig.scribe.hangs = True
    turn(rig)
    await rig.until(lambda: rig.scribe.asked == 1)
    await rig.until(lambda: any(call.name in ("$events", "events.host") for call in rig.host.calls))
    go_on = asyncio.Event()
    rig.host.model.script(say("slow", go_on))
    rig.sessions[B].prompt([text("from elsewhere")], None, "queue")
    await rig.over()
    go_on.set()
    await rig.host.settle()
    assert (rig.scribe.taken_away, rig.written()) == (1, 0)


async def test_a_turn_that_ends_while_the_pen_is_taken_away_is_not_forgotten(rig: Rig) -> None:
    rig.scribe.hangs = True
    turn(rig)
    await rig.until(lambda: rig.scribe.asked == 1)
    rig.scribe.hangs = False
    turn(rig, B)
    await rig.until(lambda: rig.written() == 2)
    assert rig.scribe.taken_away == 1


async def test_another_workspace_does_not_disturb(rig: Rig, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = SessionId("session-elsewhere")
    rig.host.session(elsewhere, cwd=str(other)).dialogue(4)
    rig.idle.began(elsewhere)
    turn(rig)
    await rig.until(lambda: rig.written() == 2)
    await rig.over()
    rig.idle.ended(elsewhere, normally=True)
    await rig.until(lambda: rig.written(other) == 1)


async def test_leaving_ends_the_work(host: FakeHarness, tmp_path: Path) -> None:
    async with HarnessClient(Address.parse(host.url)) as client:
        rig = Rig(host, client, tmp_path)
        rig.scribe.hangs = True
        async with rig.idle:
            turn(rig)
            await rig.until(lambda: rig.scribe.asked == 1)
        assert rig.scribe.taken_away == 1


async def test_a_host_that_is_away_and_a_session_that_is_gone(rig: Rig) -> None:
    fault = rig.host.fail("*", status=500)
    turn(rig)
    await rig.over()
    assert rig.scribe.asked == 0
    assert fault is not None
    rig.host.heal()
    turn(rig, SessionId("session-gone"), normally=True)
    await rig.until(lambda: rig.written() == 2)
    await rig.over()
    assert rig.idle._wanted == {}


def test_only_a_few_workspaces_are_kept(tmp_path: Path) -> None:
    class Nothing(RemoteDsh):
        def __init__(self) -> None:
            pass

    archives = Archives(Nothing())
    first = archives.of("/0")
    assert archives.of("/0") is first
    for number in range(1, WORKSPACES + 1):
        archives.of(f"/{number}")
    assert archives.of("/0") is not first

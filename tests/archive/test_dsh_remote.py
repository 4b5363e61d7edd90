"""The same sessions from a host far away: the real client, over a real socket, against a fake of every release line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from archive.files import ArchiveFolder
from archive.model import Code, EndReason, Host, Lineage, Notice, Origin, Pair, Parentage
from archive.refresh import Report, refresh_remote
from archive.sources.dsh_remote import PAGE
from harness_client.client import Address, HarnessClient
from harness_client.events import Event, parse_event
from harness_client.streams import Page
from harness_client.types import SessionId, SessionSummary
from tests.archive.native import DshLines
from tests.fakes.harness import FakeHarness
from tests.fakes.harness.dialect import DIALECTS, Flavour

FLAVOURS: tuple[Flavour, ...] = ("0.1.0", "0.1.2", "0.1.5", "0.2")


@pytest.fixture(params=FLAVOURS)
async def host(request: pytest.FixtureRequest) -> AsyncIterator[FakeHarness]:
    flavour: Flavour = request.param
    async with FakeHarness(DIALECTS[flavour].generation, flavour=flavour) as host:
        yield host


@pytest.fixture
async def client(host: FakeHarness) -> AsyncIterator[HarnessClient]:
    async with HarnessClient(Address.parse(host.url)) as client:
        yield client


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "ws"
    path.mkdir()
    return path


@pytest.fixture
def folder(workspace: Path) -> ArchiveFolder:
    return ArchiveFolder(workspace, Host.DSH)


def pairs(folder: ArchiveFolder, session: str) -> list[Pair]:
    (archive,) = (each for each in folder.load().archives.values() if each.session == session)
    return list(archive.pairs.values())


async def test_sessions_and_their_experts_come_page_by_page(
    host: FakeHarness, client: HarnessClient, folder: ArchiveFolder, workspace: Path
) -> None:
    root = host.session("session-root", cwd=str(workspace))
    for number in range(PAGE):  # more than two pages of messages
        turn = root.start()
        root.user(f"question {number}")
        root.assistant(f"answer {number}", turn=turn)
        root.end()
    child = host.session("child", cwd="/elsewhere", parent="session-root", origin="subagent")
    turn = child.start()
    child.user("task", kind="user")
    child.assistant("cut", turn=turn, interrupted=True)
    child.end("aborted")
    host.session("session-other", cwd="/elsewhere")

    report = await refresh_remote(folder, workspace, client)

    assert report == Report(Host.DSH, sessions=2, pairs=PAGE + 1, added=2, updated=0, unchanged=0, warnings=())
    assert [pair.inputs[0].text for pair in pairs(folder, "session-root")] == [f"question {n}" for n in range(PAGE)]
    (task,) = pairs(folder, "child")
    assert (task.inputs[0].origin, task.answer, task.end_reason) == (Origin.DELEGATION, "cut", EndReason.ABORTED)
    assert host.writes == []


async def test_an_unchanged_session_is_not_read_again(
    host: FakeHarness, client: HarnessClient, folder: ArchiveFolder, workspace: Path
) -> None:
    root = host.session("session-root", cwd=str(workspace))
    turn = root.start()
    root.user("q")
    root.assistant("a", turn=turn)
    root.end()
    told: list[tuple[int, int]] = []
    await refresh_remote(folder, workspace, client, lambda done, total: told.append((done, total)))
    calls = len(host.calls)
    assert (await refresh_remote(folder, workspace, client)).unchanged == 1
    assert len(host.calls) == calls + 1
    assert told == [(1, 1)]


async def test_a_host_that_does_not_answer_leaves_the_archive_as_it_is(
    host: FakeHarness, client: HarnessClient, folder: ArchiveFolder, workspace: Path
) -> None:
    root = host.session("session-root", cwd=str(workspace))
    turn = root.start()
    root.user("q")
    root.assistant("a", turn=turn)
    root.end()
    await refresh_remote(folder, workspace, client)
    before = folder.load()
    host.fail("*", status=500)
    report = await refresh_remote(folder, workspace, client)
    assert report.warnings == (Notice(Code.UNREADABLE, "dsh"),)
    assert folder.load() == before


class Scripted:
    """A host of one session that hands out these pages, newest first, and repeats the last."""

    def __init__(self, workspace: Path, *pages: Page) -> None:
        self._pages = list(pages)
        self.row = SessionSummary(
            id=SessionId("s"),
            title="From the \ud83d list",
            updated_at=7,
            running=False,
            cwd=str(workspace),
            parent=SessionId("gone"),
            subagent=False,
            preset=None,
            as_of_seq=None,
        )

    async def sessions(self) -> tuple[SessionSummary, ...]:
        return (self.row,)

    async def page(
        self,
        session: SessionId,
        *,
        before: int | None = None,
        through: int | None = None,
        limit: int = 50,
        parent: SessionId | None = None,
    ) -> Page:
        assert (session, limit, parent) == ("s", PAGE, None)
        assert (before is None) is (through is None)
        return self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]


def page(events: Sequence[Event], *, more: bool) -> Page:
    return Page(tuple(events), more, 99, {event.seq: "" for event in events})


@pytest.fixture
def events(workspace: Path) -> list[Event]:
    return [parse_event(line) for line in DshLines("s", workspace).pair("q", "a").pair("r", "b").lines[1:]]


async def test_overlapping_pages_in_any_order_are_one_log(
    folder: ArchiveFolder, workspace: Path, events: list[Event]
) -> None:
    scripted = Scripted(
        workspace, page(events[5:], more=True), page(events[6:1:-1], more=True), page(events[:4], more=False)
    )
    await refresh_remote(folder, workspace, scripted)
    (archive,) = folder.load().archives.values()
    assert [pair.answer for pair in archive.pairs.values()] == ["a", "b"]
    assert (archive.title, archive.lineage) == ("From the \ufffd list", Lineage(SessionId("gone"), Parentage.FORK))
    assert archive.created_at == "2026-03-01T10:00:00.001Z"


@pytest.mark.parametrize("empty", [True, False])
async def test_pages_that_lead_nowhere_are_given_up(
    folder: ArchiveFolder,
    workspace: Path,
    events: list[Event],
    empty: bool,
) -> None:
    scripted = Scripted(workspace, page([] if empty else events, more=True))
    report = await refresh_remote(folder, workspace, scripted)
    assert report.warnings == (Notice(Code.UNREADABLE, "s"),)
    assert folder.load().archives == {}


async def test_a_host_without_end_is_given_up(
    folder: ArchiveFolder, workspace: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archive.sources.dsh_remote.MAX_PAGES", 3)
    scripted = Scripted(workspace, *[page([event], more=True) for event in reversed(events)])
    assert (await refresh_remote(folder, workspace, scripted)).warnings == (Notice(Code.UNREADABLE, "s"),)


async def test_an_empty_session_leaves_no_archive(folder: ArchiveFolder, workspace: Path) -> None:
    report = await refresh_remote(folder, workspace, Scripted(workspace, page([], more=False)))
    assert (report.sessions, report.warnings) == (0, ())
    assert list(workspace.iterdir()) == []

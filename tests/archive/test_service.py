"""The service as faces use it: which sources it refreshes, what it never touches."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from archive.answers import Why
from archive.files import ArchiveFolder
from archive.model import Code, Host, NodeId
from archive.problem import BadRequest, Fault
from archive.refresh import Progress, Report
from archive.request import Read, Search
from archive.service import HistoryService, LocalDsh, LocalPi, Native, RemoteDsh
from archive.sources.pi_locate import PiHome, default_directory
from harness_client.errors import Unreachable
from harness_client.streams import Page
from harness_client.types import SessionId, SessionSummary
from tests.archive.libraries import pair, publish, session
from tests.archive.native import DshLines, pi_session, tree, write


class Machine:
    """A workspace with sessions of both hosts."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.native = root / "ws", root / "native"
        self.workspace.mkdir()
        agent = self.native / "agent"
        self.sessions = default_directory(agent, str(self.workspace))
        self.pi, self.dsh = LocalPi(PiHome(agent)), LocalDsh(self.native / "dsh")
        write(self.sessions / "1.jsonl", pi_session("one", self.workspace, pairs=2))
        DshLines("session-x", self.workspace).pair("question", "answer").save(self.native / "dsh")

    def service(self, *hosts: Host) -> HistoryService:
        natives: dict[Host, Native] = {Host.PI: self.pi, Host.DSH: self.dsh}
        return HistoryService(self.workspace, {host: natives[host] for host in hosts})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def found(service: HistoryService, query: str = "", *, refresh: bool = True) -> list[str]:
    return [result.id for result in (await service.search(Search(query), refresh=refresh)).results]


async def test_a_search_refreshes_what_is_current_and_reads_the_rest(machine: Machine) -> None:
    before = tree(machine.native)
    assert await found(machine.service(Host.PI)) == ["one"]
    assert await found(machine.service(Host.DSH)) == ["dsh-session-x", "one"]
    write(machine.sessions / "2.jsonl", pi_session("two", machine.workspace))
    assert await found(machine.service(Host.DSH)) == ["dsh-session-x", "one"]
    assert await found(machine.service(Host.PI), refresh=False) == ["dsh-session-x", "one"]
    assert await found(machine.service(Host.PI)) == ["dsh-session-x", "one", "two"]
    (machine.sessions / "2.jsonl").unlink()
    assert tree(machine.native).keys() == before.keys()


async def test_what_was_found_is_read(machine: Machine) -> None:
    service = machine.service(Host.PI, Host.DSH)
    hits = (await service.search(Search("QUESTION 2"))).results
    page = await service.read(Read(hits[0].id))
    assert page.text == "question 2\n\nanswer 2"
    with pytest.raises(BadRequest) as caught:
        await service.read(Read(NodeId("absent")))
    assert caught.value.code is Fault.UNKNOWN_ID


async def test_a_copied_workspace_answers_where_it_lies(machine: Machine, tmp_path: Path) -> None:
    await machine.service(Host.PI, Host.DSH).refresh()
    copy = tmp_path / "elsewhere"
    machine.workspace.rename(copy)
    assert await found(HistoryService(copy, {}), "question") != []
    assert not machine.workspace.exists()


async def test_refreshes_tell_each_source(machine: Machine) -> None:
    told: list[tuple[int, int]] = []
    answers = await machine.service(Host.PI, Host.DSH).refresh(progress=lambda *step: told.append(step))
    assert [(each.host, each.sessions, each.added) for each in answers] == [(Host.PI, 1, 1), (Host.DSH, 1, 1)]
    assert told == [(1, 1), (1, 1)]
    with pytest.raises(BadRequest) as caught:
        await machine.service(Host.PI).refresh(Host.DSH)
    assert (caught.value.code, caught.value.parameter) == (Fault.UNKNOWN_HOST, "host")


async def test_a_warning_of_the_scan_is_told_with_the_results(machine: Machine) -> None:
    (machine.sessions / "bad.jsonl").write_bytes(b"{}\n")
    answer = await machine.service(Host.PI).search(Search("absent"))
    assert [(each.code, each.subject) for each in answer.warnings] == [(Code.NO_HEADER, "bad.jsonl")]
    assert answer.reason is not None
    assert (answer.reason.code, answer.reason.unreadable) == (Why.NO_MATCH, 1)


async def test_unreadable_archives_are_why_nothing_is_found(tmp_path: Path) -> None:
    publish(tmp_path, session("s", [pair(0, "x")]))
    file = ArchiveFolder(tmp_path, Host.PI).path / "s.json"
    file.write_bytes(file.read_bytes()[:-9])
    answer = await HistoryService(tmp_path, {}).search(Search("x"))
    assert answer.reason is not None
    assert answer.reason.code is Why.UNREADABLE
    assert [each.code for each in answer.warnings] == [Code.ARCHIVE_DAMAGED]


async def test_scans_do_not_overlap(tmp_path: Path) -> None:
    running = 0

    class Slow:
        async def refresh(self, folder: ArchiveFolder, workspace: Path, progress: Progress | None) -> Report:
            nonlocal running
            running += 1
            await asyncio.sleep(0)
            assert running == 1
            running -= 1
            return Report(folder.host, 0, 0, 0, 0, 0, ())

    service = HistoryService(tmp_path, {Host.DSH: Slow()})
    await asyncio.gather(*(service.search(Search()) for _ in range(5)))


async def test_a_workspace_that_is_not_here_is_not_scanned(tmp_path: Path) -> None:
    class Untouched:
        async def refresh(self, folder: ArchiveFolder, workspace: Path, progress: Progress | None) -> Report:
            raise AssertionError

    service = HistoryService(tmp_path / "elsewhere", {Host.DSH: Untouched()})
    answer = await service.search(Search("x"))
    assert [(each.code, each.subject) for each in answer.warnings] == [(Code.ARCHIVE_NOT_SAVED, "dsh")]
    assert answer.reason is not None
    assert not (tmp_path / "elsewhere").exists()


class Gone:
    """A remote host that does not answer."""

    async def sessions(self) -> tuple[SessionSummary, ...]:
        raise Unreachable("gone")

    async def page(
        self,
        session: SessionId,
        *,
        before: int | None = None,
        through: int | None = None,
        limit: int = 50,
        parent: SessionId | None = None,
    ) -> Page:
        raise AssertionError


async def test_a_host_that_is_away_leaves_its_archive(tmp_path: Path) -> None:
    publish(tmp_path, session("dsh-s", [pair(0, "x")], host=Host.DSH))
    answer = await HistoryService(tmp_path, {Host.DSH: RemoteDsh(Gone())}).search(Search("x"))
    assert [result.id for result in answer.results] == ["dsh-s-0"]
    assert [each.code for each in answer.warnings] == [Code.UNREADABLE]


async def test_unchanged_archives_are_not_read_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    service = machine.service(Host.PI)
    assert await found(service, "question 1") != []
    folded: list[str] = []

    def spy(text: str) -> str:
        folded.append(text)
        return text

    monkeypatch.setattr("archive.shelf.fold", spy)
    assert await found(service, "question 1") != []
    assert folded == []
    write(machine.sessions / "1.jsonl", pi_session("one", machine.workspace, pairs=3))
    assert await found(service, "question 3") != []
    assert folded != []

from __future__ import annotations

import asyncio
import json
import multiprocessing
import multiprocessing.synchronize
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archive.answers import SummarizeAnswer
from archive.files import ArchiveFolder, Commit, NotSaved
from archive.material import BATCH, LONGEST, instructions
from archive.model import Code, EndReason, Host, Lineage, NodeId, Parentage, SessionArchive, Summary
from archive.service import HistoryService
from archive.summaries import FAILURES_IN_A_ROW, Run
from archive.tree import digest, due, grouped
from archive.writers import WriterFailed
from harness_client.types import SessionId
from tests.archive.libraries import pair, publish, session
from tests.archive.making import moments, scan_of


class Scribe:
    """A writer that keeps what it was given and says what ``answers`` says."""

    def __init__(self, answer: Callable[[str], Awaitable[str]] | None = None) -> None:
        self.given: list[str] = []
        self._answer = answer

    async def write(self, instructions: str, material: str) -> str:
        assert "material" in instructions
        self.given.append(material)
        return await self._answer(material) if self._answer else f"summary {len(self.given)}"


def chat(name: str = "s", count: int = 4, **more: object) -> SessionArchive:
    return session(name, [pair(number, f"q{number}", answer=f"a{number}", at=number) for number in range(count)])


def load(workspace: Path, name: str = "s") -> SessionArchive:
    return ArchiveFolder(workspace, Host.PI).load().archives[NodeId(name)]


def texts(archive: SessionArchive) -> list[str | None]:
    return [node.text for node in archive.nodes.values() if isinstance(node, Summary) and node.ready]


async def fill(workspace: Path, scribe: Scribe, stop: asyncio.Event | None = None) -> SummarizeAnswer:
    return await Run(ArchiveFolder(workspace, Host.PI), scribe, stop or asyncio.Event()).fill_in()


async def test_levels_are_filled_in_one_call_at_a_time(tmp_path: Path) -> None:
    publish(tmp_path, chat(count=17))
    running = 0

    async def answer(material: str) -> str:
        nonlocal running
        running += 1
        await asyncio.sleep(0)
        assert running == 1
        running -= 1
        return f"in short: {len(material.splitlines())}"

    scribe = Scribe(answer)
    done = await fill(tmp_path, scribe)
    assert (done.written, done.failed, done.pending, done.cancelled, done.warnings) == (5, 0, 0, False, ())
    assert len(scribe.given) == 5
    stored = load(tmp_path)
    assert texts(stored) == ["in short: 8"] * 4 + ["in short: 4"]
    assert len(stored.roots) == 2
    assert (await fill(tmp_path, scribe)).written == 0
    assert len(scribe.given) == 5


async def test_the_model_sees_the_children_and_nothing_else(tmp_path: Path) -> None:
    made = session(
        "s",
        [
            pair(0, "q0", answer="a0", later=["more"], at=0),
            pair(1, "q1", "and", answer="part", end=EndReason.ABORTED, at=1),
            pair(2, "q2", end=EndReason.INTERRUPTED, at=2),
            pair(3, 'a "quote"\nand a line', answer="a3", at=3),
        ],
    )
    publish(tmp_path, made)
    scribe = Scribe()
    await fill(tmp_path, scribe)
    (material,) = scribe.given
    lines = [json.loads(line) for line in material.split("\n")]
    assert [(line["item"], line["from"], line["text"]) for line in lines] == [
        (1, "question", "q0"),
        (1, "answer", "a0"),
        (1, "answer", "more"),
        (2, "question", "q1"),
        (2, "question", "and"),
        (2, "answer", "part"),
        (3, "question", "q2"),
        (4, "question", 'a "quote"\nand a line'),
        (4, "answer", "a3"),
    ]
    assert [(line["completed"], line.get("endReason")) for line in (lines[0], lines[3], lines[6])] == [
        (True, None),
        (False, "aborted"),
        (False, "interrupted"),
    ]
    assert lines[0]["start"] == made.pairs[NodeId("s-0")].start
    assert lines[0].keys() == {"item", "start", "end", "completed", "from", "text"}
    assert "history" in instructions()


async def test_overlong_text_is_summarised_in_parts_and_merged(tmp_path: Path) -> None:
    long = "字" * (BATCH + BATCH // 2)
    publish(tmp_path, session("s", [pair(0, long, answer="x"), *(pair(n, f"q{n}", at=n) for n in (1, 2, 3))]))
    scribe = Scribe()
    done = await fill(tmp_path, scribe)
    assert (done.written, len(scribe.given)) == (1, 3)
    parts = [json.loads(line) for material in scribe.given[:2] for line in material.split("\n")]
    assert "".join(part["text"] for part in parts if part["item"] == 1 and part["from"] == "question") == long
    assert [part["part"] for part in parts if "part" in part] == ["1/2", "2/2"]
    merged = [json.loads(line) for line in scribe.given[2].split("\n")]
    assert [(line["from"], line["text"]) for line in merged] == [("summary", "summary 1"), ("summary", "summary 2")]
    assert texts(load(tmp_path)) == ["summary 3"]
    assert load(tmp_path).pairs[NodeId("s-0")].inputs[0].text == long


async def test_a_summary_is_bounded(tmp_path: Path) -> None:
    publish(tmp_path, chat())

    async def endless(_material: str) -> str:
        return "y" * (10 * LONGEST)

    await fill(tmp_path, Scribe(endless))
    assert texts(load(tmp_path)) == ["y" * LONGEST]


async def test_a_failure_keeps_the_rest_pending_with_a_warning_until_it_is_mended(tmp_path: Path) -> None:
    publish(tmp_path, chat(count=8))

    async def fails_once(material: str) -> str:
        if '"q4"' in material:
            raise WriterFailed(Code.WRITER_TIMED_OUT)
        return "fine"

    done = await fill(tmp_path, Scribe(fails_once))
    assert (done.written, done.failed, done.pending) == (1, 1, 1)
    assert [(each.code, each.subject) for each in done.warnings] == [(Code.WRITER_TIMED_OUT, "native-s")]
    assert texts(load(tmp_path)) == ["fine"]
    service = HistoryService(tmp_path, {})
    done = await service.summarize(Host.PI, Scribe())
    assert (done.written, done.failed, done.pending, done.warnings) == (1, 0, 0, ())


async def test_a_refresh_does_not_hide_a_failure(tmp_path: Path) -> None:
    folder = ArchiveFolder(tmp_path, Host.PI)
    folder.commit(scan_of(moments(4)))

    async def fails(_material: str) -> str:
        raise WriterFailed(Code.WRITER_UNREACHABLE)

    await fill(tmp_path, Scribe(fails))
    folder.commit(scan_of(moments(5)))
    assert load(tmp_path).summary_warnings == (Code.WRITER_UNREACHABLE,)
    assert load(tmp_path).scan_warnings == ()


async def test_a_model_that_keeps_failing_is_left_alone(tmp_path: Path) -> None:
    publish(tmp_path, *(chat(f"s{number}", 8) for number in range(4)))

    async def fails(_material: str) -> str:
        raise WriterFailed(Code.WRITER_FAILED)

    scribe = Scribe(fails)
    done = await fill(tmp_path, scribe)
    assert (done.written, done.failed, done.pending) == (0, FAILURES_IN_A_ROW, 8)
    assert len(scribe.given) == FAILURES_IN_A_ROW


async def test_stopped_at_any_moment_nothing_is_lost(tmp_path: Path) -> None:
    publish(tmp_path, chat(count=8))
    stop, called, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hangs(material: str) -> str:
        if '"q0"' in material:
            return "first"
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    run = asyncio.create_task(fill(tmp_path, Scribe(hangs), stop))
    await called.wait()
    stop.set()
    done = await run
    assert ended.is_set(), "the call was ended before the run was"
    assert (done.written, done.failed, done.pending, done.cancelled) == (1, 0, 1, True)
    assert texts(load(tmp_path)) == ["first"]
    assert load(tmp_path).summary_warnings == ()


async def test_cancelling_the_task_ends_the_call(tmp_path: Path) -> None:
    publish(tmp_path, chat())
    called, ended = asyncio.Event(), asyncio.Event()

    async def hangs(_material: str) -> str:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    run = asyncio.create_task(fill(tmp_path, Scribe(hangs)))
    await called.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert ended.is_set()


async def test_a_stale_summary_never_overwrites_children_that_changed(tmp_path: Path) -> None:
    publish(tmp_path, chat())

    async def meanwhile(_material: str) -> str:
        def grow(current: SessionArchive | None, _root: NodeId) -> SessionArchive:
            assert current is not None
            changed = pair(2, "q2", answer="another answer", at=2)
            return replace(current, nodes={**current.nodes, NodeId("s-2"): changed})

        ArchiveFolder(tmp_path, Host.PI).update(SessionId("native-s"), grow)
        return "made of what is no more"

    done = await fill(tmp_path, Scribe(meanwhile))
    assert (done.written, done.failed, done.pending) == (0, 0, 1)
    assert texts(load(tmp_path)) == []
    assert load(tmp_path).pairs[NodeId("s-2")].answer == "another answer"


async def test_a_committed_summary_is_never_overwritten(tmp_path: Path) -> None:
    publish(tmp_path, chat())

    async def meanwhile(_material: str) -> str:
        await fill(tmp_path, Scribe())
        return "too late"

    done = await fill(tmp_path, Scribe(meanwhile))
    assert (done.written, done.pending) == (0, 0)
    assert texts(load(tmp_path)) == ["summary 1"]


async def test_a_pair_that_changes_takes_its_summaries_back(tmp_path: Path) -> None:
    folder = ArchiveFolder(tmp_path, Host.PI)
    folder.commit(scan_of(moments(15, open_question="last")))
    await fill(tmp_path, Scribe())
    assert len(texts(load(tmp_path))) == 3
    folder.commit(scan_of(moments(16)))
    scribe = Scribe()
    done = await fill(tmp_path, scribe)
    assert (done.written, done.pending) == (2, 0)
    assert len(texts(load(tmp_path))) == 5


async def test_what_a_fork_copied_is_not_asked_for_again(tmp_path: Path) -> None:
    lineage = Lineage(SessionId("native-s"), Parentage.FORK)
    publish(tmp_path, chat("s", 4), replace(chat("fork", 8), lineage=lineage))
    scribe = Scribe()
    done = await fill(tmp_path, scribe)
    assert (done.written, len(scribe.given)) == (3, 2)


async def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path, chat(count=8))

    def full(*_: object) -> Commit:
        raise NotSaved(Code.ARCHIVE_NOT_SAVED)

    monkeypatch.setattr(ArchiveFolder, "update", full)
    done = await fill(tmp_path, Scribe())
    assert (done.written, done.pending) == (0, 2)
    assert [each.code for each in done.warnings] == [Code.ARCHIVE_NOT_SAVED]


async def test_an_archive_that_is_gone_is_a_warning(tmp_path: Path) -> None:
    publish(tmp_path, chat())

    async def meanwhile(_material: str) -> str:
        (tmp_path / ".pi" / "pbot" / "history" / "s.json").unlink()
        return "of nothing"

    done = await fill(tmp_path, Scribe(meanwhile))
    assert (done.written, done.pending, [each.code for each in done.warnings]) == (0, 0, [Code.UNREADABLE])


async def test_progress_is_told(tmp_path: Path) -> None:
    publish(tmp_path, chat(count=8))
    told: list[tuple[int, int]] = []
    service = HistoryService(tmp_path, {})
    await service.summarize(Host.PI, Scribe(), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def _summarise_all(workspace: Path, start: multiprocessing.synchronize.Barrier) -> None:
    start.wait(30)
    done = asyncio.run(fill(workspace, Scribe()))
    assert done.warnings == ()


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    publish(tmp_path, *(chat(f"s{number}", 20) for number in range(6)))
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    workers = [context.Process(target=_summarise_all, args=(tmp_path, start)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
        assert worker.exitcode == 0
    for archive in ArchiveFolder(tmp_path, Host.PI).load().archives.values():
        view = grouped(archive)
        assert due(view) == []
        assert len(archive.pairs) == 20
        for node in archive.nodes.values():
            assert not isinstance(node, Summary) or node.source_digest == digest(view, node.children)

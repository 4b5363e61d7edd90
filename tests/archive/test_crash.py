"""Death at any moment, and many writers at once."""

from __future__ import annotations

import asyncio
import multiprocessing
import multiprocessing.synchronize
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from archive import files, parsed
from archive.files import ArchiveFolder, Change
from archive.merge import merge
from archive.model import Host, NodeId, Scan, SessionArchive
from archive.refresh import refresh_pi
from archive.sources.pi import PiSource
from archive.sources.pi_locate import PiHome
from archive.summaries import Run
from tests.archive.making import moments, scan_of
from tests.archive.native import pi_session, write

if TYPE_CHECKING:
    from _typeshed import TraceFunction

BODY = 200_000
"""Characters of text in an archive, so that it is more than one write to the disk."""


def _scan(pairs: int) -> Scan:
    line = moments(pairs, open_question="x" * BODY)
    return scan_of(line)


def _dies(at: int, work: Callable[[], object]) -> bool:
    """Do ``work`` in a child that is killed before its ``at``-th step in the modules under test; say whether it was."""
    child = os.fork()
    if child == 0:
        steps = 0

        def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
            nonlocal steps
            if frame.f_code.co_filename not in (files.__file__, parsed.__file__):
                return None
            if event == "line":
                steps += 1
                if steps > at:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        threading.settrace(trace)
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def test_killed_between_any_two_lines_the_old_or_the_new_archive_stands(tmp_path: Path) -> None:
    root = NodeId("s")
    old, new = merge(None, _scan(1), root), merge(merge(None, _scan(1), root), _scan(2), root)
    outcomes: list[SessionArchive] = []
    step = 0
    while True:
        workspace = tmp_path / str(step)
        workspace.mkdir()
        ArchiveFolder(workspace, Host.PI).commit(_scan(1))
        died = _dies(step, partial(ArchiveFolder(workspace, Host.PI).commit, _scan(2)))
        survivor = ArchiveFolder(workspace, Host.PI, lock_timeout=0)
        contents = survivor.load()
        assert contents.notices == ()
        outcomes += contents.archives.values()
        assert survivor.commit(_scan(2)).archive == new
        assert not list(survivor.path.glob(".*.tmp"))
        if not died:
            break
        step += 1
    assert step > 50
    assert len(outcomes) == step + 1
    assert all(outcome in (old, new) for outcome in outcomes)
    assert old in outcomes
    assert new in outcomes[:-1]


def _summarise(workspace: Path) -> None:
    asyncio.run(Run(ArchiveFolder(workspace, Host.PI), _Scribe()).fill_in())


class _Scribe:
    async def write(self, instructions: str, material: str) -> str:
        return "in short"


def test_killed_while_summaries_are_written_none_is_torn(tmp_path: Path) -> None:
    chance = random.Random(7)
    scan = scan_of(moments(16))
    done = tmp_path / "done"
    done.mkdir()
    ArchiveFolder(done, Host.PI).commit(scan)
    _summarise(done)
    (complete,) = ArchiveFolder(done, Host.PI).load().archives.values()
    deaths = 0
    for number in range(200):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        ArchiveFolder(workspace, Host.PI).commit(scan)
        deaths += _dies(chance.randrange(700), partial(_summarise, workspace))
        survivor = ArchiveFolder(workspace, Host.PI, lock_timeout=0)
        assert survivor.load().notices == ()
        _summarise(workspace)
        assert list(survivor.load().archives.values()) == [complete]
    assert deaths > 80


def _commit_all(workspace: Path, name: str, states: list[int], start: multiprocessing.synchronize.Barrier) -> None:
    folder = ArchiveFolder(workspace, Host.PI, lock_timeout=60)
    start.wait(30)
    for pairs in states:
        folder.commit(scan_of(moments(pairs), session="shared"))
        folder.commit(scan_of(moments(pairs), session=f"{name}-{pairs}"))


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    states = {"one": [5, 1, 9, 3, 20], "two": [4, 8, 2, 16, 6]}
    workers = [
        context.Process(target=_commit_all, args=(tmp_path, name, pairs, start)) for name, pairs in states.items()
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
        assert worker.exitcode == 0
    archives = ArchiveFolder(tmp_path, Host.PI).load().archives
    assert len(archives) == 11
    assert archives[NodeId("shared")] == merge(None, scan_of(moments(20), session="shared"), NodeId("shared"))


def _refresh(workspace: Path, agent: Path, start: multiprocessing.synchronize.Barrier) -> None:
    folder = ArchiveFolder(workspace, Host.PI, lock_timeout=60)
    start.wait(30)
    report = refresh_pi(folder, workspace, PiHome(agent))
    assert report.warnings == ()
    assert report.sessions == 12


def test_two_refreshes_at_once_agree(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    agent, start = tmp_path / "agent", context.Barrier(2)
    workspace = tmp_path / "ws"
    workspace.mkdir()
    write(agent / "settings.json", [{"sessionDir": str(tmp_path / "sessions")}])
    for number in range(12):
        write(tmp_path / "sessions" / f"{number}.jsonl", pi_session(f"s{number}", workspace, pairs=number + 1))
    workers = [context.Process(target=_refresh, args=(workspace, agent, start)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
        assert worker.exitcode == 0
    folder = ArchiveFolder(workspace, Host.PI)
    assert sum(len(archive.pairs) for archive in folder.load().archives.values()) == 78
    assert {folder.commit(scan).change for scan in _scans(workspace, agent)} == {Change.UNCHANGED}


def _scans(workspace: Path, agent: Path) -> list[Scan]:

    return [found.read() for found in PiSource(PiHome(agent)).discover(workspace).sessions]

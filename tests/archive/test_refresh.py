from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from archive.files import ArchiveFolder
from archive.legacy import drop_old_fields
from archive.model import Code, EndReason, Host, NodeId, Notice
from archive.refresh import Report, refresh_dsh, refresh_pi
from archive.schema import encode
from archive.sources.pi_locate import PiHome, default_directory
from tests.archive import samples
from tests.archive.making import archive_of
from tests.archive.native import DshLines, Line, pi_assistant, pi_header, pi_session, pi_user, tree, write


class Pi:
    """A workspace with a local Pi beside it."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "ws"
        self.workspace.mkdir()
        self.home = PiHome(root / "home" / "agent")
        self.sessions = default_directory(self.home.agent_dir, str(self.workspace))
        self.folder = ArchiveFolder(self.workspace, Host.PI)

    def refresh(self) -> Report:
        before = tree(self.home.agent_dir.parent)
        report = refresh_pi(self.folder, self.workspace, self.home)
        assert tree(self.home.agent_dir.parent) == before
        return report

    def counts(self) -> tuple[int, int, int, int, int]:
        report = self.refresh()
        return (report.sessions, report.pairs, report.added, report.updated, report.unchanged)


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    return Pi(tmp_path)


def test_a_refresh_reads_what_is_new_and_only_that(pi: Pi, monkeypatch: pytest.MonkeyPatch) -> None:
    write(pi.sessions / "1.jsonl", pi_session("one", pi.workspace))
    write(pi.sessions / "2.jsonl", pi_session("two", pi.workspace, pairs=2))
    assert pi.counts() == (2, 3, 2, 0, 0)
    archives = tree(pi.folder.path)
    with monkeypatch.context() as patch:
        patch.setattr("archive.sources.pi.PiSession.read", _must_not_be_called)
        assert pi.counts() == (2, 3, 0, 0, 2)
    assert tree(pi.folder.path) == archives
    write(pi.sessions / "2.jsonl", pi_session("two", pi.workspace, pairs=3))
    write(pi.sessions / "3.jsonl", pi_session("three", pi.workspace))
    assert pi.counts() == (3, 5, 1, 1, 1)


def _must_not_be_called(*_: object) -> None:
    raise AssertionError


def test_progress_is_told(pi: Pi) -> None:
    for number in range(3):
        write(pi.sessions / f"{number}.jsonl", pi_session(f"s{number}", pi.workspace))
    told: list[tuple[int, int]] = []
    refresh_pi(pi.folder, pi.workspace, pi.home, lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_session_without_questions_leaves_no_archive(pi: Pi) -> None:
    write(pi.sessions / "1.jsonl", [pi_header("s", pi.workspace)])
    assert pi.counts() == (0, 0, 0, 0, 0)
    assert list(pi.workspace.iterdir()) == []


def test_a_vanished_session_and_a_shrunk_one_keep_their_text(pi: Pi) -> None:
    gone = write(pi.sessions / "1.jsonl", pi_session("gone", pi.workspace, pairs=2))
    shrunk = write(pi.sessions / "2.jsonl", pi_session("shrunk", pi.workspace, pairs=2))
    pi.refresh()
    before = {name: archive.nodes for name, archive in pi.folder.load().archives.items()}
    gone.unlink()
    write(shrunk, pi_session("shrunk", pi.workspace, pairs=1))
    assert pi.counts() == (1, 2, 0, 0, 1)
    write(shrunk, [pi_header("shrunk", pi.workspace)])
    assert pi.counts() == (1, 2, 0, 0, 1)
    assert {name: archive.nodes for name, archive in pi.folder.load().archives.items()} == before


def test_a_session_that_goes_while_it_is_read_is_no_fault(pi: Pi, monkeypatch: pytest.MonkeyPatch) -> None:
    write(pi.sessions / "1.jsonl", pi_session("s", pi.workspace))
    for error, warnings in ((FileNotFoundError, ()), (PermissionError, (Notice(Code.UNREADABLE, "s"),))):
        with monkeypatch.context() as patch:
            patch.setattr("archive.sources.pi.PiSession.read", _raising(error))
            assert pi.refresh().warnings == warnings


def _raising(error: type[OSError]) -> object:
    def read(_: object) -> None:
        raise error

    return read


def test_warnings_stay_until_their_cause_is_gone(pi: Pi) -> None:
    session = write(pi.sessions / "1.jsonl", pi_session("s", pi.workspace))
    whole = session.read_bytes()
    session.write_bytes(whole + b"torn")
    blank = write(pi.sessions / "2.jsonl", [pi_header("blank", pi.workspace)])
    with blank.open("ab") as file:
        file.write(b"torn")
    expected = {Notice(Code.LINE_TORN, "s", 4), Notice(Code.LINE_TORN, "blank", 2)}
    assert set(pi.refresh().warnings) == expected
    assert set(pi.refresh().warnings) == expected
    session.write_bytes(whole)
    blank.unlink()
    assert pi.refresh().warnings == ()


def test_what_cannot_be_saved_is_told_of_and_the_rest_is_saved(pi: Pi) -> None:
    for name in ("bad", "good"):
        write(pi.sessions / f"{name}.jsonl", pi_session(name, pi.workspace))
    pi.folder.path.mkdir(parents=True)
    (pi.folder.path / "bad.json").write_bytes(b"{")
    report = pi.refresh()
    assert (report.sessions, report.added) == (1, 1)
    assert report.warnings == (Notice(Code.ARCHIVE_DAMAGED, "bad"),)
    assert (pi.folder.path / "bad.json").read_bytes() == b"{"


def test_a_running_turn_is_completed_in_place(pi: Pi) -> None:
    question = [pi_header("s", pi.workspace), pi_user("q1", None, "q")]
    write(pi.sessions / "1.jsonl", question)
    pi.refresh()
    (before,) = pi.folder.load().archives[NodeId("s")].pairs.items()
    write(pi.sessions / "1.jsonl", [*question, pi_assistant("a1", "q1", "a")])
    pi.refresh()
    (after,) = pi.folder.load().archives[NodeId("s")].pairs.items()
    assert before[0] == after[0]
    assert (before[1].end_reason, after[1].end_reason) == (EndReason.OPEN, EndReason.STOP)


def test_a_migration_of_a_session_keeps_its_nodes(pi: Pi) -> None:
    """The host counts entries of format 1 anew when it opens them; the reviewed files show both states."""
    old, new = (samples.SAMPLES / "pi-legacy-v1v2" / name for name in ("v1-before-migration.jsonl", MIGRATED))
    path = pi.sessions / "1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(_moved(old, pi.workspace))
    pi.refresh()
    (before,) = pi.folder.load().archives.values()
    path.write_bytes(_moved(new, pi.workspace))
    pi.refresh()
    (after,) = pi.folder.load().archives.values()
    assert list(after.nodes)[:3] == list(before.nodes)
    assert len(after.nodes) == 4
    assert all(not pair.entry_ids[0].startswith("v1-") for pair in after.pairs.values())


MIGRATED = "2025-11-20T10-00-00-000Z_22222222-0000-4000-8000-000000000001.jsonl"


def _moved(sample: Path, workspace: Path) -> bytes:
    header, rest = sample.read_bytes().split(b"\n", 1)
    return json.dumps({**json.loads(header), "cwd": str(workspace)}).encode() + b"\n" + rest


class TestOldIndexes:
    """Records under the agent directory, from before archives lived in workspaces."""

    @pytest.fixture
    def old(self, pi: Pi) -> Path:
        path = pi.home.agent_dir / "pbot" / "history"
        path.mkdir(parents=True)
        return path

    def test_those_of_this_workspace_move_in_once(self, pi: Pi, old: Path, tmp_path: Path) -> None:
        native = write(tmp_path / "native.jsonl", pi_session("by-file", pi.workspace))
        elsewhere = write(tmp_path / "elsewhere.jsonl", pi_session("elsewhere", tmp_path))
        _record(old, "by-file", file=str(native))
        _record(old, "by-cwd", cwd=str(pi.workspace))
        _record(old, "elsewhere", file=str(elsewhere))
        _record(old, "moved-away", cwd=str(tmp_path))
        _record(old, "lost", file=str(tmp_path / "none.jsonl"))
        _record(old, "unknown")
        write(pi.sessions / "1.jsonl", pi_session("native", pi.workspace, pairs=1))
        _record(old, "native")
        assert pi.refresh().warnings == ()
        archives = pi.folder.load().archives
        assert sorted(archives) == ["by-cwd", "by-file", "native"]
        assert archives[NodeId("by-cwd")] == archive_of(2, session="by-cwd")
        assert not any(b'"file"' in path.read_bytes() for path in pi.folder.path.glob("*.json"))
        before = tree(pi.folder.path)
        pi.refresh()
        assert tree(pi.folder.path) == before

    def test_nothing_here_is_overwritten(self, pi: Pi, old: Path) -> None:
        write(pi.sessions / "1.jsonl", pi_session("s", pi.workspace))
        pi.refresh()
        before = tree(pi.folder.path)
        _record(old, "s", cwd=str(pi.workspace))
        _record(old, "another-name", session="s", cwd=str(pi.workspace))
        pi.refresh()
        assert tree(pi.folder.path) == before

    def test_what_fails_is_told_of_and_tried_again(self, pi: Pi, old: Path) -> None:
        (old / "s.json").write_bytes(b"{")
        assert pi.refresh().warnings == (Notice(Code.LEGACY_UNREADABLE, "s"),)
        _record(old, "s", cwd=str(pi.workspace))
        assert pi.refresh().warnings == ()
        assert list(pi.folder.load().archives) == ["s"]

    def test_a_place_that_is_no_folder_holds_none(self, pi: Pi) -> None:
        write(pi.home.agent_dir / "pbot" / "history", [])
        assert pi.refresh().warnings == ()

    def test_an_import_that_cannot_be_saved_is_told_of(self, pi: Pi, old: Path) -> None:
        _record(old, "s", cwd=str(pi.workspace))
        (pi.workspace / ".pi").write_text("in the way")
        assert pi.refresh().warnings == (Notice(Code.ARCHIVE_NOT_SAVED, "s"),)

    def test_an_archive_that_goes_while_it_is_rewritten_is_told_of(self, pi: Pi) -> None:
        pi.folder.path.mkdir(parents=True)
        _record(pi.folder.path, "s", file="/old/path.jsonl")
        pi.folder.load()
        (pi.folder.path / "s.json").unlink()
        assert drop_old_fields(pi.folder) == [Notice(Code.UNREADABLE, "s")]

    def test_the_old_field_goes_from_archives_that_are_here(self, pi: Pi) -> None:
        path = pi.folder.path
        path.mkdir(parents=True)
        _record(path, "s", file="/old/path.jsonl")
        assert pi.refresh().warnings == ()
        assert (path / "s.json").read_bytes() == encode(archive_of(2))
        before = tree(path)
        pi.refresh()
        assert tree(path) == before


def _record(folder: Path, name: str, session: str | None = None, **fields: str) -> None:
    wire: Line = json.loads(encode(archive_of(2, session=name)))
    (folder / f"{name}.json").write_text(json.dumps({**wire, "sessionId": session or name, **fields}))


def test_dsh_archives_its_own_and_touches_nothing_else(tmp_path: Path) -> None:
    workspace, home = tmp_path / "ws", tmp_path / "dsh"
    workspace.mkdir()
    DshLines("session-1", workspace).pair("q", "a").save(home)
    DshLines("child", tmp_path, parentSession="session-1", origin="subagent").pair("task", "done").save(home)
    DshLines("blank", workspace).save(home)
    ArchiveFolder(workspace, Host.PI).path.mkdir(parents=True)
    (ArchiveFolder(workspace, Host.PI).path / "other.json").write_bytes(b"{")
    before, others = tree(home), tree(workspace / ".pi")
    folder = ArchiveFolder(workspace, Host.DSH)
    report = refresh_dsh(folder, workspace, home)
    assert report == Report(Host.DSH, sessions=2, pairs=2, added=2, updated=0, unchanged=0, warnings=())
    assert refresh_dsh(folder, workspace, home).unchanged == 2
    assert sorted(folder.load().archives) == ["dsh-child", "dsh-session-1"]
    assert tree(home) == before
    assert tree(workspace / ".pi") == others


def test_every_sample_survives_a_refresh(tmp_path: Path) -> None:
    pi = Pi(tmp_path)
    pi.sessions.mkdir(parents=True)
    for sample in samples.PI:
        (pi.sessions / f"{sample.parent.name}-{sample.name}").write_bytes(_moved(sample, pi.workspace))
    home = tmp_path / "dsh"
    shutil.copytree(samples.SAMPLES / "dsh-0.2.1rc2", home / "sessions" / "--any--")
    first = pi.refresh()
    assert (first.sessions, first.added) == (21, 21)
    assert {notice.code for notice in first.warnings} == {Code.LINE_SALVAGED}
    assert pi.refresh().unchanged == 21
    assert refresh_dsh(ArchiveFolder(pi.workspace, Host.DSH), pi.workspace, home).sessions == 0

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import filelock
import pytest

from archive.files import ArchiveFolder, Change, Contents, NotSaved
from archive.model import Code, Host, NodeId, Notice
from archive.names import root_name
from archive.schema import encode
from harness_client.types import SessionId
from tests.archive.making import archive_of, moments, scan_of
from tests.archive.native import tree


@pytest.fixture
def folder(tmp_path: Path) -> ArchiveFolder:
    return ArchiveFolder(tmp_path, Host.PI)


def names(folder: ArchiveFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


def test_reading_creates_nothing(folder: ArchiveFolder, tmp_path: Path) -> None:
    assert folder.load() == Contents({}, ())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "name"), [(Host.PI, ".pi/pbot/history/s.json"), (Host.DSH, ".dsh/pbot/history/dsh-s.json")]
)
def test_each_host_has_its_own_place(tmp_path: Path, host: Host, name: str) -> None:
    ArchiveFolder(tmp_path, host).commit(scan_of(moments(1), host=host))
    file = tmp_path / name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert str(tmp_path) not in file.read_text()


def test_a_commit_says_what_it_changed(folder: ArchiveFolder) -> None:
    assert folder.commit(scan_of(moments(1))).change is Change.ADDED
    before = tree(folder.path)
    assert folder.commit(scan_of(moments(1))).change is Change.UNCHANGED
    assert tree(folder.path) == before
    assert folder.commit(scan_of(moments(1), mtime=50)).change is Change.UNCHANGED
    assert tree(folder.path) != before  # the log was read in a newer state, which saves the next reading
    done = folder.commit(scan_of(moments(2), mtime=60))
    assert done.change is Change.UPDATED
    assert folder.load().archives == {"s": done.archive}


def test_an_unchanged_file_is_parsed_once(folder: ArchiveFolder) -> None:
    folder.commit(scan_of(moments(1)))
    (first,) = folder.load().archives.values()
    assert folder.load().archives[NodeId("s")] is first
    other = ArchiveFolder(folder.path.parents[2], Host.PI)
    other.commit(scan_of(moments(2), mtime=60))
    assert len(folder.load().archives[NodeId("s")].pairs) == 2
    (folder.path / "s.json").unlink()
    assert folder.load() == Contents({}, ())


def test_a_copy_answers_at_its_new_place(folder: ArchiveFolder, tmp_path: Path) -> None:
    folder.commit(scan_of(moments(2)))
    (tmp_path / "copy").mkdir()
    copy = ArchiveFolder(tmp_path / "copy", Host.PI)
    copy.path.mkdir(parents=True)
    (copy.path / "s.json").write_bytes((folder.path / "s.json").read_bytes())
    assert copy.load() == folder.load()
    assert copy.commit(scan_of(moments(2))).change is Change.UNCHANGED


BROKEN = [(b"{", Code.ARCHIVE_DAMAGED), (b'{"format":"pbot-history","version":2}', Code.ARCHIVE_UNKNOWN_VERSION)]


@pytest.mark.parametrize(("content", "code"), BROKEN)
def test_a_file_we_cannot_read_is_told_of_and_never_rewritten(
    folder: ArchiveFolder, content: bytes, code: Code
) -> None:
    folder.commit(scan_of(moments(1), session="good"))
    bad = folder.path / "s.json"
    bad.write_bytes(content)
    before = tree(folder.path)
    contents = folder.load()
    assert list(contents.archives) == ["good"]
    assert contents.notices == (Notice(code, "s"),)
    with pytest.raises(NotSaved) as caught:
        folder.commit(scan_of(moments(1)))
    assert caught.value.code is code
    assert tree(folder.path) == before


def test_a_file_that_cannot_be_opened_is_told_of(folder: ArchiveFolder) -> None:
    (folder.path / "s.json").mkdir(parents=True)
    assert folder.load() == Contents({}, (Notice(Code.UNREADABLE, "s"),))
    with pytest.raises(NotSaved):
        folder.commit(scan_of(moments(1)))


def test_what_is_no_file_is_not_read(folder: ArchiveFolder) -> None:
    folder.path.mkdir(parents=True)
    (folder.path / "endless.json").symlink_to("/dev/zero")
    os.mkfifo(folder.path / "pipe.json")
    assert folder.load() == Contents({}, (Notice(Code.UNREADABLE, "endless"), Notice(Code.UNREADABLE, "pipe")))


def test_an_archive_keeps_its_name_whatever_it_is(folder: ArchiveFolder) -> None:
    folder.path.mkdir(parents=True)
    odd = replace(archive_of(1), id=NodeId("old-name"))
    (folder.path / "old-name.json").write_bytes(encode(odd))
    assert folder.commit(scan_of(moments(2), mtime=60)).archive.id == "old-name"
    assert names(folder) == [".lock", "old-name.json"]


def test_ids_that_differ_in_case_alone_do_not_share_a_file(folder: ArchiveFolder) -> None:
    folder.commit(scan_of(moments(1), session="abc"))
    folder.commit(scan_of(moments(1), session="ABC"))
    assert {archive.session for archive in folder.load().archives.values()} == {"abc", "ABC"}
    assert root_name(Host.PI, SessionId("ABC")) == "ABC"
    assert len({name.casefold() for name in names(folder)}) == 3


def test_what_a_dead_writer_left_is_cleared(folder: ArchiveFolder) -> None:
    folder.commit(scan_of(moments(1)))
    (folder.path / ".unfinished.tmp").write_bytes(b"half of something much longer than what comes next" * 100)
    assert list(folder.load().archives) == ["s"]
    folder.commit(scan_of(moments(2), mtime=60))
    assert names(folder) == [".lock", "s.json"]


def test_a_busy_lock_is_waited_for_and_then_told_of(tmp_path: Path) -> None:
    folder = ArchiveFolder(tmp_path, Host.PI, lock_timeout=0)
    folder.commit(scan_of(moments(1)))
    with filelock.FileLock(folder.path / ".lock"), pytest.raises(NotSaved) as caught:
        folder.commit(scan_of(moments(2)))
    assert caught.value.code is Code.ARCHIVE_BUSY
    assert folder.commit(scan_of(moments(2))).change is Change.UPDATED


def test_a_workspace_that_is_gone_stays_gone(tmp_path: Path) -> None:
    with pytest.raises(NotSaved):
        ArchiveFolder(tmp_path / "gone", Host.PI).commit(scan_of(moments(1)))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / ".pi").write_text("a file in the way")
    folder = ArchiveFolder(tmp_path, Host.PI)
    assert folder.load() == Contents({}, ())
    with pytest.raises(NotSaved) as caught:
        folder.commit(scan_of(moments(1)))
    assert caught.value.code is Code.ARCHIVE_NOT_SAVED


@pytest.fixture(params=["write", "fsync", "replace"])
def full_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    def read_only(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            refuse()
        return opened(path, flags, mode)

    opened = os.open
    with monkeypatch.context() as patch:
        if request.param == "write":
            patch.setattr(os, "open", read_only)
        elif request.param == "fsync":
            patch.setattr(os, "fsync", refuse)
        else:
            patch.setattr(Path, "replace", refuse)
        yield


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    folder = ArchiveFolder(tmp_path, Host.PI)
    folder.path.mkdir(parents=True)
    (folder.path / "s.json").write_bytes(encode(archive_of(1)))
    with pytest.raises(NotSaved) as caught:
        folder.commit(scan_of(moments(2), mtime=60))
    assert caught.value.code is Code.ARCHIVE_NOT_SAVED
    assert folder.load().archives == {"s": archive_of(1)}
    assert not list(folder.path.glob(".*.tmp"))


def test_a_change_of_another_kind_sees_the_newest_archive(folder: ArchiveFolder) -> None:
    ArchiveFolder(folder.path.parents[2], Host.PI).commit(scan_of(moments(1)))
    folder.update(SessionId("s"), lambda current, _: replace(current or archive_of(), title="given"))
    assert json.loads((folder.path / "s.json").read_bytes())["title"] == "given"

"""The archive files of one workspace and host: read, checked, merged and published whole (spec ARCHIVE 4).

The directory decides workspace and host; no path is written anywhere, so a copy answers where it lies.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import filelock

from archive.merge import merge
from archive.model import Code, Host, NodeId, Notice, Scan, SessionArchive
from archive.names import root_name
from archive.schema import Unreadable, decode, encode
from harness_client.types import SessionId

LOCK_TIMEOUT = 10.0
"""Seconds to wait for another writer; each holds the lock for one small file."""

_DIRECTORY = {Host.PI: ".pi", Host.DSH: ".dsh"}


class NotSaved(Exception):
    """Nothing was written, and what was there still stands; ``code`` says why."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.value)
        self.code = code


class Change(StrEnum):
    """What a commit did to a session's archive."""

    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit done, and the session's archive as it stands now.

    UNCHANGED when nothing of the content changed, though the state of the log it was read from may be a newer one.
    """

    change: Change
    archive: SessionArchive


@dataclass(frozen=True, slots=True)
class Contents:
    """Every archive that can be read, by root id, and a notice for every file that cannot."""

    archives: Mapping[NodeId, SessionArchive]
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class _File:
    """One file as it was parsed; ``stamp`` tells whether it still is that."""

    stamp: tuple[int, int, int, int]
    content: SessionArchive | Code
    old_fields: bool


class ArchiveFolder:
    """``.pi/pbot/history`` or ``.dsh/pbot/history`` of a workspace. Safe to use from several threads.

    Parsed files are kept in memory until the file changes.
    """

    def __init__(self, workspace: Path, host: Host, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.host = host
        self._workspace = workspace
        self.path = workspace / _DIRECTORY[host] / "pbot" / "history"
        self._lock_timeout = lock_timeout
        self._files: dict[str, _File] = {}
        self._cache = threading.RLock()

    def load(self) -> Contents:
        """Read every archive. A folder that does not exist is empty; it is not created."""
        with self._cache:
            stems = self._stems()
            self._files = {stem: file for stem in stems if (file := self._read(stem)) is not None}
            archives = {
                NodeId(stem): file.content
                for stem, file in self._files.items()
                if isinstance(file.content, SessionArchive)
            }
            notices = [
                Notice(file.content, stem) for stem, file in self._files.items() if isinstance(file.content, Code)
            ]
            return Contents(archives, tuple(notices))

    def commit(self, scan: Scan) -> Commit:
        """Merge a scan into the session's newest archive. Raises NotSaved."""
        return self.update(scan.session, lambda current, root: merge(current, scan, root))

    def update(self, session: SessionId, change: Callable[[SessionArchive | None, NodeId], SessionArchive]) -> Commit:
        """Publish what ``change`` makes of the session's newest archive (None: there is none) and its root id.

        The lock is held for the reading, the change and the writing: ``change`` must be quick. Raises NotSaved.
        """
        if not self._files:
            self.load()
        with self._locked():
            root = self._root(session)
            file = self._read(root)
            if file is not None and isinstance(file.content, Code):
                raise NotSaved(file.content)
            current = file.content if file is not None and isinstance(file.content, SessionArchive) else None
            changed = change(current, root)
            if file is None or file.old_fields or changed != current:
                _publish(self.path, f"{root}.json", encode(changed))
                self._read(root)
            if current is None:
                return Commit(Change.ADDED, changed)
            same = replace(changed, scan=current.scan) == current
            return Commit(Change.UNCHANGED if same else Change.UPDATED, changed)

    def adopt(self, archive: SessionArchive) -> None:
        """Publish an archive from elsewhere under its own name, unless one of that name is here. Raises NotSaved."""
        with self._locked():
            if self._read(archive.id) is None:
                _publish(self.path, f"{archive.id}.json", encode(archive))
                self._read(archive.id)

    def with_old_fields(self) -> list[SessionId]:
        """Return the sessions whose files, as last loaded, still carry a field that old indexes had."""
        with self._cache:
            files = list(self._files.values())
        return [file.content.session for file in files if file.old_fields and isinstance(file.content, SessionArchive)]

    def _root(self, session: SessionId) -> NodeId:
        """Return the name a session's archive has, or shall have."""
        with self._cache:
            files = dict(self._files)
        for stem, file in files.items():
            if isinstance(file.content, SessionArchive) and file.content.session == session:
                return NodeId(stem)
        return root_name(self.host, session, files)

    def _stems(self) -> list[str]:
        try:
            names = [path.name for path in self.path.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and name[0] != ".")

    def _read(self, stem: str) -> _File | None:
        """Read one file, from memory if it is unchanged; None when there is none."""
        path = self.path / f"{stem}.json"
        with self._cache:
            try:
                with path.open("rb") as file:
                    stat = os.fstat(file.fileno())
                    stamp = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
                    known = self._files.get(stem)
                    if known is not None and known.stamp == stamp:
                        return known
                    data = file.read()
            except FileNotFoundError:
                self._files.pop(stem, None)
                return None
            except OSError:
                return _File((0, 0, 0, 0), Code.UNREADABLE, old_fields=False)
            read = self._files[stem] = self._parsed(data, stem, stamp)
            return read

    def _parsed(self, data: bytes, stem: str, stamp: tuple[int, int, int, int]) -> _File:
        try:
            decoded = decode(data, stem=stem, host=self.host)
        except Unreadable as error:
            return _File(stamp, error.code, old_fields=False)
        return _File(stamp, decoded.archive, old_fields=decoded.file is not None or decoded.cwd is not None)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the source's one write lock. Whatever unfinished file lies here then is a dead writer's.

        The folder is made where it is missing, the workspace never: one that is gone stays gone.
        """
        if not self._workspace.is_dir():
            raise NotSaved(Code.ARCHIVE_NOT_SAVED)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.path / ".lock", timeout=self._lock_timeout, mode=0o600)
            with lock:
                for unfinished in self.path.glob(".*.tmp"):
                    unfinished.unlink(missing_ok=True)
                yield
        except filelock.Timeout as error:
            raise NotSaved(Code.ARCHIVE_BUSY) from error
        except OSError as error:
            raise NotSaved(Code.ARCHIVE_NOT_SAVED) from error


def _publish(directory: Path, name: str, data: bytes) -> None:
    """Replace a file at once and for good: killed at any point, the old or the new one stands. Raises OSError."""
    temporary = directory / f".{name}.{secrets.token_hex(8)}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor, not a path: the mode is set above)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(directory / name)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

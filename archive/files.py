"""The archive files of one workspace and host: read, checked, merged and published whole (spec ARCHIVE 4).

The directory decides workspace and host; no path is written anywhere, so a copy answers where it lies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import filelock

from archive.merge import merge
from archive.model import Code, Host, NodeId, Notice, Scan, SessionArchive
from archive.parsed import ParsedFiles
from archive.schema import encode
from harness_client.types import SessionId

LOCK_TIMEOUT = 10.0
"""Seconds to wait for another writer; each holds the lock for one small file."""

_UNFINISHED = ".unfinished.tmp"
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


class ArchiveFolder:
    """``.pi/pbot/history`` or ``.dsh/pbot/history`` of a workspace. Safe to use from several threads."""

    def __init__(self, workspace: Path, host: Host, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.host = host
        self._workspace = workspace
        self.path = workspace / _DIRECTORY[host] / "pbot" / "history"
        self._lock_timeout = lock_timeout
        self._files = ParsedFiles(self.path, host)

    def load(self) -> Contents:
        """Read every archive. A folder that does not exist is empty; it is not created."""
        archives: dict[NodeId, SessionArchive] = {}
        notices: list[Notice] = []
        for stem, file in self._files.read_all().items():
            if isinstance(file.content, Code):
                notices.append(Notice(file.content, stem))
            else:
                archives[file.content.id] = file.content
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
            root = self._files.root(session)
            file = self._files.read(root)
            if file is not None and isinstance(file.content, Code):
                raise NotSaved(file.content)
            current = file.content if file is not None and isinstance(file.content, SessionArchive) else None
            changed = change(current, root)
            if file is None or file.old_fields or changed != current:
                self._publish(changed)
            if current is None:
                return Commit(Change.ADDED, changed)
            same = replace(changed, scan=current.scan) == current
            return Commit(Change.UNCHANGED if same else Change.UPDATED, changed)

    def adopt(self, archive: SessionArchive) -> None:
        """Publish an archive from elsewhere under its own name, unless one of that name is here. Raises NotSaved."""
        with self._locked():
            if self._files.read(archive.id) is None:
                self._publish(archive)

    def with_old_fields(self) -> list[SessionId]:
        """Return the sessions whose files, as last loaded, still carry a field that old indexes had."""
        return [
            file.content.session
            for file in self._files.known()
            if file.old_fields and isinstance(file.content, SessionArchive)
        ]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the source's one write lock.

        The folder is made where it is missing, the workspace never: one that is gone stays gone.
        """
        if not self._workspace.is_dir():
            raise NotSaved(Code.ARCHIVE_NOT_SAVED)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.path / ".lock", timeout=self._lock_timeout, mode=0o600)
            with lock:
                yield
        except filelock.Timeout as error:
            raise NotSaved(Code.ARCHIVE_BUSY) from error
        except OSError as error:
            raise NotSaved(Code.ARCHIVE_NOT_SAVED) from error

    def _publish(self, archive: SessionArchive) -> None:
        _replace(self._files.path(archive.id), encode(archive))
        self._files.read(archive.id)


def _replace(path: Path, data: bytes) -> None:
    """Replace a file at once and for good: killed at any point, the old or the new one stands. Raises OSError.

    Only the holder of the lock writes here, so one unfinished file is all that a killed writer can leave behind; the
    next writer takes its place.
    """
    unfinished = path.parent / _UNFINISHED
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor, not a path: the mode is set above)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

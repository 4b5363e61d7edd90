"""Pi's sessions of one workspace, read from their files and never written (spec ARCHIVE 3.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from archive.model import MAX_NOTICES, Code, Host, Lineage, Notice, Parentage, Scan, Stamp
from archive.opening import open_file
from archive.pairs import project
from archive.sources.native import Discovery, children, same_directory
from archive.sources.pi_entries import NEWEST_FORMAT, Entries, Header, read_header
from archive.sources.pi_lines import read_records
from archive.sources.pi_locate import PiHome, directories
from harness_client.types import SessionId

_HEADER_BYTES = 1 << 20
"""No header line is longer; a file whose first line is, is none of Pi's."""


@dataclass(frozen=True, slots=True)
class PiSession:
    """One session and its files: more than one when a file was imported elsewhere under the same id."""

    session: SessionId
    stamp: Stamp
    files: tuple[Path, ...]

    def read(self) -> Scan:
        """See :class:`archive.sources.native.NativeSession`."""
        entries: Entries | None = None
        notices: list[Notice] = []
        for path in self.files:
            with open_file(path) as file:
                records = read_records(file, self.session, notices)
                header = next((found for _, record in records if (found := read_header(record))), None)
                if header is None or header.session != self.session:
                    continue  # replaced by another session since it was found; the next scan finds that one
                entries = entries or Entries(header)
                entries.take(records)
        if entries is None:
            raise FileNotFoundError(self.session)
        return _scan(entries, self.stamp, notices)


def _scan(entries: Entries, stamp: Stamp, notices: list[Notice]) -> Scan:
    header = entries.header
    projection = project(Host.PI, header.session, entries.moments)
    return Scan(
        host=Host.PI,
        session=header.session,
        title=entries.title,
        created_at=header.created_at,
        lineage=_lineage(header),
        stamp=replace(stamp, entries=entries.count, last_entry=entries.last),
        pairs=projection.pairs,
        branches=projection.branches,
        warnings=(*notices, *entries.notices)[:MAX_NOTICES],
    )


def _lineage(header: Header) -> Lineage:
    """Name the parent by its own header; a parent whose file is gone stays unnamed, for file names say nothing."""
    if not header.parent:
        return Lineage()
    parent = peek(Path(header.parent))
    return Lineage(parent.session if isinstance(parent, Header) else None, Parentage.FORK)


@dataclass(frozen=True, slots=True)
class PiSource:
    """A :class:`archive.sources.native.NativeSource` over a local Pi."""

    home: PiHome
    host: Host = Host.PI

    def discover(self, workspace: Path) -> Discovery:
        """See :class:`archive.sources.native.NativeSource`. A known path without a file is passed over in silence."""
        notices: list[Notice] = []
        found: dict[SessionId, dict[Path, _File]] = {}
        for path, expected in self._candidates(workspace, notices):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            except OSError:
                notices.append(Notice(Code.UNREADABLE, path.name))
                continue
            header = peek(path)
            if isinstance(header, Code):
                notices.append(Notice(header, path.name))
            elif header.session == expected or (expected is None and same_directory(header.cwd, workspace)):
                file = _File(header.version, stat.st_size, stat.st_mtime_ns)
                found.setdefault(header.session, {})[path.resolve()] = file
        sessions = [_session(session, files) for session, files in found.items()]
        return Discovery(sessions, tuple(dict.fromkeys(notices)))

    def _candidates(self, workspace: Path, notices: list[Notice]) -> Iterator[tuple[Path, SessionId | None]]:
        """Yield files to look at, an expert's with the id its header must have."""
        for directory in directories(self.home, workspace, notices):
            files = children(directory, Code.UNREADABLE, notices)
            yield from ((path, None) for path in files if path.suffix == ".jsonl")
        if self.home.current is not None:
            yield self.home.current, None
        for session, path in self.home.experts:
            yield path, session


@dataclass(frozen=True, slots=True)
class _File:
    version: int
    size: int
    mtime_ns: int


def _session(session: SessionId, files: dict[Path, _File]) -> PiSession:
    """Join the files of one session. One left over from before the entries had ids says nothing new."""
    with_ids = {path: file for path, file in files.items() if file.version > 1} or files
    stamp = Stamp(
        size=sum(file.size for file in with_ids.values()),
        mtime_ns=max(file.mtime_ns for file in with_ids.values()),
    )
    return PiSession(session, stamp, tuple(sorted(with_ids, key=lambda path: path.name)))


def peek(path: Path) -> Header | Code:
    """Read a file's header alone; the code says why it has none that we can read."""
    try:
        with open_file(path) as file:
            line = file.readline(_HEADER_BYTES)
    except (OSError, ValueError):  # ValueError: a header names its parent by a path that cannot be one
        return Code.UNREADABLE
    records = read_records([line], path.name, [])  # a broken first line is told of when the file is read
    header = next((found for _, record in records if (found := read_header(record))), None)
    if header is None:
        return Code.NO_HEADER
    return header if header.version <= NEWEST_FORMAT else Code.UNKNOWN_FORMAT

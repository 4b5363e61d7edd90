"""dsh sessions of one workspace, read cold from a local home (spec ARCHIVE 3.7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from archive.model import MAX_NOTICES, Code, Host, Notice, Scan, Stamp
from archive.pairs import Close, project
from archive.sources.dsh_lineage import Kin, members
from archive.sources.dsh_log import Header, log_files, peek, read_log
from archive.sources.dsh_turns import Log, Speaker, moments
from archive.sources.native import Discovery, children
from archive.times import EPOCH, Instant
from harness_client.types import SessionId


@dataclass(frozen=True, slots=True)
class DshSession:
    """One session and the file that counts for it."""

    session: SessionId
    stamp: Stamp
    file: Path

    def read(self) -> Scan:
        """See :class:`archive.sources.native.NativeSession`."""
        log = Log()
        notices: list[Notice] = []
        header = read_log(self.file, self.session, log, notices)
        if header is None or header.session != self.session:
            raise FileNotFoundError(self.session)
        return scan(kin(header), self.stamp, log, header.created_at, notices)


def kin(header: Header) -> Kin:
    """Place a session among its relatives."""
    return Kin(header.session, header.parent, header.subagent, header.cwd)


def scan(one: Kin, stamp: Stamp, log: Log, created_at: Instant | None, notices: list[Notice]) -> Scan:
    """Project a log that was taken whole. Without ``created_at`` a session begins with its first message."""
    line = moments(log, Speaker(one.subagent, one.parent if one.subagent else None))
    projection = project(Host.DSH, one.session, line)
    messages = [moment for moment in line if not isinstance(moment.act, Close)]
    return Scan(
        host=Host.DSH,
        session=one.session,
        title=log.title,
        created_at=created_at or (messages[0].at if messages else EPOCH),
        lineage=one.lineage,
        stamp=replace(stamp, entries=len(log.events), last_entry=messages[-1].entry if messages else None),
        pairs=projection.pairs,
        branches=projection.branches,
        warnings=tuple(notices[:MAX_NOTICES]),
    )


@dataclass(frozen=True, slots=True)
class DshSource:
    """A :class:`archive.sources.native.NativeSource` over a local home (``DSH_HOME``)."""

    home: Path
    host: Host = Host.DSH

    def discover(self, workspace: Path) -> Discovery:
        """See :class:`archive.sources.native.NativeSource`."""
        notices: list[Notice] = []
        found: dict[SessionId, tuple[Header, DshSession]] = {}
        for directory in self._directories(notices):
            try:
                self._look_at(directory, found, notices)
            except FileNotFoundError:
                continue
            except OSError:
                notices.append(Notice(Code.UNREADABLE, directory.name))
        inside, lost = members((kin(header) for header, _ in found.values()), workspace)
        sessions = [session for name, (_, session) in found.items() if name in inside]
        return Discovery(sessions, (*notices, *lost))

    def _directories(self, notices: list[Notice]) -> Iterator[Path]:
        """Yield every session's directory. Folder names of workspaces are lossy, so all of them are looked into."""
        for workspace in children(self.home / "sessions", Code.UNREADABLE, notices):
            yield from (path for path in children(workspace, Code.UNREADABLE, notices) if path.is_dir())

    def _look_at(
        self, directory: Path, found: dict[SessionId, tuple[Header, DshSession]], notices: list[Notice]
    ) -> None:
        paths = log_files(directory)
        if isinstance(paths, Code):
            notices.append(Notice(paths, directory.name))
            return
        for path in paths:
            stat = path.stat()
            header = peek(path)
            if isinstance(header, Code):
                notices.append(Notice(header, directory.name))
                continue  # a host that died while it began this generation left the one before
            session = DshSession(header.session, Stamp(stat.st_size, stat.st_mtime_ns), path)
            rival = found.get(header.session)
            if rival is None or _rank(header, session) > _rank(*rival):
                found[header.session] = (header, session)
            return


def _rank(header: Header, session: DshSession) -> tuple[int, int]:
    """Sort two files of one session: the newer format counts, then the longer file."""
    return (header.version, session.stamp.size)

"""Old Pi indexes: records under the agent directory that belong to a workspace move in, once (spec ARCHIVE 4)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from archive.files import ArchiveFolder, NotSaved
from archive.model import Code, Host, NodeId, Notice, SessionArchive
from archive.opening import open_file
from archive.schema import Decoded, Unreadable, decode
from archive.sources.native import children, same_directory
from archive.sources.pi import peek
from archive.sources.pi_entries import Header
from harness_client.types import SessionId


def import_legacy(
    folder: ArchiveFolder, workspace: Path, agent_dir: Path, sessions: Collection[SessionId]
) -> list[Notice]:
    """Copy the old records of a workspace that its folder does not have yet; nothing is overwritten or removed.

    A record belongs here when it names the workspace, one of its native ``sessions``, or a native file whose header
    does. What fails now is tried again the next time.
    """
    known = folder.load().archives
    held = {archive.session for archive in known.values()}
    notices: list[Notice] = []
    for path in children(agent_dir / "pbot" / "history", Code.LEGACY_UNREADABLE, notices):
        if path.suffix != ".json" or path.stem in known:
            continue
        try:
            with open_file(path) as file:
                record = decode(file.read(), stem=path.stem, host=Host.PI)
            session = record.archive.session
            if session not in held and (session in sessions or _names(record, workspace)):
                folder.adopt(record.archive)
                held.add(session)
        except (OSError, Unreadable):
            notices.append(Notice(Code.LEGACY_UNREADABLE, path.stem))
        except NotSaved as error:
            notices.append(Notice(error.code, path.stem))
    return notices


def drop_old_fields(folder: ArchiveFolder) -> list[Notice]:
    """Rewrite the archives that still carry a field of the old indexes; everything else in them stays."""
    notices: list[Notice] = []
    for session in folder.with_old_fields():
        try:
            folder.update(session, _unchanged)
        except NotSaved as error:
            notices.append(Notice(error.code, session))
    return notices


def _unchanged(current: SessionArchive | None, root: NodeId) -> SessionArchive:
    if current is None:
        raise NotSaved(Code.UNREADABLE)  # gone since it was loaded
    return current


def _names(record: Decoded, workspace: Path) -> bool:
    if record.cwd is not None:
        return same_directory(record.cwd, workspace)
    header = peek(Path(record.file)) if record.file else None
    return isinstance(header, Header) and same_directory(header.cwd, workspace)

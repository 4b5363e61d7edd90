"""Bringing a workspace's archives up to date with the native sessions of one host (spec ARCHIVE 2, 4).

Scans run outside the lock; each session is committed by itself. A session whose log is as it was is not read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from archive.files import ArchiveFolder, Change, Commit, NotSaved
from archive.legacy import drop_old_fields, import_legacy
from archive.model import Code, Host, Notice, Scan
from archive.sources.dsh import DshSource
from archive.sources.dsh_remote import RemoteHome, SessionReader
from archive.sources.native import Discovery, Found, NativeSession
from archive.sources.pi import PiSource
from archive.sources.pi_locate import PiHome
from harness_client.errors import HarnessError

Progress: TypeAlias = Callable[[int, int], None]
"""Told after each session: how many are done, of how many."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a refresh found. ``added``, ``updated`` and ``unchanged`` count sessions and add up to ``sessions``.

    Sessions without any pair are not counted. Warnings tell how things stand, so an old fault is told of until it
    is gone.
    """

    host: Host
    sessions: int
    pairs: int
    added: int
    updated: int
    unchanged: int
    warnings: tuple[Notice, ...]


def refresh_pi(folder: ArchiveFolder, workspace: Path, home: PiHome, progress: Progress | None = None) -> Report:
    """Refresh from a local Pi, old indexes included."""
    discovery = PiSource(home).discover(workspace)
    tally = Tally(folder)
    tally.notices += import_legacy(folder, workspace, home.agent_dir, {each.session for each in discovery.sessions})
    tally.notices += drop_old_fields(folder)
    return _refresh(discovery, tally, progress)


def refresh_dsh(folder: ArchiveFolder, workspace: Path, home: Path, progress: Progress | None = None) -> Report:
    """Refresh from a local dsh home, cold."""
    return _refresh(DshSource(home).discover(workspace), Tally(folder), progress)


async def refresh_remote(
    folder: ArchiveFolder, workspace: Path, host: SessionReader, progress: Progress | None = None
) -> Report:
    """Refresh from a remote dsh host, by reads that wake no session. Files and parsing stay off the event loop."""
    home = RemoteHome(host)
    tally = await asyncio.to_thread(Tally, folder)
    try:
        found, notices = await home.discover(workspace)
    except HarnessError:
        tally.notices.append(Notice(Code.UNREADABLE, folder.host))
        return tally.report()
    tally.notices += notices
    for done, remote in enumerate(found, 1):
        if not tally.unchanged(remote):
            try:
                scan = await home.read(remote)
            except HarnessError:
                tally.notices.append(Notice(Code.UNREADABLE, remote.session))
            else:
                await asyncio.to_thread(tally.commit, scan)
        if progress is not None:
            progress(done, len(found))
    return tally.report()


def _refresh(discovery: Discovery, tally: Tally, progress: Progress | None) -> Report:
    tally.notices += discovery.notices
    total = len(discovery.sessions)
    for done, native in enumerate(discovery.sessions, 1):
        if not tally.unchanged(native):
            _read(native, tally)
        if progress is not None:
            progress(done, total)
    return tally.report()


def _read(native: NativeSession, tally: Tally) -> None:
    try:
        scan = native.read()
    except FileNotFoundError:
        return  # gone since it was found; what is archived stays
    except OSError:
        tally.notices.append(Notice(Code.UNREADABLE, native.session))
        return
    tally.commit(scan)


class Tally:
    """Commits scans to one folder, and counts."""

    def __init__(self, folder: ArchiveFolder) -> None:
        self._folder = folder
        contents = folder.load()
        self._known = {archive.session: archive for archive in contents.archives.values()}
        self._changes = dict.fromkeys(Change, 0)
        self._pairs = 0
        self.notices: list[Notice] = list(contents.notices)

    def unchanged(self, native: Found) -> bool:
        """Whether the archive was made from this very state of the log; it is counted then."""
        known = self._known.get(native.session)
        if known is None or not known.scan.same_state(native.stamp):
            return False
        self._count(Commit(Change.UNCHANGED, known))
        return True

    def commit(self, scan: Scan) -> None:
        """Commit a scan; one that brings neither pairs nor news of an archived session is left out."""
        if not scan.pairs and scan.session not in self._known:
            self.notices += scan.warnings
            return
        try:
            commit = self._folder.commit(scan)
        except NotSaved as error:
            self.notices.append(Notice(error.code, scan.session))
            return
        self._count(commit)

    def _count(self, commit: Commit) -> None:
        self._changes[commit.change] += 1
        self._pairs += len(commit.archive.pairs)
        self.notices += commit.archive.scan_warnings

    def report(self) -> Report:
        """Sum up."""
        return Report(
            host=self._folder.host,
            sessions=sum(self._changes.values()),
            pairs=self._pairs,
            added=self._changes[Change.ADDED],
            updated=self._changes[Change.UPDATED],
            unchanged=self._changes[Change.UNCHANGED],
            warnings=tuple(dict.fromkeys(self.notices)),
        )

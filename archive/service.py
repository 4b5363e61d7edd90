"""``pbot_history``: the one service behind every face (spec ARCHIVE 1).

Data and codes only. Whatever takes time runs off the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from archive.answers import ReadAnswer, RefreshAnswer, SearchAnswer, SummarizeAnswer
from archive.files import ArchiveFolder
from archive.library import Shelves, warned
from archive.model import Code, Host, Notice
from archive.problem import BadRequest, Fault
from archive.read import read
from archive.refresh import Progress, Report, refresh_dsh, refresh_pi, refresh_remote
from archive.request import Read, Search
from archive.search import search
from archive.sources.dsh_remote import SessionReader
from archive.sources.pi_locate import PiHome
from archive.summaries import Run, failed_before
from archive.writers import Writer
from harness_client.clock import SYSTEM_CLOCK, Clock
from harness_client.offload import offload

Work = Literal["search", "refresh"]
Observe = Callable[[Work, Host, float], None]
"""Told the seconds of a search, once for each host whose archives it looked through, and of each host's refresh."""


def unobserved(work: Work, host: Host, seconds: float) -> None:
    """Tell nobody."""


class Native(Protocol):
    """The native sessions of one host, as they are brought into its archives."""

    async def refresh(self, folder: ArchiveFolder, workspace: Path, progress: Progress | None) -> Report:
        """Scan and commit."""


class LocalPi:
    """Pi on this machine."""

    def __init__(self, home: PiHome) -> None:
        self._home = home

    async def refresh(self, folder: ArchiveFolder, workspace: Path, progress: Progress | None) -> Report:
        """See :meth:`Native.refresh`."""
        return await offload(partial(refresh_pi, folder, workspace, self._home, progress))


class LocalDsh:
    """A dsh home on this machine."""

    def __init__(self, home: Path) -> None:
        self._home = home

    async def refresh(self, folder: ArchiveFolder, workspace: Path, progress: Progress | None) -> Report:
        """See :meth:`Native.refresh`."""
        return await offload(partial(refresh_dsh, folder, workspace, self._home, progress))


class RemoteDsh:
    """A dsh host that is reached over HTTP."""

    def __init__(self, host: SessionReader) -> None:
        self._host = host

    async def refresh(self, folder: ArchiveFolder, workspace: Path, progress: Progress | None) -> Report:
        """See :meth:`Native.refresh`."""
        return await refresh_remote(folder, workspace, self._host, progress)


class HistoryService:
    """The history of one workspace. ``current`` are the hosts whose sessions a search brings in first."""

    def __init__(
        self,
        workspace: Path,
        current: Mapping[Host, Native],
        *,
        observe: Observe = unobserved,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.workspace = workspace
        self._observe = observe
        self._clock = clock
        self._current = current
        self._folders = {host: ArchiveFolder(workspace, host) for host in Host}
        self._shelves = Shelves(self._folders)
        self._scanning = asyncio.Lock()

    async def search(self, asked: Search, *, refresh: bool = True, progress: Progress | None = None) -> SearchAnswer:
        """Find text, or list sessions. Refreshes the current hosts, never another; calls no model."""
        notices: list[Notice] = []
        if refresh:
            for report in await self._refresh(tuple(self._current), progress):
                notices += report.warnings
        with self._observed("search", (asked.host,) if asked.host else tuple(Host)):
            library = await offload(self._shelves.open)
            return await offload(partial(search, library.with_notices(tuple(notices)), asked))

    async def read(self, asked: Read) -> ReadAnswer:
        """Read a node of the archives as they stand. Raises BadRequest."""
        library = await offload(self._shelves.open)
        return await offload(partial(read, library, asked))

    async def refresh(self, host: Host | None = None, progress: Progress | None = None) -> tuple[RefreshAnswer, ...]:
        """Bring native sessions in, of one of the current hosts or of all. Raises BadRequest."""
        if host is not None and host not in self._current:
            raise BadRequest(Fault.UNKNOWN_HOST, "host", {"hosts": ", ".join(self._current)})
        reports = await self._refresh(tuple(self._current) if host is None else (host,), progress)
        return tuple(await asyncio.gather(*map(self._told, reports)))

    async def _refresh(self, hosts: tuple[Host, ...], progress: Progress | None) -> list[Report]:
        if not await asyncio.to_thread(self.workspace.is_dir):
            # A workspace of another machine, or one that is gone: nothing read of it could be kept.
            return [Report(host, 0, 0, 0, 0, 0, (Notice(Code.ARCHIVE_NOT_SAVED, host),)) for host in hosts]
        async with self._scanning:
            return [await self._refresh_one(host, progress) for host in hosts]

    async def _refresh_one(self, host: Host, progress: Progress | None) -> Report:
        with self._observed("refresh", (host,)):
            return await self._current[host].refresh(self._folders[host], self.workspace, progress)

    @contextmanager
    def _observed(self, work: Work, hosts: Iterable[Host]) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            for host in hosts:
                self._observe(work, host, self._clock.monotonic() - began)

    async def _told(self, report: Report) -> RefreshAnswer:
        """Tell a report, with what is still wrong with summaries: a refresh mends none."""
        archives = (await asyncio.to_thread(self._folders[report.host].load)).archives.values()
        failures = tuple(notice for archive in archives for notice in failed_before(archive))
        return RefreshAnswer(
            host=report.host,
            sessions=report.sessions,
            pairs=report.pairs,
            added=report.added,
            updated=report.updated,
            unchanged=report.unchanged,
            warnings=warned((*report.warnings, *failures)),
        )

    async def summarize(
        self, host: Host, writer: Writer, stop: asyncio.Event | None = None, progress: Progress | None = None
    ) -> SummarizeAnswer:
        """Fill in the summaries of one host's archives as they stand, until done or ``stop``."""
        return await Run(self._folders[host], writer, stop or asyncio.Event(), progress).fill_in()

"""dsh sessions of a remote host, read page by page through the Harness client (spec ARCHIVE 3.7)."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from archive.model import Notice, Scan, Stamp
from archive.sources.dsh import scan
from archive.sources.dsh_lineage import Kin, members
from archive.sources.dsh_turns import Log
from archive.text import clean
from harness_client.errors import Malformed
from harness_client.events import Event
from harness_client.streams import Page
from harness_client.types import SessionId, SessionSummary

PAGE = 200
"""Messages asked for at a time."""
MAX_PAGES = 5_000
"""More than any session has; a host that has more to give than this is not to be trusted."""


class SessionReader(Protocol):
    """What is asked of a host: two reads of :class:`harness_client.client.HarnessClient`."""

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """See the client."""

    async def page(
        self,
        session: SessionId,
        *,
        before: int | None = None,
        through: int | None = None,
        limit: int = 50,
        parent: SessionId | None = None,
    ) -> Page:
        """See the client."""


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """One row of the session list that belongs to the workspace."""

    kin: Kin
    stamp: Stamp
    title: str | None

    @property
    def session(self) -> SessionId:
        """See :class:`archive.sources.native.Found`."""
        return self.kin.session


class RemoteHome:
    """Finds and reads a workspace's sessions on one host. Every method raises HarnessError."""

    def __init__(self, host: SessionReader) -> None:
        self._host = host

    async def discover(self, workspace: Path) -> tuple[list[RemoteSession], tuple[Notice, ...]]:
        """Find the sessions by the host's list."""
        rows = {row.id: row for row in await self._host.sessions() if row.id == clean(row.id)}
        kin = {name: _kin(row) for name, row in rows.items()}
        inside, lost = members(kin.values(), workspace)
        found = [RemoteSession(kin[name], _stamp(row), row.title) for name, row in rows.items() if name in inside]
        return found, lost

    async def read(self, remote: RemoteSession) -> Scan:
        """Read a session's whole log."""
        pages = await self._pages(remote.session, remote.kin.parent if remote.kin.subagent else None)
        return await asyncio.to_thread(_project, remote, pages)

    async def _pages(self, session: SessionId, parent: SessionId | None) -> list[tuple[Event, ...]]:
        """Read every page, from the newest back."""
        pages: list[tuple[Event, ...]] = []
        before: int | None = None
        through: int | None = None
        for _ in range(MAX_PAGES):
            page = await self._host.page(session, before=before, through=through, limit=PAGE, parent=parent)
            pages.append(page.events)
            if not page.has_more:
                return pages
            if page.oldest is None or (before is not None and page.oldest >= before):
                raise Malformed("a page that leads no further back")
            before, through = page.oldest, page.through
        raise Malformed("a session without an end")


def _kin(row: SessionSummary) -> Kin:
    return Kin(row.id, SessionId(clean(row.parent)) if row.parent else None, row.subagent, row.cwd or "")


def _stamp(row: SessionSummary) -> Stamp:
    return Stamp(size=(row.as_of_seq or 0) + 1, mtime_ns=row.updated_at * 1_000_000)


def _project(remote: RemoteSession, pages: list[tuple[Event, ...]]) -> Scan:
    log = Log()
    for event in sorted(itertools.chain.from_iterable(pages), key=lambda event: event.seq):
        log.take(event)
    log.title = log.title or (remote.title and clean(remote.title))
    return scan(remote.kin, remote.stamp, log, None, [])

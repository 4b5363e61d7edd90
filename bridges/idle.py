"""When the bridge has dsh's summaries written: a workspace whose turn ended normally and where nothing goes on.

It is to dsh what Pi's extension is to Pi (spec ARCHIVE 5). One workspace at a time; whatever begins there ends it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol, Self

import structlog

from archive.model import Host
from archive.service import HistoryService
from archive.writers import Writer
from bridges.archives import Archives
from harness_client.client import HarnessClient
from harness_client.clock import Clock
from harness_client.errors import HarnessError, Unsupported
from harness_client.streams import RunningChanged
from harness_client.types import SessionId, SessionSummary

GRACE_SECONDS: Final = 2.0
"""How long a workspace is quiet before it counts as idle: a chat's next message may be on its way."""


class Activity(Protocol):
    """Told of every turn that a chat of ours starts, from before its prompt to after its end."""

    def began(self, session: SessionId) -> None:
        """Note that a prompt is about to go out."""

    def ended(self, session: SessionId, *, normally: bool) -> None:
        """Note that its turn is over, or that nobody waits for it any more. ``normally``: with a complete answer."""


class Unwatched:
    """Nobody wants to know."""

    def began(self, session: SessionId) -> None:
        """See :meth:`Activity.began`."""

    def ended(self, session: SessionId, *, normally: bool) -> None:
        """See :meth:`Activity.ended`."""


UNWATCHED: Final = Unwatched()


class IdleSummaries:
    """An :class:`Activity` that acts on it. An async context manager: leaving it ends the work at once."""

    def __init__(self, harness: HarnessClient, archives: Archives, writer: Writer, clock: Clock) -> None:
        self._harness = harness
        self._archives = archives
        self._writer = writer
        self._clock = clock
        self._busy: Counter[SessionId] = Counter()
        self._wanted: dict[SessionId, None] = {}
        """One session of each workspace that is waiting for its summaries; others of it do no harm."""
        self._served: Collection[SessionId] = ()
        """The sessions of the workspace whose summaries are being written."""
        self._stop = asyncio.Event()
        self._look_again = False
        """Whether a turn has ended since the workspaces that wait were looked at."""
        self._work: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait({self._work})

    def began(self, session: SessionId) -> None:
        """See :meth:`Activity.began`."""
        self._busy[session] += 1
        self._interrupt(session)

    def ended(self, session: SessionId, *, normally: bool) -> None:
        """See :meth:`Activity.ended`."""
        self._busy -= Counter([session])
        if normally:
            self._wanted[session] = None
        self._look_again = True
        if self._wanted and (self._work is None or self._work.done()):
            self._work = asyncio.create_task(self._serve(), name="idle summaries")

    def _interrupt(self, session: SessionId) -> None:
        """Stop if ``session`` is of the workspace that is served; a new one may be."""
        if session in self._served or not self._served:
            self._stop.set()

    async def _serve(self) -> None:
        """Look after every workspace that waits; one where something goes on waits for the next end of a turn."""
        while self._look_again:
            self._look_again = False
            for session in tuple(self._wanted):
                if await self._served_now(session):
                    self._wanted.pop(session, None)

    async def _served_now(self, session: SessionId) -> bool:
        self._stop.clear()
        try:
            await self._clock.sleep(GRACE_SECONDS)
            return await self._workspace(session)
        except HarnessError as error:
            structlog.get_logger(__name__).warning("no summaries now", error=type(error).__name__)
            return False
        finally:
            self._served = ()

    async def _workspace(self, session: SessionId) -> bool:
        """Write the summaries of a session's workspace if it is idle; return whether that is done."""
        rows = {row.id: row for row in await self._harness.sessions()}
        folder = _folder(session, rows)
        if folder is None:
            return True  # the session is gone, and with it whatever it was waiting for
        members = {name for name in rows if _folder(name, rows) == folder}
        if self._stop.is_set() or await self._goes_on(members, rows):
            return False
        self._served = members
        service = self._archives.of(folder)
        await service.refresh(Host.DSH)
        listening = asyncio.create_task(self._until_others_begin(members))
        try:
            return await self._fill_in(service)
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _fill_in(self, service: HistoryService) -> bool:
        answer = await service.summarize(Host.DSH, self._writer, self._stop)
        log = structlog.get_logger(__name__)
        log.info("summaries", written=answer.written, failed=answer.failed, pending=answer.pending)
        return not answer.cancelled

    async def _goes_on(self, members: AbstractSet[SessionId], rows: Mapping[SessionId, SessionSummary]) -> bool:
        """Whether a session of the workspace runs or has something queued."""
        if any(rows[name].running or self._busy[name] for name in members):
            return True
        for name in members & self._wanted.keys():
            try:
                if (await self._harness.projections(name)).queue:
                    return True
            except Unsupported:
                continue
        return False

    async def _until_others_begin(self, members: Collection[SessionId]) -> None:
        """Stop as soon as the host says that a session of the workspace runs, whoever made it."""
        try:
            async with self._harness.host_events() as events:
                async for event in events:
                    if isinstance(event, RunningChanged) and event.running and event.session in members:
                        self._stop.set()
        except HarnessError:
            return  # our own turns are still seen


def _folder(session: SessionId, rows: Mapping[SessionId, SessionSummary]) -> str | None:
    """Return the folder a session belongs to: a subagent's is that of the session it works for."""
    seen: set[SessionId] = set()
    row = rows.get(session)
    while row is not None and row.subagent and row.parent is not None and row.id not in seen:
        seen.add(row.id)
        row = rows.get(row.parent)
    return row.cwd if row is not None else None

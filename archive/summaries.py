"""Summaries are filled in here, one call at a time, and only when somebody says that it is time (spec ARCHIVE 5).

A summary is committed only if its children still say what it was made of and nobody else has written it meanwhile.
Model calls happen outside every lock; whatever ends a run, what was committed stands and the rest stays pending.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import Final, TypeVar

from archive.answers import SummarizeAnswer
from archive.files import ArchiveFolder, NotSaved
from archive.library import warned
from archive.material import instructions, records, summarise
from archive.merge import top_nodes
from archive.model import Code, Node, NodeId, Notice, SessionArchive, Summary
from archive.refresh import Progress
from archive.tree import digest, due, grouped
from archive.writers import Writer, WriterFailed

FAILURES_IN_A_ROW: Final = 3
"""After so many the model is left alone until the next run."""

T = TypeVar("T")


class _Done(Enum):
    WRITTEN = auto()
    FAILED = auto()
    WAITING = auto()
    """Something below is not written yet, or changed while the model was at it."""


class _Cancelled(Exception):
    """Whoever asked for the run wants no more of it."""


@dataclass(slots=True)
class Run:
    """One pass over a host's archives. ``stop`` ends it at any moment, also in the middle of a call."""

    folder: ArchiveFolder
    writer: Writer
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    progress: Progress | None = None
    """Told after each summary: how many are done, of how many that were due at the start."""
    _known: dict[str, str] = field(default_factory=dict)
    """Texts by the digest of what they were made of: what forks copied is not asked for twice."""
    _counts: Counter[_Done] = field(default_factory=Counter)
    _in_a_row: int = 0
    _total: int = 0

    async def fill_in(self) -> SummarizeAnswer:
        """Write what is pending, lower levels first, newest session first."""
        contents = await asyncio.to_thread(self.folder.load)
        archives = sorted(contents.archives.values(), key=lambda each: each.updated_at, reverse=True)
        self._known = {digest: text for each in archives for digest, text in _texts(each)}
        self._total = sum(len(due(grouped(archive))) for archive in archives)
        notices = list(contents.notices)
        cancelled = False
        try:
            for archive in archives:
                await self._session(archive, notices)
        except _Cancelled:
            cancelled = True
        return await asyncio.to_thread(self._answer, notices, cancelled=cancelled)

    def _answer(self, notices: list[Notice], *, cancelled: bool) -> SummarizeAnswer:
        archives = self.folder.load().archives.values()
        failures = [notice for archive in archives for notice in failed_before(archive)]
        return SummarizeAnswer(
            host=self.folder.host,
            pending=sum(len(due(grouped(archive))) for archive in archives),
            written=self._counts[_Done.WRITTEN],
            failed=self._counts[_Done.FAILED],
            cancelled=cancelled,
            warnings=warned((*notices, *failures)),
        )

    async def _session(self, archive: SessionArchive, notices: list[Notice]) -> None:
        view = grouped(archive)
        for name in due(view):
            if self._in_a_row >= FAILURES_IN_A_ROW:
                return
            try:
                view = grouped(await self._node(view, name))
            except NotSaved as error:
                notices.append(Notice(error.code, archive.session))
                return
            if self.progress is not None:
                self.progress(self._counts.total(), self._total)

    async def _node(self, view: SessionArchive, name: NodeId) -> SessionArchive:
        """Write one summary and return the archive as it is then. Raises NotSaved."""
        node = view.nodes.get(name)
        made_of = digest(view, node.children) if isinstance(node, Summary) and not node.ready else None
        if not isinstance(node, Summary) or made_of is None:
            self._counts[_Done.WAITING] += 1
            return view
        try:
            text = self._known.get(made_of)
            if text is None:
                material = records(view.nodes, node.children)
                text = await self._unless_stopped(summarise(self.writer, instructions(), material))
        except WriterFailed as error:
            self._counts[_Done.FAILED] += 1
            self._in_a_row += 1
            return await self._update(view, partial(_with_warning, error.code))
        self._in_a_row = 0
        written = replace(node, text=text, ready=True, source_digest=made_of)
        archive = await self._update(view, partial(_with_summary, name, written))
        done = archive.nodes.get(name) == written
        self._counts[_Done.WRITTEN if done else _Done.WAITING] += 1
        if done:
            self._known[made_of] = text
        return archive

    async def _update(self, view: SessionArchive, change: Callable[[SessionArchive], SessionArchive]) -> SessionArchive:
        commit = await asyncio.to_thread(self.folder.update, view.session, partial(_present, change))
        return commit.archive

    async def _unless_stopped(self, work: Awaitable[T]) -> T:
        """Do ``work``, or raise _Cancelled as soon as the run is to stop; ``work`` has ended by then."""
        working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                raise _Cancelled
            return working.result()
        finally:
            for task in (working, stopping):
                task.cancel()
            await asyncio.wait({working, stopping})


def failed_before(archive: SessionArchive) -> list[Notice]:
    """Return what went wrong with an archive's summaries and is not mended yet."""
    known = {code.value: code for code in Code}
    return [Notice(known.get(text, Code.WRITER_FAILED), archive.session) for text in archive.summary_warnings]


def _texts(archive: SessionArchive) -> list[tuple[str, str]]:
    summaries = [node for node in archive.nodes.values() if isinstance(node, Summary)]
    return [(node.source_digest, node.text) for node in summaries if node.ready and node.source_digest and node.text]


def _present(
    change: Callable[[SessionArchive], SessionArchive], current: SessionArchive | None, _root: NodeId
) -> SessionArchive:
    if current is None:
        raise NotSaved(Code.UNREADABLE)  # gone since it was loaded
    return change(current)


def _with_summary(name: NodeId, written: Summary, current: SessionArchive) -> SessionArchive:
    """Put a summary in its place, unless its children changed or somebody else put one there first."""
    view = grouped(current)
    node = view.nodes.get(name)
    if not isinstance(node, Summary) or node.ready or digest(view, written.children) != written.source_digest:
        return current
    nodes: dict[NodeId, Node] = {**view.nodes, name: written}
    return replace(view, nodes=nodes, roots=top_nodes(nodes), summary_warnings=())


def _with_warning(code: Code, current: SessionArchive) -> SessionArchive:
    return replace(current, summary_warnings=(code.value,))

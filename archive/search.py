"""Full-text search over a library, and the list of its sessions (spec ARCHIVE 2)."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from msgspec import UNSET

from archive.answers import Match, Reason, Result, SearchAnswer, Why
from archive.body import Units, body, parts
from archive.fold import MOST_SPANS, fold, spans, units
from archive.library import Library
from archive.model import Host, Summary
from archive.request import Search
from archive.shelf import PREVIEW, Entry, Shelf, line

_Hit = tuple[Entry, Shelf]
_LEAD: Final = PREVIEW // 3
"""UTF-16 units shown before the first place of a hit."""


def search(library: Library, asked: Search) -> SearchAnswer:
    """Answer one search, the newest end first, then by host and id."""
    query = "" if asked.query.isspace() else fold(asked.query)
    page_end = asked.offset + asked.limit
    found = heapq.nsmallest(page_end + 1, _hits(library, asked, query), key=_rank)
    page = found[asked.offset : page_end]
    return SearchAnswer(
        results=tuple(_result(library, entry, shelf, query) for entry, shelf in page),
        next_offset=page_end if len(found) > page_end else None,
        reason=None if page else _reason(library, asked, Why.PAST_THE_END if found else None),
        warnings=library.warnings,
    )


def _rank(hit: _Hit) -> tuple[str, Host, str]:
    return hit[0].rank


def _in_scope(library: Library, asked: Search) -> Iterator[Shelf]:
    for (host, _), shelf in library.shelves.items():
        if asked.host in (None, host) and asked.session in (None, shelf.archive.session):
            yield shelf


def _hits(library: Library, asked: Search, query: str) -> Iterator[_Hit]:
    since, until = asked.since or "", asked.until or "~"
    for shelf in _in_scope(library, asked):
        for entry in shelf.holding(query) if query else (shelf.root,):
            if entry.start <= until and entry.end >= since:
                yield entry, shelf


def _result(library: Library, entry: Entry, shelf: Shelf, query: str) -> Result:
    name = entry.name
    node = shelf.node(name)
    matches: tuple[Match, ...] = ()
    preview = shelf.preview(name)
    if node is not None:
        found = ((part, span) for part in parts(node) for span in spans(part.text, query))
        matches = tuple(
            Match(where=part.where, start=part.start + start, end=part.start + end)
            for part, (start, end) in itertools.islice(found, MOST_SPANS)
        )
        preview = _around(body(node), matches[0])
    return Result(
        host=shelf.archive.host,
        id=name,
        kind=shelf.kind(name),
        level=node.level if isinstance(node, Summary) else None if node is None else 0,
        session_id=shelf.archive.session,
        title=shelf.archive.title,
        preview=preview,
        matches=matches,
        start=entry.start,
        end=entry.end,
        completed=shelf.completed(name),
        ready=shelf.ready(name),
        source=shelf.source(name),
        parents=shelf.parents(name),
        shared=True if library.shared(shelf, name) else UNSET,
    )


def _around(text: str, match: Match) -> str:
    """Return one line of a body with the first hit in it."""
    if units(text[: 4 * PREVIEW]) <= PREVIEW and len(text) <= PREVIEW:
        return line(text)
    whole = Units(text)
    start = max(0, match.start - _LEAD)
    before = whole.cut(start, match.start - start).text if match.start > start else ""
    rest = whole.cut(match.start, 4 * PREVIEW).text
    lead = " ".join(before.split()) + (" " if before[-1:].isspace() else "")
    return ("…" if start else "") + line((lead + rest).lstrip())


def _reason(library: Library, asked: Search, why: Why | None) -> Reason:
    """Say what was looked through in vain, and which of the conditions left nothing."""
    in_scope = list(_in_scope(library, asked))
    return Reason(
        code=why or _why(library, asked, anything_in_scope=bool(in_scope)),
        hosts=(asked.host,) if asked.host else tuple(Host),
        sessions=len(in_scope),
        unreadable=len(library.notices),
        session_id=asked.session,
        since=asked.since,
        until=asked.until,
    )


def _why(library: Library, asked: Search, *, anything_in_scope: bool) -> Why:
    if not library.shelves:
        return Why.UNREADABLE if library.notices else Why.NO_ARCHIVE
    if not anything_in_scope:
        host_alone = replace(asked, session=None)
        return Why.NO_SUCH_SESSION if any(_in_scope(library, host_alone)) else Why.NO_SUCH_HOST
    listed = replace(asked, query="")
    return Why.NO_MATCH if any(_hits(library, listed, "")) else Why.OUT_OF_RANGE

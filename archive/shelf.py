"""One archive as it is searched and read: its tree complete, its texts folded, what is above each node."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from archive.answers import Child, From, Kind, Parent
from archive.body import texts
from archive.fold import fold
from archive.model import Host, Node, NodeId, Pair, SessionArchive, Summary
from archive.times import Instant
from archive.tree import first_pair, grouped, last_pair, parents, unfinished

PREVIEW: Final = 160
"""Characters of a preview."""
_LATEST_FIRST: Final = str.maketrans("0123456789", "9876543210")


def line(text: str, limit: int = PREVIEW) -> str:
    """Return the beginning of a text as one line."""
    words = " ".join(text[: 4 * limit].split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


@dataclass(frozen=True, slots=True)
class Entry:
    """One node that can be found. ``rank`` sorts the newest end first, then by host and id."""

    name: NodeId
    start: Instant
    end: Instant
    rank: tuple[str, Host, NodeId]


class Column:
    """Many folded texts as one, so that looking through them is one call for each session, not for each text."""

    def __init__(self, texts: Sequence[tuple[int, str]]) -> None:
        """Each text comes with the number of what it belongs to; none is empty."""
        self._text = "".join(text for _, text in texts)
        self._owners = [owner for owner, _ in texts]
        self._ends = list(itertools.accumulate(len(text) for _, text in texts))

    def owners(self, query: str) -> Iterator[int]:
        """Yield what the texts that hold ``query`` belong to, for each text once; no text runs on into the next."""
        at = self._text.find(query)
        while at >= 0:
            place = bisect.bisect_right(self._ends, at)
            if at + len(query) <= self._ends[place]:
                yield self._owners[place]
                at = self._text.find(query, self._ends[place])
            else:
                at = self._text.find(query, at + 1)


@dataclass(frozen=True)
class Shelf:
    """Built once for each state of an archive; everything about it is asked here."""

    stored: SessionArchive
    """As it lies in its file."""
    archive: SessionArchive = field(init=False)
    _entries: tuple[Entry, ...] = field(init=False, repr=False)
    _columns: tuple[Column, Column] = field(init=False, repr=False)
    """Texts of ASCII alone, and all others: each kind is kept in the width it needs, and searched by itself."""

    def __post_init__(self) -> None:
        archive = grouped(self.stored)
        object.__setattr__(self, "archive", archive)
        folded = [
            (number, fold(text))
            for number, node in enumerate(archive.nodes.values())
            for _, text in texts(node)
            if text
        ]
        plain = Column([each for each in folded if each[1].isascii()])
        wide = Column([each for each in folded if not each[1].isascii()])
        object.__setattr__(self, "_columns", (plain, wide))
        object.__setattr__(self, "_entries", tuple(map(self._entry, archive.nodes)))

    def holding(self, query: str) -> Iterator[Entry]:
        """Yield the nodes with ``query``, folded and not empty, in one of their texts."""
        plain, wide = self._columns
        numbers = set(wide.owners(query))
        if query.isascii():
            numbers.update(plain.owners(query))
        return (self._entries[number] for number in numbers)

    def _entry(self, name: NodeId) -> Entry:
        start, end = self.span(name)
        return Entry(name, start, end, (end.translate(_LATEST_FIRST), self.archive.host, name))

    @cached_property
    def root(self) -> Entry:
        """The session itself, for the list of sessions."""
        return self._entry(self.archive.id)

    @cached_property
    def _parents(self) -> dict[NodeId, list[NodeId]]:
        return parents(self.archive)

    @cached_property
    def _spans(self) -> tuple[Instant, Instant]:
        pairs = self.archive.pairs.values()
        start = min((pair.start for pair in pairs), default=self.archive.created_at)
        return start, max((pair.end for pair in pairs), default=self.archive.updated_at)

    def __contains__(self, name: NodeId) -> bool:
        return name == self.archive.id or name in self.archive.nodes

    def node(self, name: NodeId) -> Node | None:
        """Return a node; None for the root."""
        return None if name == self.archive.id else self.archive.nodes[name]

    def kind(self, name: NodeId) -> Kind:
        """Return what a node is."""
        node = self.node(name)
        if node is None:
            return "session"
        return "pair" if isinstance(node, Pair) else "summary"

    def span(self, name: NodeId) -> tuple[Instant, Instant]:
        """Return the time a node covers."""
        node = self.node(name)
        if node is None:
            return self._spans
        if isinstance(node, Pair):
            return node.start, node.end
        nodes = self.archive.nodes
        return first_pair(nodes, name).start, last_pair(nodes, name).end

    def preview(self, name: NodeId) -> str:
        """Return the title of a session, the question of a pair, the beginning of a summary or of what it covers."""
        node = self.node(name)
        if node is None:
            title = self.archive.title or next((self.preview(pair) for pair in self.archive.pairs), "")
            return line(title)
        if isinstance(node, Summary) and node.ready:
            return line(node.text or "")
        pair = first_pair(self.archive.nodes, name)
        return line(next((given.text for given in pair.inputs if given.text.strip()), pair.answer))

    def completed(self, name: NodeId) -> bool:
        """Whether every pair of a node has its answer."""
        below = self.archive.pairs if name == self.archive.id else (name,)
        return not any(unfinished(self.archive.nodes, each) for each in below)

    def ready(self, name: NodeId) -> bool:
        """Whether a summary is written; for a session whether all of its are. A pair is its own text."""
        node = self.node(name)
        if node is None:
            return all(each.ready for each in self.archive.nodes.values() if isinstance(each, Summary))
        return node.ready if isinstance(node, Summary) else True

    def source(self, name: NodeId) -> From:
        """Return where a node's text came from."""
        archive = self.archive
        if name != archive.id:
            entries = archive.source(name).entry_ids
        else:
            pairs = sorted(archive.pairs.values(), key=lambda pair: (pair.start, pair.end))
            entries = (pairs[0].entry_ids[0], pairs[-1].entry_ids[-1]) if pairs else ()
        return From(host=archive.host, session_id=archive.session, entry_ids=entries)

    def parents(self, name: NodeId) -> tuple[Parent, ...]:
        """Return what is above a node: summaries, more than one in a beginning that branches share, or the session."""
        host, above = self.archive.host, self._parents.get(name, ())
        return tuple(Parent(host=host, id=parent, preview=self.preview(parent)) for parent in above)

    def children(self, name: NodeId) -> tuple[NodeId, ...]:
        """Return what is below a node."""
        node = self.node(name)
        if node is None:
            return self.archive.roots
        return node.children if isinstance(node, Summary) else ()

    def child(self, name: NodeId) -> Child:
        """Show a node below another."""
        return Child(host=self.archive.host, id=name, kind=self.kind(name), preview=self.preview(name))

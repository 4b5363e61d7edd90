"""One archive as it is searched and read: its tree complete, its texts folded, what is above each node."""

from __future__ import annotations

from collections.abc import Iterator
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
    folded: tuple[str, ...]
    start: Instant
    end: Instant
    rank: tuple[str, Host, NodeId]


@dataclass(frozen=True)
class Shelf:
    """Built once for each state of an archive; everything about it is asked here."""

    stored: SessionArchive
    """As it lies in its file."""
    archive: SessionArchive = field(init=False)
    entries: tuple[Entry, ...] = field(init=False)

    def __post_init__(self) -> None:
        archive = grouped(self.stored)
        object.__setattr__(self, "archive", archive)
        object.__setattr__(self, "entries", tuple(self._entries(archive)))

    def _entries(self, archive: SessionArchive) -> Iterator[Entry]:
        for name, node in archive.nodes.items():
            folded = tuple(fold(text) for _, text in texts(node) if text)
            if folded:
                yield self._entry(name, folded)

    def _entry(self, name: NodeId, folded: tuple[str, ...] = ()) -> Entry:
        start, end = self.span(name)
        return Entry(name, folded, start, end, (end.translate(_LATEST_FIRST), self.archive.host, name))

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

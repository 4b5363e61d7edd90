"""What an archive holds: sessions, their pairs, summaries over them, and where each piece of text came from.

Field names follow the wire (spec ARCHIVE 2.1, facts SESSIONS 3.8) in snake case. Texts are valid UTF-8, always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from archive.text import clean
from archive.times import Instant
from harness_client.types import SessionId

NodeId = NewType("NodeId", str)
"""Names a session (its root), a pair or a summary. Never parsed, never changed once it is in an archive."""


MAX_NOTICES = 20
"""Warnings kept of one session; a log that is broken all over needs no more to say so."""


class Host(StrEnum):
    """Whose native sessions an archive was made from."""

    PI = "pi"
    DSH = "dsh"


class Origin(StrEnum):
    """Who spoke an input: a person, a coordinator handing over work, or a person asked by the agent."""

    USER = "user"
    DELEGATION = "delegation"
    USER_REPLY = "user-reply"


class EndReason(StrEnum):
    """How a pair ended; only STOP is a complete answer, and OPEN may still change."""

    STOP = "stop"
    ABORTED = "aborted"
    ERROR = "error"
    LENGTH = "length"
    EMPTY = "empty"
    INTERRUPTED = "interrupted"
    OPEN = "open"


class Parentage(StrEnum):
    """How a session descends from its parent."""

    SUBAGENT = "subagent"
    FORK = "fork"


class Code(StrEnum):
    """Everything a scan, a commit or a read may warn of; the layers above put it into words."""

    LINE_TORN = "line-torn"
    LINE_SALVAGED = "line-salvaged"
    DUPLICATE_HEADER = "duplicate-header"
    ENTRY_CONFLICT = "entry-conflict"
    ENTRY_INVALID = "entry-invalid"
    PARENT_MISSING = "parent-missing"
    NO_HEADER = "no-header"
    UNKNOWN_FORMAT = "unknown-format"
    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"
    SETTINGS_INVALID = "settings-invalid"
    LINEAGE_BROKEN = "lineage-broken"
    ARCHIVE_DAMAGED = "archive-damaged"
    ARCHIVE_UNKNOWN_VERSION = "archive-unknown-version"
    ARCHIVE_NOT_SAVED = "archive-not-saved"
    ARCHIVE_BUSY = "archive-busy"
    LEGACY_UNREADABLE = "legacy-unreadable"
    WRITER_MISSING = "writer-missing"
    WRITER_UNREACHABLE = "writer-unreachable"
    WRITER_FAILED = "writer-failed"
    WRITER_TIMED_OUT = "writer-timed-out"
    WRITER_EMPTY = "writer-empty"


@dataclass(frozen=True, slots=True)
class Notice:
    """One warning. ``subject`` is a session id or a file's bare name, never a path; ``line`` counts from 1."""

    code: Code
    subject: str
    line: int | None = None

    def __post_init__(self) -> None:
        # a file's name may be no UTF-8 at all
        object.__setattr__(self, "subject", clean(self.subject))


@dataclass(frozen=True, slots=True)
class Input:
    """One human input of a pair."""

    origin: Origin
    text: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Pair:
    """A question with its supplements, and what became of it (spec ARCHIVE 3).

    ``answer`` is the final answer, or the partial text of an unfinished one. ``later`` are answers to notifications
    that came after it. ``entry_ids`` name the inputs and every model message of the pair in the native log, in order.
    """

    inputs: tuple[Input, ...]
    answer: str
    later: tuple[str, ...]
    end_reason: EndReason
    entry_ids: tuple[str, ...]
    start: Instant
    end: Instant
    digest: str

    @property
    def completed(self) -> bool:
        """Whether the answer is a valid final one."""
        return self.end_reason is EndReason.STOP


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of four consecutive nodes; ``text`` is current only while ``ready`` (spec ARCHIVE 5)."""

    level: int
    children: tuple[NodeId, ...]
    text: str | None
    ready: bool
    source_digest: str | None


Node = Pair | Summary

Branches = tuple[tuple[NodeId, ...], ...]
"""Paths of pair ids from the first to the last, in order. A path that shares a beginning with an earlier one starts
with the last pair they share, so that wide trees stay linear in size."""


def previous(branches: Branches) -> dict[NodeId, NodeId | None]:
    """Return for each pair the one before it, None for a first one: every pair has one place in the tree."""
    before: dict[NodeId, NodeId | None] = {}
    for branch in branches:
        before.setdefault(branch[0], None)
        before.update(zip(branch[1:], branch, strict=False))
    return before


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a session comes from."""

    parent: SessionId | None = None
    origin: Parentage | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of the native log at the moment before it was read. ``size`` in bytes, for remote hosts in events."""

    size: int
    mtime_ns: int
    entries: int = 0
    last_entry: str | None = None

    @property
    def age(self) -> tuple[int, int, int]:
        """Sorts stamps of one session from the oldest state to the newest."""
        return (self.mtime_ns, self.size, self.entries)

    def same_state(self, other: Stamp) -> bool:
        """Whether both were taken of the same state; what was found inside does not matter."""
        return (self.size, self.mtime_ns) == (other.size, other.mtime_ns)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a node's text came from: message ids of the native session; for a summary the first and the last."""

    host: Host
    session: SessionId
    entry_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """What one reading of a native session found; pairs in the order of their branches."""

    host: Host
    session: SessionId
    title: str | None
    created_at: Instant
    lineage: Lineage
    stamp: Stamp
    pairs: Mapping[NodeId, Pair]
    branches: Branches
    warnings: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class SessionArchive:
    """One archive file. ``id`` is its root node and the stem of its name.

    ``nodes`` hold the pairs in the order of the branches, then the summaries; ``roots`` are the nodes under no
    summary, in order.
    """

    host: Host
    id: NodeId
    session: SessionId
    title: str | None
    created_at: Instant
    updated_at: Instant
    lineage: Lineage
    scan: Stamp
    nodes: Mapping[NodeId, Node]
    branches: Branches
    roots: tuple[NodeId, ...]
    scan_warnings: tuple[Notice, ...]
    summary_warnings: tuple[str, ...]

    @property
    def pairs(self) -> dict[NodeId, Pair]:
        """The pairs among the nodes, in order."""
        return {name: node for name, node in self.nodes.items() if isinstance(node, Pair)}

    def source(self, name: NodeId) -> Source:
        """Where the node ``name`` came from. Raises KeyError when there is none."""
        node = self.nodes[name]
        if isinstance(node, Pair):
            return Source(self.host, self.session, node.entry_ids)
        first, last = self._edge(name, 0), self._edge(name, -1)
        return Source(self.host, self.session, (first.entry_ids[0], last.entry_ids[-1]))

    def _edge(self, name: NodeId, side: int) -> Pair:
        node = self.nodes[name]
        while isinstance(node, Summary):
            node = self.nodes[node.children[side]]
        return node

"""The archive file: JSON, format ``pbot-history``, version 1 (facts SESSIONS 3.8), strict both ways.

What this version does not know is refused as damaged rather than dropped at the next write. The one exception is
``file``, a field of old Pi indexes, which is read and left out when written.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from archive.model import (
    Code,
    EndReason,
    Host,
    Input,
    Lineage,
    Node,
    NodeId,
    Notice,
    Origin,
    Pair,
    Parentage,
    SessionArchive,
    Stamp,
    Summary,
)
from archive.times import PATTERN, Instant
from harness_client.types import SessionId

VERSION: Final = 1
GROUP = 4
"""How many consecutive nodes a summary covers."""

_Time = Annotated[str, msgspec.Meta(pattern=PATTERN)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Unreadable(Exception):
    """An archive file that cannot be used; ``code`` says whether it is damaged or of a version we do not know."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.value)
        self.code = code


class _Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""


class _Input(_Strict):
    origin: Origin
    text: str
    at: _Time


class _Pair(_Strict, tag="qa", tag_field="kind"):
    inputs: Annotated[tuple[_Input, ...], msgspec.Meta(min_length=1)]
    answer: str
    later: tuple[str, ...]
    completed: bool
    end_reason: EndReason
    entry_ids: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    start: _Time
    end: _Time
    digest: str


class _Summary(_Strict, tag="summary", tag_field="kind"):
    level: Annotated[int, msgspec.Meta(ge=1)]
    children: Annotated[tuple[str, ...], msgspec.Meta(min_length=GROUP, max_length=GROUP)]
    text: str | None
    ready: bool
    source_digest: str | None


class _Lineage(_Strict):
    parent_session_id: str | None
    origin: Parentage | None


class _Stamp(_Strict):
    entries: _Count
    last_entry_id: str | None
    size: _Count
    mtime_ns: Annotated[str, msgspec.Meta(pattern=r"^-?\d{1,20}$")]  # text: JSON readers elsewhere lose 64-bit numbers


class _Notice(_Strict, omit_defaults=True):
    code: Code
    subject: str
    line: int | None = None


class _Warnings(_Strict):
    scan: tuple[_Notice, ...]
    summary: tuple[str, ...]


class _Archive(_Strict, omit_defaults=True):
    format: Literal["pbot-history"]
    version: Literal[1]
    host: Host
    id: str
    session_id: str
    title: str | None
    created_at: _Time
    updated_at: _Time
    lineage: _Lineage
    scan: _Stamp
    nodes: dict[str, _Pair | _Summary]
    branches: tuple[Annotated[tuple[str, ...], msgspec.Meta(min_length=1)], ...]
    roots: tuple[str, ...]
    warnings: _Warnings
    file: str | None = None
    cwd: str | None = None


class _Versioned(msgspec.Struct):
    format: Literal["pbot-history"]
    version: int


class Decoded(msgspec.Struct, frozen=True):
    """An archive with what an old index said beside it: the native file and the workspace, both paths."""

    archive: SessionArchive
    file: str | None
    cwd: str | None


def decode(data: bytes, *, stem: str, host: Host) -> Decoded:
    """Read and check a file named ``stem``. Raises Unreadable."""
    try:
        wire = msgspec.json.decode(data, type=_Archive)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(_why(data)) from error
    if wire.host is not host or wire.id != stem or not _consistent(wire):
        raise Unreadable(Code.ARCHIVE_DAMAGED)
    return Decoded(_archive(wire), wire.file, wire.cwd)


def encode(archive: SessionArchive) -> bytes:
    """Write an archive; what :func:`decode` reads back equal."""
    wire = _Archive(
        format="pbot-history",
        version=VERSION,
        host=archive.host,
        id=archive.id,
        session_id=archive.session,
        title=archive.title,
        created_at=archive.created_at,
        updated_at=archive.updated_at,
        lineage=_Lineage(archive.lineage.parent, archive.lineage.origin),
        scan=_Stamp(archive.scan.entries, archive.scan.last_entry, archive.scan.size, str(archive.scan.mtime_ns)),
        nodes={name: _wire_node(node) for name, node in archive.nodes.items()},
        branches=archive.branches,
        roots=archive.roots,
        warnings=_Warnings(
            tuple(_Notice(each.code, each.subject, each.line) for each in archive.scan_warnings),
            archive.summary_warnings,
        ),
    )
    return msgspec.json.encode(wire) + b"\n"


def _why(data: bytes) -> Code:
    try:
        known = msgspec.json.decode(data, type=_Versioned).version == VERSION
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        known = True
    return Code.ARCHIVE_DAMAGED if known else Code.ARCHIVE_UNKNOWN_VERSION


def _consistent(wire: _Archive) -> bool:
    """Whether all references lead somewhere, summaries stand one level over their children, and branches are a tree."""
    levels = {name: node.level if isinstance(node, _Summary) else 0 for name, node in wire.nodes.items()}
    for node in wire.nodes.values():
        if isinstance(node, _Summary):
            if any(levels.get(child) != node.level - 1 for child in node.children):
                return False
        elif node.completed is not (node.end_reason is EndReason.STOP):
            return False
    seen: set[str] = set()
    for first, *rest in wire.branches:
        own = rest if first in seen else [first, *rest]
        if not own or not seen.isdisjoint(own) or len(set(own)) != len(own):
            return False
        seen.update(own)
    return seen == {name for name, level in levels.items() if level == 0} and levels.keys() >= set(wire.roots)


def _archive(wire: _Archive) -> SessionArchive:
    return SessionArchive(
        host=wire.host,
        id=NodeId(wire.id),
        session=SessionId(wire.session_id),
        title=wire.title,
        created_at=Instant(wire.created_at),
        updated_at=Instant(wire.updated_at),
        lineage=Lineage(
            None if wire.lineage.parent_session_id is None else SessionId(wire.lineage.parent_session_id),
            wire.lineage.origin,
        ),
        scan=Stamp(wire.scan.size, int(wire.scan.mtime_ns), wire.scan.entries, wire.scan.last_entry_id),
        nodes={NodeId(name): _node(node) for name, node in wire.nodes.items()},
        branches=tuple(tuple(map(NodeId, branch)) for branch in wire.branches),
        roots=tuple(map(NodeId, wire.roots)),
        scan_warnings=tuple(Notice(each.code, each.subject, each.line) for each in wire.warnings.scan),
        summary_warnings=wire.warnings.summary,
    )


def _node(wire: _Pair | _Summary) -> Node:
    if isinstance(wire, _Summary):
        return Summary(wire.level, tuple(map(NodeId, wire.children)), wire.text, wire.ready, wire.source_digest)
    return Pair(
        inputs=tuple(Input(each.origin, each.text, Instant(each.at)) for each in wire.inputs),
        answer=wire.answer,
        later=wire.later,
        end_reason=wire.end_reason,
        entry_ids=wire.entry_ids,
        start=Instant(wire.start),
        end=Instant(wire.end),
        digest=wire.digest,
    )


def _wire_node(node: Node) -> _Pair | _Summary:
    if isinstance(node, Summary):
        return _Summary(node.level, node.children, node.text, node.ready, node.source_digest)
    return _Pair(
        inputs=tuple(_Input(each.origin, each.text, each.at) for each in node.inputs),
        answer=node.answer,
        later=node.later,
        completed=node.completed,
        end_reason=node.end_reason,
        entry_ids=node.entry_ids,
        start=node.start,
        end=node.end,
        digest=node.digest,
    )

"""Archives and scans made without any native file."""

from __future__ import annotations

from dataclasses import replace

from archive.merge import merge, top_nodes
from archive.model import EndReason, Host, Lineage, Node, NodeId, Notice, Scan, SessionArchive, Stamp, Summary
from archive.pairs import Act, Human, Moment, Reply, project
from archive.times import Instant
from harness_client.types import SessionId

CREATED = Instant("2026-01-01T00:00:00.000Z")


def moments(pairs: int, open_question: str | None = None, prefix: str = "") -> list[Moment]:
    acts: list[tuple[str, Act]] = []
    for number in range(pairs):
        acts.append((f"{prefix}q{number}", Human(f"question {number}")))
        acts.append((f"{prefix}a{number}", Reply(f"answer {number}", EndReason.STOP)))
    if open_question is not None:
        acts.append((f"{prefix}q{pairs}", Human(open_question)))
    times = [Instant(f"2026-01-01T00:{index // 60:02d}:{index % 60:02d}.000Z") for index in range(len(acts))]
    return [Moment(entry, times[index], index - 1 if index else None, act) for index, (entry, act) in enumerate(acts)]


def scan_of(
    line: list[Moment],
    *,
    session: str = "s",
    host: Host = Host.PI,
    mtime: int | None = None,
    title: str | None = None,
    lineage: Lineage | None = None,
    warnings: tuple[Notice, ...] = (),
) -> Scan:
    """A scan of a log that held these moments; its stamp grows with them unless ``mtime`` says otherwise."""
    projection = project(host, SessionId(session), line)
    size = len(line) if mtime is None else mtime
    return Scan(
        host=host,
        session=SessionId(session),
        title=title,
        created_at=CREATED,
        lineage=lineage or Lineage(),
        stamp=Stamp(size, size, len(line), line[-1].entry if line else None),
        pairs=projection.pairs,
        branches=projection.branches,
        warnings=warnings,
    )


def archive_of(pairs: int = 0, *, session: str = "s", host: Host = Host.PI) -> SessionArchive:
    return merge(None, scan_of(moments(pairs), session=session, host=host), NodeId(session))


def with_summary(archive: SessionArchive, *, level_two: bool = False) -> SessionArchive:
    """Summarise the first four pairs as ``sum``; with ``level_two`` put a fifth summary over four such."""
    names = list(archive.pairs)
    nodes: dict[NodeId, Node] = dict(archive.nodes)
    nodes[NodeId("sum")] = Summary(1, tuple(names[:4]), "in short", ready=True, source_digest="d")
    if level_two:
        others = [NodeId(f"sum{index}") for index in (1, 2, 3)]
        for index, name in enumerate(others, 1):
            nodes[name] = Summary(1, tuple(names[4 * index : 4 * index + 4]), "more", ready=True, source_digest="d")
        nodes[NodeId("top")] = Summary(2, (NodeId("sum"), *others), "all", ready=True, source_digest="d")
    return replace(archive, nodes=nodes, roots=top_nodes(nodes))

"""What becomes of an archive when a scan is committed to it (spec ARCHIVE 4).

Scans may arrive in any order, late or twice, and the result is the same: each pair keeps its most advanced state,
nothing is ever removed, and no id that is in the archive changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from archive.model import Branches, EndReason, Lineage, Node, NodeId, Pair, Scan, SessionArchive, Summary, previous
from archive.times import Instant

_FORMAT_1 = "v1-"
"""Entry ids of this beginning are counted, not read: Pi gives real ones when it migrates such a file."""


def merge(current: SessionArchive | None, scan: Scan, root: NodeId) -> SessionArchive:
    """Return the archive after ``scan``; ``root`` names it where ``current`` is None."""
    if current is None:
        current = _empty(scan, root)
    old = current.pairs
    names = _adopted(old, scan.pairs)
    fresh = scan.stamp.age >= current.scan.age
    new = {names(name): pair for name, pair in scan.pairs.items()}
    pairs = old | {name: _advanced(old.get(name), pair, fresh=fresh) for name, pair in new.items()}
    known, found = previous(current.branches), previous(tuple(tuple(map(names, branch)) for branch in scan.branches))
    branches = _branches(pairs, known | found if fresh else found | known)
    ordered = {name: pairs[name] for branch in branches for name in branch}
    changed = {name for name, pair in pairs.items() if pair != old.get(name)}
    nodes: dict[NodeId, Node] = {**ordered, **_summaries(current, changed)}
    return replace(
        current,
        title=(scan.title or current.title) if fresh else (current.title or scan.title),
        created_at=scan.created_at if fresh else current.created_at,
        updated_at=max((pair.end for pair in pairs.values()), default=scan.created_at),
        lineage=_lineage(scan.lineage, current.lineage) if fresh else _lineage(current.lineage, scan.lineage),
        scan=scan.stamp if fresh else current.scan,
        nodes=nodes,
        branches=branches,
        roots=top_nodes(nodes),
        scan_warnings=scan.warnings if fresh else current.scan_warnings,
    )


def top_nodes(nodes: Mapping[NodeId, Node]) -> tuple[NodeId, ...]:
    """Return the nodes under no summary; a summary stands where its first pair would."""
    covered = {child for node in nodes.values() if isinstance(node, Summary) for child in node.children}
    place = {name: index for index, name in enumerate(nodes)}

    def first_pair(name: NodeId) -> int:
        node = nodes[name]
        while isinstance(node, Summary):
            name = node.children[0]
            node = nodes[name]
        return place[name]

    return tuple(sorted((name for name in nodes if name not in covered), key=first_pair))


def _empty(scan: Scan, root: NodeId) -> SessionArchive:
    return SessionArchive(
        host=scan.host,
        id=root,
        session=scan.session,
        title=None,
        created_at=scan.created_at,
        updated_at=scan.created_at,
        lineage=Lineage(),
        scan=scan.stamp,
        nodes={},
        branches=(),
        roots=(),
        scan_warnings=(),
        summary_warnings=(),
    )


def _lineage(first: Lineage, second: Lineage) -> Lineage:
    return Lineage(first.parent or second.parent, first.origin or second.origin)


def _advanced(old: Pair | None, new: Pair, *, fresh: bool) -> Pair:
    """Choose the later of two states of one pair; of equals the one from the later state of the log."""
    if old is None:
        return new
    if _progress(old) == _progress(new):
        return new if fresh else old
    return max(old, new, key=_progress)


def _progress(pair: Pair) -> tuple[bool, bool, int, bool]:
    """Measure how far a pair has come. Logs only grow, so each part only rises; no complete answer ever goes back."""
    return (pair.completed, not _counted(pair), len(pair.entry_ids), pair.end_reason is not EndReason.OPEN)


def _counted(pair: Pair) -> bool:
    return pair.entry_ids[0].startswith(_FORMAT_1)


def _adopted(old: Mapping[NodeId, Pair], scanned: Mapping[NodeId, Pair]) -> Callable[[NodeId], NodeId]:
    """Return the names that scanned pairs go by in this archive.

    A pair that stands there under another name keeps it: one from an old index, or from before a migration.
    """
    by_entry: dict[str, list[NodeId]] = {}
    by_words: dict[tuple[Instant, str], list[NodeId]] = {}
    for name, pair in old.items():
        if name not in scanned:
            by_entry.setdefault(pair.entry_ids[0], []).append(name)
            by_words.setdefault(_words(pair), []).append(name)
    names: dict[NodeId, NodeId] = {}
    taken: set[NodeId] = set()
    for found, pair in scanned.items():
        if found in old:
            continue
        same = [name for name in by_entry.get(pair.entry_ids[0], ()) if _continues(old[name], pair)]
        same += [name for name in by_words.get(_words(pair), ()) if _counted(old[name]) is not _counted(pair)]
        free = next((name for name in same if name not in taken), None)
        if free is not None:
            names[found] = free
            taken.add(free)
    return lambda name: names.get(name, name)


def _words(pair: Pair) -> tuple[Instant, str]:
    return (pair.inputs[0].at, pair.inputs[0].text)


def _continues(one: Pair, other: Pair) -> bool:
    """Whether one is an earlier state of the other, by the entries they are made of."""
    return all(left == right for left, right in zip(one.entry_ids, other.entry_ids, strict=False))


def _branches(pairs: Mapping[NodeId, Pair], before: Mapping[NodeId, NodeId | None]) -> Branches:
    """Lay the tree out anew, siblings in the order of time, whatever order their scans came in."""

    def rank(name: NodeId) -> tuple[Instant, bool, NodeId]:
        return (pairs[name].start, not pairs[name].completed, name)

    children: dict[NodeId | None, list[NodeId]] = {}
    for name in sorted(pairs, key=rank, reverse=True):
        children.setdefault(before.get(name), []).append(name)
    branches: list[list[NodeId]] = []
    waiting = children.get(None, [])
    while waiting:
        name = waiting.pop()
        parent = before.get(name)
        if parent is None:
            branches.append([name])
        elif branches[-1][-1] == parent:
            branches[-1].append(name)
        else:
            branches.append([parent, name])
        waiting.extend(children.get(name, ()))
    return tuple(map(tuple, branches))


def _summaries(current: SessionArchive, changed: set[NodeId]) -> dict[NodeId, Summary]:
    """Keep every summary; one over a node that changed is no longer current, nor is any above it."""
    summaries = {name: node for name, node in current.nodes.items() if isinstance(node, Summary)}
    stale = set(changed)
    for name, summary in sorted(summaries.items(), key=lambda item: item[1].level):
        if not stale.isdisjoint(summary.children):
            stale.add(name)
            summaries[name] = replace(summary, ready=False)
    return summaries

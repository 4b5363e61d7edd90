"""The tree over the pairs of a session: four consecutive nodes of a branch under one summary, level by level.

Which summaries there are follows from the branches alone (spec ARCHIVE 5), so an archive is read with all of them in
place, those still to be written with ``ready`` false. A beginning that branches share is grouped once; the root has no
text and takes what is left over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from archive.merge import top_nodes
from archive.model import EndReason, Node, NodeId, Pair, SessionArchive, Summary, previous
from archive.schema import GROUP

_Loose = tuple[tuple[NodeId, ...], ...]
"""By level, the nodes at the end of a branch that fill no group yet; fewer than four each."""


def grouped(archive: SessionArchive) -> SessionArchive:
    """Return the archive with every summary its branches call for; one that is there keeps its id and its text."""
    summaries = {name: node for name, node in archive.nodes.items() if isinstance(node, Summary)}
    names = {(node.level, node.children): name for name, node in summaries.items()}
    missing: dict[NodeId, Summary] = {}

    def close(level: int, children: tuple[NodeId, ...]) -> NodeId:
        name = names.get((level, children))
        if name is None:
            name = names[level, children] = _name(archive, level, children)
            missing[name] = Summary(level, children, text=None, ready=False, source_digest=None)
        return name

    loose: dict[NodeId | None, _Loose] = {None: ()}
    before = previous(archive.branches)
    for pair in archive.pairs:
        loose[pair] = _grown(loose[before[pair]], pair, close)
    if not missing:
        return archive
    nodes: dict[NodeId, Node] = {**archive.nodes, **missing}
    return replace(archive, nodes=nodes, roots=top_nodes(nodes))


def _grown(loose: _Loose, node: NodeId, close: Callable[[int, tuple[NodeId, ...]], NodeId]) -> _Loose:
    """Add a pair at the end of a branch, as one adds one to a number: a full place carries into the next."""
    levels = list(loose)
    level = 0
    while True:
        if level == len(levels):
            levels.append(())
        levels[level] = (*levels[level], node)
        if len(levels[level]) < GROUP:
            return tuple(levels)
        children, levels[level] = levels[level], ()
        level += 1
        node = close(level, children)


def _name(archive: SessionArchive, level: int, children: tuple[NodeId, ...]) -> NodeId:
    key = "\0".join((archive.host, archive.session, str(level), *children))
    return NodeId(hashlib.sha256(key.encode()).hexdigest()[:20])


def parents(archive: SessionArchive) -> dict[NodeId, list[NodeId]]:
    """Return for every node what is above it: summaries, or the root for what is under none."""
    above: dict[NodeId, list[NodeId]] = {name: [archive.id] for name in archive.roots}
    for name, node in archive.nodes.items():
        if isinstance(node, Summary):
            for child in node.children:
                above.setdefault(child, []).append(name)
    return above


def digest(archive: SessionArchive, children: tuple[NodeId, ...]) -> str | None:
    """Return the digest of what a summary over ``children`` is made of; None while it cannot be made.

    It cannot while a summary below is not written or a pair may still change.
    """
    parts: list[str] = []
    for name in children:
        node = archive.nodes.get(name)
        if isinstance(node, Pair) and node.end_reason is not EndReason.OPEN:
            parts += [node.start, node.end, node.digest]
        elif isinstance(node, Summary) and node.ready and node.text is not None:
            parts += [node.source_digest or "", node.text]
        else:
            return None
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode()).hexdigest()


def due(archive: SessionArchive) -> list[NodeId]:
    """Return the summaries to be written, lower levels first, each level in the order of the branches.

    One over a pair that may still change is not due.
    """
    open_below = {name for name, pair in archive.pairs.items() if pair.end_reason is EndReason.OPEN}
    levels = {name: node.level for name, node in archive.nodes.items() if isinstance(node, Summary)}
    waiting: list[NodeId] = []
    for name in sorted(levels, key=levels.__getitem__):
        node = archive.nodes[name]
        if isinstance(node, Summary) and not open_below.isdisjoint(node.children):
            open_below.add(name)
        elif isinstance(node, Summary) and not node.ready:
            waiting.append(name)
    return waiting


def unfinished(nodes: Mapping[NodeId, Node], name: NodeId) -> bool:
    """Whether a node holds a pair without its answer."""
    node = nodes[name]
    if isinstance(node, Pair):
        return not node.completed
    return any(unfinished(nodes, child) for child in node.children)


def first_pair(nodes: Mapping[NodeId, Node], name: NodeId) -> Pair:
    """Return the first pair under a node."""
    return _edge(nodes, name, 0)


def last_pair(nodes: Mapping[NodeId, Node], name: NodeId) -> Pair:
    """Return the last pair under a node."""
    return _edge(nodes, name, -1)


def _edge(nodes: Mapping[NodeId, Node], name: NodeId, side: int) -> Pair:
    node = nodes[name]
    while isinstance(node, Summary):
        node = nodes[node.children[side]]
    return node

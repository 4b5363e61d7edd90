"""What a forked session shares with the one it came from.

A fork copies the beginning of its parent, entry ids included, and its archive keeps nodes of its own for that: the
same question is in both. It is told at reading, from the two archives as they stand, and stored nowhere.
"""

from __future__ import annotations

from archive.model import NodeId, Pair, SessionArchive


def shared_pairs(fork: SessionArchive, parent: SessionArchive) -> frozenset[NodeId]:
    """Return the pairs of ``fork`` that are in ``parent`` too; there they may have gone on since."""
    originals: dict[str, list[Pair]] = {}
    for pair in parent.pairs.values():
        originals.setdefault(pair.entry_ids[0], []).append(pair)
    return frozenset(
        name
        for name, pair in fork.pairs.items()
        if any(_is_beginning(pair, original) for original in originals.get(pair.entry_ids[0], ()))
    )


def _is_beginning(pair: Pair, original: Pair) -> bool:
    return pair.inputs == original.inputs and pair.entry_ids == original.entry_ids[: len(pair.entry_ids)]

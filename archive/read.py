"""Reading one node, page by page (spec ARCHIVE 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from archive.answers import InputText, ReadAnswer
from archive.body import Slice, Units, body, parts
from archive.library import Library
from archive.model import Host, NodeId, Pair
from archive.problem import BadRequest, Fault
from archive.request import Read
from archive.shelf import Shelf

CHILDREN: Final = 20
"""Children on a page."""


def read(library: Library, asked: Read) -> ReadAnswer:
    """Answer one read. Raises BadRequest for an id that is unknown, or in both sources when no host is named."""
    name = asked.id
    shelf = _find(library, name, asked.host)
    node = shelf.node(name)
    text = Units("" if node is None else body(node))
    page = text.cut(asked.offset, asked.limit)
    below = shelf.children(name)
    children_end = asked.children_offset + CHILDREN
    start, end = shelf.span(name)
    answer = ReadAnswer(
        host=shelf.archive.host,
        id=name,
        kind=shelf.kind(name),
        text=page.text,
        offset=page.start,
        next_offset=page.end if page.end < len(text) else None,
        children=tuple(map(shelf.child, below[asked.children_offset : children_end])),
        next_children_offset=children_end if children_end < len(below) else None,
        parents=shelf.parents(name),
        source=shelf.source(name),
        ready=shelf.ready(name),
        completed=shelf.completed(name),
        start=start,
        end=end,
        warnings=library.warnings,
        shared=True if library.shared(shelf, name) else UNSET,
    )
    return _with_pair(answer, node, text, page) if isinstance(node, Pair) else answer


def _find(library: Library, name: NodeId, host: Host | None) -> Shelf:
    """Find the archive that holds a node; of several of one host, as forks of old indexes are, the first."""
    holders: dict[Host, Shelf] = {}
    for (each, _), shelf in library.shelves.items():
        if host in (None, each) and name in shelf:
            holders.setdefault(each, shelf)
    if not holders:
        raise BadRequest(Fault.UNKNOWN_ID, "id")
    if len(holders) > 1:
        raise BadRequest(Fault.AMBIGUOUS_ID, "host", {"hosts": ", ".join(sorted(holders))})
    (found,) = holders.values()
    return found


def _with_pair(answer: ReadAnswer, pair: Pair, text: Units, page: Slice) -> ReadAnswer:
    """Add the parts of a pair, each as far as it lies on the page."""
    laid = parts(pair)
    ends = [part.start + len(Units(part.text)) for part in laid]
    cut = [
        text.between(max(part.start, page.start), min(end, page.end)) if part.text else ""
        for part, end in zip(laid, ends, strict=True)
    ]
    count = len(pair.inputs)
    return msgspec.structs.replace(
        answer,
        inputs=_inputs(pair, cut[:count]),
        answer=cut[count],
        later=tuple(cut[count + 1 :]),
        end_reason=pair.end_reason,
    )


def _inputs(pair: Pair, cut: Sequence[str]) -> tuple[InputText, ...]:
    given = zip(pair.inputs, cut, strict=True)
    return tuple(InputText(origin=each.origin, text=text, at=each.at) for each, text in given)

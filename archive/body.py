"""The body of a node: what ``read`` pages through and the offsets of hits count in (spec ARCHIVE 2.1).

A pair's body is its inputs, its answer and its later answers, a blank line between two; a summary's is its text while
that is current; a session's is empty, for a root is a directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from archive.fold import units
from archive.model import Node, Pair

GAP: Final = "\n\n"


class Where(StrEnum):
    """The part of a node that a text is; later answers are answers."""

    QUESTION = "question"
    ANSWER = "answer"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Part:
    """One text of a body. ``start`` in UTF-16 units of the body."""

    where: Where
    text: str
    start: int


def texts(node: Node) -> Iterator[tuple[Where, str]]:
    """Yield the texts of a node in the order of its body, empty ones too."""
    if isinstance(node, Pair):
        for given in node.inputs:
            yield Where.QUESTION, given.text
        yield Where.ANSWER, node.answer
        for later in node.later:
            yield Where.ANSWER, later
    else:
        yield Where.SUMMARY, (node.text or "") if node.ready else ""


def parts(node: Node) -> list[Part]:
    """Lay the body out. An empty text takes no room, and no gap."""
    laid: list[Part] = []
    end = 0
    for where, text in texts(node):
        start = end + (len(GAP) if end and text else 0)
        laid.append(Part(where, text, start))
        end = start + units(text)
    return laid


def body(node: Node) -> str:
    """Return the whole body."""
    return GAP.join(text for _, text in texts(node) if text)


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of a text in UTF-16 units; ``end`` is where the next one begins."""

    text: str
    start: int
    end: int


class Units:
    """A text that is cut by UTF-16 units, and never inside a character."""

    def __init__(self, text: str) -> None:
        self._data = text.encode("utf-16-le")

    def __len__(self) -> int:
        return len(self._data) // 2

    def cut(self, offset: int, limit: int) -> Slice:
        """Return at most ``limit`` units from ``offset``; one whole character at least, while there is any.

        An offset inside a surrogate pair moves back to its beginning.
        """
        start = self._boundary(min(offset, len(self)))
        end = self._boundary(min(start + limit, len(self)))
        if end == start:
            end = min(start + 2, len(self))
        return Slice(self._data[2 * start : 2 * end].decode("utf-16-le"), start, end)

    def between(self, start: int, end: int) -> str:
        """Return the text between two boundaries; outside of it there is nothing."""
        return self._data[2 * max(start, 0) : 2 * max(end, 0)].decode("utf-16-le")

    def _boundary(self, at: int) -> int:
        inside = 0 < at < len(self) and 0xDC <= self._data[2 * at + 1] <= 0xDF
        return at - 1 if inside else at

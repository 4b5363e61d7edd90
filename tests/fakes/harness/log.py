"""The event log of one session and how a host cuts pages from it. Source: facts HARNESS 5.3."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from tests.fakes.harness.dialect import Obj

COUNTED = frozenset({"user/message", "assistant/message"})


class Generated(Sequence[Obj]):
    """Events made only when somebody reads them: ``block`` gives the events of the k-th of ``count`` blocks."""

    def __init__(self, count: int, per_block: int, block: Callable[[int], Sequence[Obj]]) -> None:
        self._count, self._per_block, self._block = count, per_block, block

    def __len__(self) -> int:
        return self._count * self._per_block

    @overload
    def __getitem__(self, index: int) -> Obj: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Obj]: ...
    def __getitem__(self, index: int | slice) -> Obj | Sequence[Obj]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        block, offset = divmod(index, self._per_block)
        return self._block(block)[offset]


@dataclass(frozen=True, slots=True)
class Cut:
    """One page: events oldest first, and whether older ones exist."""

    events: Sequence[Obj]
    has_more: bool


class Log:
    """Events in the order they were written, partly generated on demand; reading a page costs that page only."""

    def __init__(self) -> None:
        self._parts: list[Sequence[Obj]] = []
        self._starts: list[int] = []
        self._tail: list[Obj] | None = None
        self._length = 0
        self.cursor = -1
        """The newest seq, -1 when empty."""

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Obj:
        part = bisect_right(self._starts, index) - 1
        return self._parts[part][index - self._starts[part]]

    def __iter__(self) -> Iterator[Obj]:
        return (self[i] for i in range(self._length))

    def append(self, event: Obj) -> None:
        """Write one event."""
        if self._tail is None:
            self._tail = []
            self._add(self._tail)
        self._tail.append(event)
        self._length += 1
        self.cursor = max(self.cursor, _seq(event))

    def extend_lazily(self, part: Generated) -> None:
        """Write events that are made when they are read."""
        self._add(part)
        self._length += len(part)
        self._tail = None
        self.cursor = _seq(self[self._length - 1]) if self._length else -1

    def _add(self, part: Sequence[Obj]) -> None:
        self._parts.append(part)
        self._starts.append(self._length)

    def cut(self, *, limit: int, before: int | None = None, through: int | None = None) -> Cut:
        """Cut the page of the ``limit`` newest counted messages older than ``before`` and not newer than ``through``.

        A page starts where the oldest counted message begins: at its first chunk where chunks are in the log.
        """
        end = self._length
        if through is not None:
            end = self._index_of(through + 1)
        if before is not None:
            end = min(end, self._index_of(before))
        start, left = end, limit
        while start > 0 and left > 0:
            start -= 1
            if counts(self[start]):
                left -= 1
        if left > 0:
            return Cut(self._slice(0, end), has_more=False)
        start = min(start, self._index_of(_first_source(self[start])))
        return Cut(self._slice(start, end), has_more=start > 0)

    def _index_of(self, seq: int) -> int:
        """Return the index of the first event with at least this seq."""
        return bisect_left(range(self._length), seq, key=lambda index: _seq(self[index]))

    def _slice(self, start: int, end: int) -> list[Obj]:
        return [self[i] for i in range(start, end)]


def counts(event: Obj) -> bool:
    """Whether an event counts as a message of a page: appended, injected ones included, tool results not."""
    return event.get("type") in COUNTED and event.get("surfaceOp") == "append"


def _seq(event: Obj) -> int:
    seq = event.get("seq")
    return seq if isinstance(seq, int) and not isinstance(seq, bool) else -1


def _first_source(event: Obj) -> int:
    sources = event.get("sourceEventSeqs")
    if event.get("type") == "assistant/message" and isinstance(sources, list):
        return min((s for s in sources if isinstance(s, int)), default=_seq(event))
    return _seq(event)

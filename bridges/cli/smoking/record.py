"""What is known so far. It begins with every line as not done, so that it is true whenever it is cut short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bridges.cli.smoking.lines import BEYOND, Result, Side, Spot, Verdict

ALL_WELL, FAILED, UNDONE, INTERRUPTED = 0, 1, 3, 130


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report; ``at`` in seconds since the epoch, None while nothing was tried."""

    spot: Spot
    result: Result
    at: float | None = None


def counts(lines: Iterable[Line]) -> Counter[Verdict]:
    """Count lines by how they ended."""
    return Counter(line.result.verdict for line in lines)


class Record:
    """The lines of one run, which was asked for one ``side``. Times in seconds since the epoch."""

    def __init__(self, side: Side, version: str, began: float) -> None:
        self.side = side
        self.version = version
        self.began = began
        self.ended: float | None = None
        """None while it runs, and for ever when it was killed."""
        self.calls: Counter[str] = Counter()
        """What the real Harness was asked, by the name of the call."""
        self._lines: dict[Spot, Line] = {}

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines.values())

    def plan(self, spots: Iterable[Spot], result: Result) -> None:
        """Enter lines nobody has tried yet."""
        self._lines |= {spot: Line(spot, result) for spot in spots}

    def note(self, spot: Spot, result: Result, at: float) -> None:
        """Put the outcome of a planned line in place."""
        self._lines[spot] = Line(spot, result, at)

    def open_lines(self) -> list[Line]:
        """Return what failed, and what was not done though it could have been."""
        return [line for line in self if line.result.why is not None and line.result.why not in BEYOND]

    def code(self, *, stopped: bool) -> int:
        """Return the exit code: a failure counts most, then a run that was stopped, then what was not done."""
        if any(line.result.verdict is Verdict.FAIL for line in self):
            return FAILED
        if stopped:
            return INTERRUPTED
        return UNDONE if self.open_lines() else ALL_WELL

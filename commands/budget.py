"""How much a reply may hold, and how text is cut to it without tearing (spec HISTORY 6).

Every length here is in UTF-16 code units, as chat platforms count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from wcwidth import iter_graphemes


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget of one reply, marks and labels included. ``segment`` is at least 2: one astral character."""

    body: int = 500
    """Of one message's text."""
    reply: int = 3_000
    """Of the whole."""
    segment: int = 1_800
    segments: int = 3


LIMITS: Final = Limits()

SHORTEST_BODY: Final = 32
"""Bodies never shrink below this for the sake of the whole; then the oldest entries go."""


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units; a lone surrogate counts as one."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def prefix(text: str, limit: int) -> str:
    """Return the longest prefix of at most ``limit`` units that ends between two grapheme clusters.

    Only when the first cluster alone is longer, it is cut, between two code points.
    """
    # One code point more than fits is enough to tell whether the last cluster that fits is whole.
    window = text[: max(limit, 0) + 1]
    return _fitting(iter_graphemes(window), limit) or _fitting(window, limit)


def _fitting(parts: Iterable[str], limit: int) -> str:
    taken: list[str] = []
    for part in parts:
        limit -= 1 if len(part) == 1 and part <= "\uffff" else utf16_length(part)  # the common case, ten times as fast
        if limit < 0:
            break
        taken.append(part)
    return "".join(taken)


def split(text: str, limit: int = LIMITS.segment) -> tuple[str, ...]:
    """Cut ``text`` into segments of at most ``limit`` units that joined give ``text`` again.

    Cuts behind the last line break that leaves something to read before it, else between two grapheme clusters.
    Empty text has no segments. ``limit`` is at least 2.
    """
    segments: list[str] = []
    at = 0
    while at < len(text):
        window = text[at : at + limit + 1]
        if utf16_length(window) > limit:
            window = prefix(window, limit)
            line = window[: window.rfind("\n") + 1]
            window = window if not line or line.isspace() else line
        segments.append(window)
        at += len(window)
    return tuple(segments)


def sendable(text: str, limit: int = LIMITS.segment) -> tuple[str, ...]:
    """Return the segments of ``text`` worth sending: platforms refuse blank ones."""
    return tuple(segment for segment in split(text, limit) if not segment.isspace())


@dataclass(frozen=True, slots=True)
class Fence:
    """A code fence that is still open: the line that opened it, and the line that would close it."""

    opening: str
    closing: str


_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)


def open_fence(text: str) -> Fence | None:
    """Return the code fence that ``text`` leaves open, by the rules of CommonMark."""
    fence: Fence | None = None
    for line in _FENCE.finditer(text):
        run, rest = line.groups()
        if fence is None:
            if run[0] == "~" or "`" not in rest:
                fence = Fence(line[0], run)
        elif run.startswith(fence.closing) and not rest.strip(" \t"):
            fence = None
    return fence


def truncate(body: str, limit: int, mark: str) -> str:
    """Return ``body`` if it fits, else its longest prefix that fits together with ``mark``.

    Trailing blanks of the prefix go; a code fence that the cut leaves open is closed on a line behind the mark. Where
    not even the mark fits, nothing is left.
    """
    return body if utf16_length(body) <= limit else shorten(body, limit, mark)


def shorten(body: str, limit: int, mark: str) -> str:
    """Do as :func:`truncate` does with a body that is too long."""
    kept = list(iter_graphemes(prefix(body, limit - utf16_length(mark))))
    while True:
        cut = "".join(kept).rstrip() + mark
        fence = open_fence(cut)
        cut += f"\n{fence.closing}" if fence else ""
        if utf16_length(cut) <= limit:
            return cut
        if not kept:
            return ""
        kept.pop()


def fit(bodies: Sequence[str], mark: str, compose: Callable[[Sequence[str], int], str], limits: Limits = LIMITS) -> str:
    """Compose a reply that keeps all limits, and return it.

    ``compose`` makes the reply of the bodies left, oldest first, and of the number of older ones that were dropped.
    All bodies shrink together; then the oldest go; what is still too long in the end is cut.
    """
    body, dropped = limits.body, 0
    while True:
        reply = compose([truncate(each, body, mark) for each in bodies[dropped:]], dropped)
        if utf16_length(reply) <= limits.reply and len(split(reply, limits.segment)) <= limits.segments:
            return reply
        if body > SHORTEST_BODY:
            body = max(body // 2, SHORTEST_BODY)
        elif dropped < len(bodies) - 1:
            dropped += 1
        else:
            return prefix(reply, min(limits.reply, limits.segment))

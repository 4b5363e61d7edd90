"""Text of a log -> text that is safe to show (spec HISTORY 4)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_INTRODUCER: Final = re.compile(
    "(?:\x1b\\[|\x9b)(?:[0-?]*[ -/]*[@-~])?"  # CSI, with all of it where it has an end
    "|(?P<osc>\x1b\\]|\x9d)"
    "|(?P<string>\x1b[PX^_]|[\x90\x98\x9e\x9f])"  # DCS, SOS, PM, APC
)
_ENDS: Final = {"osc": re.compile("\x07|\x1b\\\\|\x9c"), "string": re.compile("\x1b\\\\|\x9c")}
_BREAKS: Final = re.compile("\r\n|[\r\x85\u2028\u2029]")
_UNWANTED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_INVISIBLE: Final = re.compile(
    "[\\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\u2066-\u2069\u202a-\u202e\ufe00-\ufe0f\ufeff]*"
)


def clean(text: str) -> str:
    """Return ``text`` without anything that could act on a screen instead of being read on it.

    Every kind of line break becomes LF; ANSI sequences, control characters but TAB and LF, and bidi overrides and
    isolates go; a lone surrogate becomes U+FFFD; blank lines at both ends go, the first line's indentation stays.
    Takes time in proportion to the length, whatever the text.
    """
    text = _without_sequences(text)
    text = _BREAKS.sub("\n", text)
    text = _UNWANTED.sub("", text)
    text = _SURROGATES.sub("\ufffd", text)
    return _without_outer_blank_lines(text)


def one_line(text: str) -> str:
    """Return ``text`` on one line, without control and format characters."""
    visible = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    return " ".join("".join(c for c in visible if unicodedata.category(c) not in ("Cf", "Cs")).split())


def is_invisible(text: str) -> bool:
    """Whether nothing of ``text`` can be seen."""
    return _INVISIBLE.fullmatch(text) is not None


def _without_sequences(text: str) -> str:
    kept, at = [], 0
    endless: set[str] = set()
    while match := _INTRODUCER.search(text, at):
        kept.append(text[at : match.start()])
        at = match.end()
        kind = match.lastgroup
        if kind is None or kind in endless:
            continue
        end = _ENDS[kind].search(text, at)
        if end:
            at = end.end()
        else:
            endless.add(kind)  # nor has any later one an end: looking again would cost a pass each
    return "".join([*kept, text[at:]])


def _without_outer_blank_lines(text: str) -> str:
    first = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    after = text.find("\n", len(text.rstrip()))
    return text[first:] if after < 0 else text[first:after]

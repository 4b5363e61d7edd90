"""Comparison without case: NFC, then ``casefold``, and the way back from a hit to where it stands in the original.

One character may fold to several (``ß``, ``İ``) and several may compose to one, so a hit is mapped back by pieces that
normalise by themselves; it covers every piece it touches.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

MOST_SPANS: Final = 20
"""Places told of one text; where a query stands more often, the first ones do."""


def fold(text: str) -> str:
    """Return the form in which texts are compared; the same object where nothing changes."""
    folded = (text if text.isascii() else unicodedata.normalize("NFC", text)).casefold()
    return text if folded == text else folded


def units(text: str) -> int:
    """Return the number of UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def spans(text: str, query: str) -> list[tuple[int, int]]:
    """Return where ``query``, folded and not empty, stands in ``text``: UTF-16 offsets, without overlaps."""
    folded = fold(text)
    found: list[tuple[int, int]] = []
    at = folded.find(query)
    while at >= 0 and len(found) < MOST_SPANS:
        found.append((at, at + len(query)))
        at = folded.find(query, at + len(query))
    if text.isascii() or not found:
        return found
    if len(folded) == len(text) and unicodedata.is_normalized("NFC", text):
        return _same_length(text, found)
    return _by_pieces(text, found)


def _same_length(text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Map hits in a text of which every character folds to one."""
    mapped: list[tuple[int, int]] = []
    at = passed = 0
    for start, end in found:
        first = passed + units(text[at:start])
        passed = first + units(text[start:end])
        at = end
        mapped.append((first, passed))
    return mapped


def _by_pieces(text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    starts: list[int] = []
    ends: list[int] = []
    folded_at = unit_at = 0
    pieces = _pieces(text)
    while len(ends) < len(found):
        piece = next(pieces)
        folded_end, unit_end = folded_at + len(fold(piece)), unit_at + units(piece)
        while len(starts) < len(found) and found[len(starts)][0] < folded_end:
            starts.append(unit_at)
        while len(ends) < len(found) and found[len(ends)][1] <= folded_end:
            ends.append(unit_end)
        folded_at, unit_at = folded_end, unit_end
    mapped: list[tuple[int, int]] = []
    for start, end in zip(starts, ends, strict=True):
        if not mapped or start >= mapped[-1][1]:  # else both stand in one character, such as the two s of ß
            mapped.append((start, end))
    return mapped


def _pieces(text: str) -> Iterator[str]:
    """Cut a text so that the NFC of the whole is the NFC of the pieces, joined."""
    piece = ""
    for character in text:
        if piece and _begins(piece, character):
            yield piece
            piece = ""
        piece += character
    yield piece


def _begins(piece: str, character: str) -> bool:
    """Whether ``character`` neither composes with what is before it nor is sorted among its marks."""
    if piece.isascii() and character.isascii():
        return True
    if unicodedata.combining(unicodedata.normalize("NFD", character)[0]):
        return False
    apart = unicodedata.normalize("NFC", piece) + unicodedata.normalize("NFC", character)
    return unicodedata.normalize("NFC", piece + character) == apart

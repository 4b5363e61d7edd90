from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.fold import MOST_SPANS, fold, spans, units

_COMBINING = "\u0307\u0301\u0323\u030a\u0f73\u0f71"
_JAMO = "\u1100\u1161\u11a8"
LETTERS = st.text(st.sampled_from("aAbß ſİıIiéÅΣς中文字数据가각😀👩\u200d" + _COMBINING + _JAMO))


def between(text: str, start: int, end: int) -> str:
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("Straße", "SS", ["ß"]),
        ("İstanbul", "i", ["İ"]),
        ("İstanbul", "i\u0307s", ["İs"]),
        ("cafe\u0301!", "é", ["e\u0301"]),
        ("café", "E\u0301", ["é"]),
        ("😀中文😀", "中", ["中"]),
        ("数据库的数据", "数据", ["数据", "数据"]),
        ("aaaa", "AA", ["aa", "aa"]),
        ("각", "\u1100\u1161\u11a8", ["각"]),
        ("ΟΔΟΣ", "οδος", ["ΟΔΟΣ"]),
        ("ß!", "s", ["ß"]),
        ("plain", "none", []),
    ],
)
def test_hits_lead_back_to_the_original(text: str, query: str, found: list[str]) -> None:
    assert [between(text, *span) for span in spans(text, fold(query))] == found


@given(LETTERS, LETTERS.filter(bool))
def test_a_span_covers_what_was_found_and_no_whole_piece_more(text: str, query: str) -> None:
    wanted = fold(query)
    found = spans(text, wanted)
    assert bool(found) is (wanted in unicodedata.normalize("NFC", text).casefold())
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(found))
    for start, end in found:
        assert 0 <= start < end <= units(text)
        assert wanted in fold(between(text, start, end))


def test_spans_are_bounded() -> None:
    assert len(spans("a" * 1000, "a")) == MOST_SPANS


@given(LETTERS)
def test_folding_again_after_normalising_changes_nothing_that_is_compared(text: str) -> None:
    assert fold(text) == unicodedata.normalize("NFC", text).casefold()

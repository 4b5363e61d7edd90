"""Text of a log becomes safe to show (spec HISTORY 4)."""

from __future__ import annotations

import pytest

from commands.cleaning import clean, is_invisible


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("a\r\nb\rc\u2028d\u2029e\x85f\tg\nh", "a\nb\nc\nd\ne\nf\tg\nh"),
        ("\x1b[31mred\x1b[0m \x9b1;2 qX", "red X"),
        ("\x1b]0;title\x07ok", "ok"),
        ("\x1b]8;;http://x\x1b\\link\x9d8;;\x9c.", "link."),
        (
            "\x1bPdcs\x1b\\a\x90dcs\x9cb\x1bXsos\x1b\\c\x98s\x9cd\x1b^pm\x1b\\e\x9ep\x9cf\x1b_apc\x1b\\g\x9fa\x9ch",
            "abcdefgh",
        ),
        ("\x1b]over\nlines\x1b\\a", "a"),
        ("\x1bPa BEL ends no DCS\x07", "a BEL ends no DCS"),
        ("\x1b]never ends", "never ends"),
        ("\x1b]a\x1bPb", "ab"),
        ("\x1b[12", "12"),
        ("\x9b", ""),
        ("\x1b", ""),
        ("\x1b7a", "7a"),
        ("\x1b\x00[31mred", "[31mred"),
        ("\x00a\x08b\x0bc\x0cd\x1fe\x7ff\x80g\x9fh", "abcdefgh"),
        ("\u202eabc\u2066d\u2069", "abcd"),
        ("\u200fabc\u200d", "\u200fabc\u200d"),
        ("\ud83d x \ude00", "\ufffd x \ufffd"),
        ("\ud83d\x00\ude00", "\ufffd\ufffd"),
        ("\n \n\t\n  a\n\n b  \n \n", "  a\n\n b  "),
        ("  a", "  a"),
        (" \n \n", ""),
        ("", ""),
    ],
)
def test_clean(raw: str, safe: str) -> None:
    assert clean(raw) == safe
    assert clean(clean(raw)) == clean(raw)


def test_hostile_text_takes_no_longer_than_its_length() -> None:
    # Quadratic time would be minutes here.
    assert clean("\x1b]" * 100_000) == ""
    assert clean("\x1b[1" * 100_000) == "1" * 100_000
    assert clean("\x1bP\x1b]" * 50_000 + "\x07") == ""


@pytest.mark.parametrize("text", ["", " \n\t\u3000", "\u200b\u200e\u2060\u2063\u2069\u202e\ufe0f\ufeff\u00ad\u180e"])
def test_invisible(text: str) -> None:
    assert is_invisible(text)


@pytest.mark.parametrize("text", ["a", "\u2065a", "\ufffd", ".\u200b"])
def test_visible(text: str) -> None:
    assert not is_invisible(text)

"""Cutting without tearing (spec HISTORY 6)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from commands.budget import LIMITS, Limits, fit, open_fence, prefix, sendable, split, truncate, utf16_length

MARK = "（已截断）"
FAMILY = "👨‍👩‍👧‍👦"


@pytest.mark.parametrize(("text", "units"), [("", 0), ("a字", 2), ("😀", 2), ("\ud83d", 1), (FAMILY, 11)])
def test_lengths_are_in_utf16_units(text: str, units: int) -> None:
    assert utf16_length(text) == units


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("abc", 3, "abc"),
        ("abc", 2, "ab"),
        ("abc", 0, ""),
        ("abc", -5, ""),
        ("a😀", 2, "a"),
        (f"a{FAMILY}", 11, "a"),
        (f"a{FAMILY}", 12, f"a{FAMILY}"),
        (f"{FAMILY}a", 10, "👨‍👩‍👧‍"),
        ("e\u0301\u0301", 2, "e\u0301"),
        ("ae\u0301\u0301", 3, "a"),
        ("🇫🇷🇩🇪", 6, "🇫🇷"),
        ("a\r\nb", 2, "a"),
    ],
)
def test_a_prefix_ends_between_clusters(text: str, limit: int, kept: str) -> None:
    assert prefix(text, limit) == kept


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", ()),
        ("abcd", ("abcd",)),
        ("abcde", ("abcd", "e")),
        ("ab\ncdef", ("ab\n", "cdef")),
        ("a\nb\ncd", ("a\nb\n", "cd")),
        ("\nabcd", ("\nabc", "d")),
        ("\n\n\n\n\nab", ("\n\n\n\n", "\nab")),
        ("ab😀😀", ("ab😀", "😀")),
        ("abc😀", ("abc", "😀")),
        (FAMILY, ("\U0001f468\u200d", "\U0001f469\u200d", "\U0001f467\u200d", "\U0001f466")),
    ],
)
def test_segments(text: str, segments: tuple[str, ...]) -> None:
    assert split(text, 4) == segments
    assert "".join(segments) == text


def test_blank_segments_are_not_worth_sending() -> None:
    assert sendable("\n\n\n\n\nab", 4) == ("\nab",)


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("", None),
        ("``` open", "```"),
        ("text\n```py\ncode", "```"),
        ("````\n```\n", "````"),
        ("```\n````", None),
        ("```\n~~~", "```"),
        ("~~~ a`b\n", "~~~"),
        ("``` a`b\n", None),
        ("```\n``` x", "```"),
        ("```\n``` \t", None),
        ("   ```\n", "```"),
        ("    ```\n", None),
        ("\t```\n", None),
        ("``\n", None),
        ("a ```\n", None),
        ("```\na\n```\n~~~~~\n", "~~~~~"),
    ],
)
def test_fences_by_the_rules_of_commonmark(text: str, closing: str | None) -> None:
    fence = open_fence(text)
    assert (fence.closing if fence else None) == closing


@pytest.mark.parametrize(
    ("body", "cut"),
    [
        ("a" * 20, "a" * 20),
        ("a" * 21, "a" * 15 + MARK),
        ("a" * 13 + "   " + "b" * 20, "a" * 13 + MARK),
        ("a" * 14 + "😀" + "b" * 20, "a" * 14 + MARK),
        ("```\n" + "x" * 30, "```\nxxxxxxx" + MARK + "\n```"),
        ("~~~~~~\n" + "x" * 30, "~~~~~~\nx" + MARK + "\n~~~~~~"),
        ("```\nx\n```\n\n" + " " * 30, "```\nx\n```" + MARK + "\n```"),
        ("`" * 30, "`" * 7 + MARK + "\n" + "`" * 7),
        (" " * 30, MARK),
    ],
)
def test_a_long_body_is_cut(body: str, cut: str) -> None:
    assert truncate(body, 20, MARK) == cut
    assert utf16_length(cut) <= 20


def test_the_cut_is_the_longest_that_fits() -> None:
    body = "Z" * 499 + "😀" + "Z" * 2_000
    assert truncate(body, 500, MARK) == "Z" * 495 + MARK


def test_where_not_even_the_mark_fits_nothing_is_left() -> None:
    assert truncate("abcdef", 4, MARK) == ""


def compose(bodies: Sequence[str], dropped: int) -> str:
    return "\n\n".join(["header", *bodies, f"dropped {dropped}" if dropped else "footer"])


def test_what_fits_is_left_alone() -> None:
    assert fit(["a" * 500, "b" * 600], MARK, compose) == f"header\n\n{'a' * 500}\n\n{'b' * 495}{MARK}\n\nfooter"


def test_bodies_shrink_together() -> None:
    reply = fit(["a" * 500] * 5, MARK, compose, Limits(reply=1_000))
    assert reply.count("a" * 120 + MARK) == 5


def test_then_the_oldest_go() -> None:
    reply = fit([letter * 500 for letter in "abcde"], MARK, compose, Limits(reply=100))
    assert (reply.count(MARK), "a" in reply.split("header")[1], "eee" in reply) == (2, False, True)
    assert reply.endswith("dropped 3")


def test_and_in_the_end_the_whole_is_cut() -> None:
    assert fit(["a" * 500] * 5, MARK, compose, Limits(reply=10)) == "header\n\n" + "aa"
    assert fit([], MARK, compose, Limits(reply=10)) == "header\n\nfo"
    assert fit(["a"], MARK, compose, Limits(reply=3_000, segment=4, segments=1)) == "head"


def test_the_default_limits_never_shrink_anything() -> None:
    assert (LIMITS.body, LIMITS.reply, LIMITS.segment, LIMITS.segments) == (500, 3_000, 1_800, 3)
    whole = fit(["x" * 10_000] * 5, MARK, compose)
    assert whole.count("x" * 495 + MARK) == 5

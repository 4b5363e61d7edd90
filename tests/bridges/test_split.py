"""Answers cut into messages: nothing lost, nothing torn, code stays code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from bridges.message import Limits
from bridges.split import split_answer, split_lossless, whole
from commands.budget import open_fence, utf16_length

TEXTS = st.text(st.sampled_from("ab \n`~é字👨‍👩‍👧🇩🇪e\u0301"), max_size=400)
LIMIT = Limits(text=200)


@given(TEXTS, st.integers(20, 60))
def test_a_composed_reply_is_cut_without_loss_between_graphemes(text: str, limit: int) -> None:
    parts = split_lossless(text, Limits(text=limit))
    assert "".join(parts) == text
    assert all(utf16_length(part) <= limit for part in parts)
    whole = list(iter_graphemes(text))
    assert [cluster for part in parts for cluster in iter_graphemes(part)] == whole


@given(TEXTS.map(lambda text: text * 4))
def test_every_message_of_an_answer_fits_and_leaves_no_fence_open(text: str) -> None:
    messages = split_answer(text, LIMIT)
    assert messages
    assert all(utf16_length(message) <= LIMIT.text for message in messages)
    if len(messages) > 1:
        assert all(open_fence(message) is None for message in messages[:-1])


def test_a_fence_is_opened_again_as_it_was() -> None:
    code = "".join(f"line {number}\n" for number in range(60))
    messages = split_answer(f"Look:\n```python\n{code}```\nDone.", LIMIT)
    assert len(messages) > 2
    assert all(message.startswith("```python\n") for message in messages[1:])
    assert all(message.rstrip().endswith("```") for message in messages[:-1])
    lines = [line for message in messages for line in message.split("\n")]
    assert [line for line in lines if line.startswith("line ")] == code.splitlines()
    assert messages[-1].endswith("Done.")


@pytest.mark.parametrize("text", ["", "short", " "])
def test_an_answer_that_fits_is_one_message(text: str) -> None:
    assert split_answer(text, LIMIT) == (text,)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a \ud83d\ude00 b", "a 😀 b"),
        ("cut \ud83d", "cut \ufffd"),
        ("\ude00 x \ud83d", "\ufffd x \ufffd"),
        ("字", "字"),
    ],
)
def test_halves_of_a_character_are_one_again_before_anything_is_sent(text: str, sent: str) -> None:
    assert whole(text) == sent
    assert split_lossless(text, LIMIT) == split_answer(text, LIMIT) == (sent,)


def test_bytes_are_counted_where_the_platform_counts_bytes() -> None:
    text = "字" * 500
    assert all(len(part.encode()) <= 300 for part in split_lossless(text, Limits(text=300, unit="utf-8")))

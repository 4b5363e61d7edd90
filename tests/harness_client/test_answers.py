"""A set of answers fits its questions, or never leaves us."""

from __future__ import annotations

import pytest

from harness_client.answers import complete
from harness_client.types import Answer, Question, QuestionOption

RED, BLUE = QuestionOption("Red", "warm"), QuestionOption("Blue", None)
COLOR = Question("color", "Which color?", "Color", (RED, BLUE), multiple=False)
EXTRAS = Question("extras", "Which extras?", None, (RED, BLUE), multiple=True)
FREE = Question("free", "Any words?", None, (), multiple=False)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (COLOR, Answer("color", ("Red",))),
        (COLOR, Answer("color", (), "green")),
        (COLOR, Answer("color")),
        (EXTRAS, Answer("extras", ("Blue", "Red"), "and words")),
        (EXTRAS, Answer("extras")),
        (FREE, Answer("free", (), "words")),
    ],
)
def test_fitting(question: Question, answer: Answer) -> None:
    assert complete([question], {question.id: answer}) == (answer,)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (COLOR, Answer("color", ("Green",))),
        (COLOR, Answer("color", ("Red", "Blue"))),
        (COLOR, Answer("color", ("Red",), "both")),
        (COLOR, Answer("other", ("Red",))),
        (EXTRAS, Answer("extras", ("Red", "Red"))),
        (FREE, Answer("free", ("Red",))),
    ],
)
def test_not_fitting(question: Question, answer: Answer) -> None:
    assert complete([question], {question.id: answer}) is None


def test_a_set_is_answered_whole_and_in_the_order_of_the_questions() -> None:
    red, words = Answer("color", ("Red",)), Answer("free", (), "words")
    assert complete([COLOR, FREE], {"free": words, "color": red}) == (red, words)
    assert complete([COLOR, FREE], {"color": red}) is None
    assert complete([COLOR], {"color": red, "free": words}) is None

"""Whether a set of answers fits its questions; modern hosts do not look (facts HARNESS 4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness_client.types import Answer, Question


def complete(questions: Sequence[Question], answers: Mapping[str, Answer]) -> tuple[Answer, ...] | None:
    """Return one fitting answer per question, in order; None when one is missing, left over or does not fit."""
    if answers.keys() != {question.id for question in questions}:
        return None
    given = tuple(answers[question.id] for question in questions)
    return given if all(map(_fits, questions, given)) else None


def _fits(question: Question, answer: Answer) -> bool:
    """Check the rules of legacy hosts: labels exist, each once; a single choice is one label or one text."""
    if answer.question != question.id or len(set(answer.selected)) != len(answer.selected):
        return False
    if not set(answer.selected) <= {option.label for option in question.options}:
        return False
    return question.multiple or len(answer.selected) + (answer.custom is not None) <= 1

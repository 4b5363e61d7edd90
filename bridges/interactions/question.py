"""A set of questions: what a person reads of it, and what their words mean."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from bridges.bot import RunningBot
from bridges.interactions.matter import LONGEST, Heard, Notices, confirmed
from commands.budget import utf16_length
from commands.cleaning import clean
from harness_client.settled import Settled, question_in
from harness_client.streams import QuestionAsked
from harness_client.types import Answer, Question, Receipt, SessionId
from i18n import Key, Words

_SEPARATORS: Final = re.compile("[,，、;；\n]")
_DIGITS: Final = re.compile("[0-9]{1,4}")


class QuestionSet:
    """Asked one after another, answered together. ``parent`` is the session whose subagent asks, if one does."""

    rank = 0
    notices = Notices(
        already=Key.QUESTION_ALREADY,
        text_only=Key.QUESTION_TEXT_ONLY,
        failed=Key.QUESTION_FAILED,
        switched=Key.QUESTION_SWITCHED,
        restarted=Key.QUESTION_RESTARTED,
        expired=Key.QUESTION_EXPIRED,
        unshown=Key.QUESTION_UNSHOWN,
    )

    def __init__(self, bot: RunningBot, asked: QuestionAsked, parent: SessionId | None) -> None:
        self.id = asked.id
        self._bot = bot
        self._asked = asked
        self._parent = parent
        self._answers: dict[str, Answer] = {}

    @property
    def _current(self) -> Question:
        return self._asked.questions[len(self._answers)]

    def fits(self, words: Words) -> bool:
        """Whether every question can be shown whole, and each by its own id."""
        questions = self._asked.questions
        return len({each.id for each in questions}) == len(questions) > 0 and all(
            utf16_length(self._shown(number, words)) <= LONGEST for number in range(len(questions))
        )

    def text(self, words: Words) -> str:
        """See :meth:`Matter.text`."""
        return self._shown(len(self._answers), words)

    def _shown(self, number: int, words: Words) -> str:
        question, total = self._asked.questions[number], len(self._asked.questions)
        intro = words(Key.QUESTION_ONE if total == 1 else Key.QUESTION_NEXT, number=number + 1, total=total)
        lines = [intro, clean(question.header or ""), clean(question.text)]
        for position, option in enumerate(question.options, 1):
            label, description = _label(option.label), clean(option.description or "")
            lines.append(f"{position}. {label} — {description}" if description else f"{position}. {label}")
        hint = Key.QUESTION_FREE
        if question.options:
            hint = Key.QUESTION_PICK_SEVERAL if question.multiple else Key.QUESTION_PICK
        return "\n".join(filter(None, [*lines, words(hint)]))

    async def hear(self, text: str, words: Words) -> Heard:
        """See :meth:`Matter.hear`."""
        answer = understood(self._current, text)
        if answer is None:
            return Heard(words(Key.QUESTION_NO_OPTION), again=True)
        self._answers[answer.question] = answer
        if len(self._answers) < len(self._asked.questions):
            return Heard(again=True)
        given, self._answers = self._answers, {}
        match await self._bot.harness.answer(self._asked, given):
            case Receipt.ACCEPTED:
                settled = Settled.OURS
            case Receipt.NOT_PENDING:
                settled = Settled.OTHERWISE
            case Receipt.INVALID:
                return Heard(words(Key.QUESTION_NOT_TAKEN), again=True)
            case Receipt.UNKNOWN:
                settled = await self._confirmed(given)
        return Heard(self._told(settled, given, words), over=True)

    async def _confirmed(self, given: dict[str, Answer]) -> Settled:
        answers = [given[question.id] for question in self._asked.questions]
        return await confirmed(
            self._bot, self._asked.session, self._parent, lambda page: question_in(page, self._asked, answers)
        )

    def _told(self, settled: Settled, given: dict[str, Answer], words: Words) -> str:
        match settled:
            case Settled.OURS:
                said = "; ".join(_said(given[question.id]) for question in self._asked.questions)
                return words(Key.QUESTION_DONE, answers=said)
            case Settled.OTHERWISE:
                return self.elsewhere(None, words)
            case Settled.OPEN:
                return words(Key.QUESTION_UNCONFIRMED)

    def elsewhere(self, outcome: str | None, words: Words) -> str:
        """See :meth:`Matter.elsewhere`."""
        del outcome
        return words(Key.QUESTION_ELSEWHERE)

    async def withdraw(self) -> None:
        """See :meth:`Matter.withdraw`."""
        await self._bot.harness.decline(self._asked)


def understood(question: Question, text: str) -> Answer | None:
    """Return what ``text`` answers: options by number or label, else free text; None for no answer or no such number.

    Several options are separated by commas, semicolons or lines, in either script.
    """
    words = text.strip()
    if not words:
        return None
    if not question.options or _label(words) in _labels(question) or not question.multiple:
        parts = [words]
    else:
        parts = [part for each in _SEPARATORS.split(words) if (part := each.strip())]
    selected: list[str] = []
    custom: list[str] = []
    for part in parts:
        option = _option(question, part)
        if option is not None:
            selected.append(option)
        elif question.options and _DIGITS.fullmatch(_folded(part)):
            return None
        else:
            custom.append(part)
    if not selected and not custom:
        return None
    return Answer(question.id, tuple(dict.fromkeys(selected)), ", ".join(custom) or None)


def _option(question: Question, part: str) -> str | None:
    folded, labels = _folded(part), _labels(question)
    if _DIGITS.fullmatch(folded) and 1 <= int(folded) <= len(question.options):
        return question.options[int(folded) - 1].label
    return labels.get(_label(part))


def _labels(question: Question) -> dict[str, str]:
    """Return the options' labels by how they are shown."""
    return {_label(option.label): option.label for option in question.options}


def _label(text: str) -> str:
    return " ".join(clean(text).split())


def _folded(text: str) -> str:
    """Make full-width digits plain ones, as a Chinese input method writes them."""
    return unicodedata.normalize("NFKC", text).rstrip(".。")


def _said(answer: Answer) -> str:
    return ", ".join([*map(_label, answer.selected), *([answer.custom] if answer.custom else [])])

"""What the log says became of a question or an approval: modern hosts give no receipt (facts HARNESS 4.5)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Final, TypeVar

from harness_client.carrier import decode
from harness_client.errors import Malformed
from harness_client.events import ToolCall
from harness_client.streams import ApprovalAsked, Page, QuestionAsked
from harness_client.types import Answer, Decision
from harness_client.wire import Wire

LOOK_BACK: Final = 10
"""Messages of a session's tail in which something that was just asked and settled is found."""

_ASKING: Final = "ask_user_question"

_T = TypeVar("_T")


class Settled(Enum):
    """What became of what was asked."""

    OPEN = auto()
    OURS = auto()
    """Settled, and as we said."""
    OTHERWISE = auto()
    """Settled by somebody else, or by the end of its turn."""


def question_in(page: Page, asked: QuestionAsked, given: Sequence[Answer]) -> Settled:
    """Look for the result of the newest call that asked these questions."""
    calls = [event for event in page.events if isinstance(event, ToolCall) and _asks(event, asked)]
    if not calls:
        return Settled.OPEN
    newest = max(calls, key=lambda call: call.seq)
    for result in _inside(page, '"tool/result"', _Result):
        if newest.seq in result.source_event_seqs:
            return Settled.OURS if result.says(given) else Settled.OTHERWISE
    return Settled.OPEN


def approval_in(page: Page, asked: ApprovalAsked, decision: Decision) -> Settled:
    """Look for the decision on the newest approval that was asked for this tool call."""
    ids = [each.data.id for each in _inside(page, '"approval/asked"', _Asked) if each.data.call_id == asked.call]
    for decided in _inside(page, '"approval/decided"', _Decided):
        if ids and decided.data.id == ids[-1]:
            return Settled.OURS if decided.data.outcome == decision else Settled.OTHERWISE
    return Settled.OPEN


class _Ref(Wire):
    id: str


class _Questions(Wire):
    questions: tuple[_Ref, ...] = ()


def _asks(call: ToolCall, asked: QuestionAsked) -> bool:
    if call.name != _ASKING:
        return False
    try:
        wire = decode(json.loads(call.arguments), _Questions, call.name)
    except (Malformed, ValueError):
        return False
    return [each.id for each in wire.questions] == [question.id for question in asked.questions]


class _Block(Wire):
    text: str = ""
    content: tuple[_Block, ...] = ()


class _Message(Wire):
    content: tuple[_Block, ...] = ()


class _ResultData(Wire):
    message: _Message
    error: object = None


class _Given(Wire):
    id: str
    selected: tuple[str, ...] = ()
    custom: str | None = None


class _Answers(Wire):
    answers: tuple[_Given, ...]


class _Result(Wire):
    """``tool/result``; up to format 3 its text lies one block deeper than in format 4."""

    data: _ResultData
    source_event_seqs: tuple[int, ...] = ()

    def says(self, given: Sequence[Answer]) -> bool:
        if self.data.error is not None:
            return False
        blocks = self.data.message.content
        text = "".join(inner.text for block in blocks for inner in (block, *block.content))
        try:
            logged = decode(json.loads(text), _Answers, "tool/result").answers
        except (Malformed, ValueError):
            return True  # answered without an error, in words of a later version
        return [(each.id, each.selected, each.custom) for each in logged] == [
            (each.question, each.selected, each.custom) for each in given
        ]


class _AskedData(Wire):
    id: str
    call_id: str = ""


class _Asked(Wire):
    data: _AskedData


class _DecidedData(Wire):
    id: str
    outcome: str


class _Decided(Wire):
    data: _DecidedData


class _Record(Wire):
    event: object


def _inside(page: Page, mark: str, shape: type[_T]) -> Iterator[_T]:
    """Read the events of a page that are of one kind, oldest first; those of another shape say nothing."""
    for seq in sorted(page.sources):
        source = page.sources[seq]
        if mark not in source:
            continue
        event = decode(json.loads(source), _Record, mark).event
        if isinstance(event, dict) and f'"{event.get("type")}"' == mark:
            try:
                yield decode(event, shape, mark)
            except Malformed:
                continue

"""What the log says of questions and approvals, in the words of real hosts."""

from __future__ import annotations

import json
from typing import Final

import pytest

from harness_client.client import Page
from harness_client.events import parse_event
from harness_client.settled import Settled, approval_in, question_in
from harness_client.streams import ApprovalAsked, QuestionAsked
from harness_client.types import Answer, Decision, InteractionId, Question, SessionId

SESSION: Final = SessionId("s")
ASKED = QuestionAsked(
    InteractionId("i"),
    SESSION,
    tuple(Question(id_, "?", None, (), multiple=False) for id_ in ("colour", "free")),
)
GIVEN = [Answer("colour", ("Red",)), Answer("free", (), "just words")]
LOGGED = '{"answers":[{"id":"colour","selected":["Red"]},{"id":"free","selected":[],"custom":"just words"}]}'
APPROVAL = ApprovalAsked(InteractionId("i"), SESSION, "bash", "call-1", "why", None)


def page(*events: dict[str, object]) -> Page:
    sources = {seq: json.dumps({"type": "event", "event": {**event, "seq": seq}}) for seq, event in enumerate(events)}
    parsed = tuple(parse_event({**event, "seq": seq}) for seq, event in enumerate(events))
    return Page(parsed, has_more=False, through=None, sources=sources)


def call(*ids: str, name: str = "ask_user_question") -> dict[str, object]:
    arguments = json.dumps({"questions": [{"id": id_, "question": "?"} for id_ in ids]})
    return {"type": "tool/call", "data": {"turn": 1, "callId": "c", "name": name, "arguments": arguments}}


def result(text: str, *, of: int = 0, nested: bool = False, error: str | None = None) -> dict[str, object]:
    block: dict[str, object] = {"type": "text", "text": text}
    content = [{"type": "tool-result", "content": [block]}] if nested else [block]
    data: dict[str, object] = {"turn": 1, "message": {"content": content}}
    return {
        "type": "tool/result",
        "data": data | ({"error": {"code": error}} if error else {}),
        "sourceEventSeqs": [of],
    }


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize(
    ("text", "error", "settled"),
    [
        (LOGGED, None, Settled.OURS),
        (LOGGED.replace("Red", "Blue"), None, Settled.OTHERWISE),
        (LOGGED.replace("just", "other"), None, Settled.OTHERWISE),
        ("Error: the user cancelled ask_user_question", "ASK_CANCELLED", Settled.OTHERWISE),
        ("words of a later version", None, Settled.OURS),
    ],
)
def test_a_question_is_settled_by_its_result(text: str, error: str | None, settled: Settled, *, nested: bool) -> None:
    log = page(call("colour", "free"), result(text, nested=nested, error=error))
    assert question_in(log, ASKED, GIVEN) is settled


def test_only_the_newest_call_with_these_questions_counts() -> None:
    old = [call("colour", "free"), result(LOGGED)]
    assert question_in(page(*old, call("colour", "free")), ASKED, GIVEN) is Settled.OPEN
    assert question_in(page(*old, call("other"), call("colour", "free", name="bash")), ASKED, GIVEN) is Settled.OURS
    broken: dict[str, object] = {"turn": 1, "callId": "c", "name": "ask_user_question", "arguments": "{"}
    assert question_in(page(call("other"), {"type": "tool/call", "data": broken}), ASKED, GIVEN) is Settled.OPEN


def test_an_approval_is_settled_by_the_decision_on_its_call() -> None:
    asked: dict[str, object] = {"type": "approval/asked", "data": {"id": "a", "toolName": "bash", "callId": "call-1"}}
    other: dict[str, object] = {"type": "approval/asked", "data": {"id": "b", "toolName": "bash", "callId": "call-2"}}

    def decided(id_: str, outcome: str) -> dict[str, object]:
        return {"type": "approval/decided", "data": {"id": id_, "outcome": outcome}}

    def look(*events: dict[str, object]) -> Settled:
        return approval_in(page(*events), APPROVAL, Decision.ALLOW_ONCE)

    assert look() is Settled.OPEN
    assert look(asked) is Settled.OPEN
    assert look(other, decided("b", "allowed-once"), asked) is Settled.OPEN
    assert look(asked, decided("a", "allowed-once")) is Settled.OURS
    assert look(asked, decided("a", "rejected")) is Settled.OTHERWISE
    assert look(asked, decided("a", "cancelled")) is Settled.OTHERWISE
    assert look({"type": "approval/asked", "data": 7}, asked, {"type": "approval/decided", "data": {}}) is Settled.OPEN

"""The wire becomes typed events, strictly (facts HARNESS 5)."""

from __future__ import annotations

import json

import pytest

from harness_client.errors import Malformed
from harness_client.events import (
    MAX_SEQ,
    ApprovalDecided,
    AssistantMessage,
    ChunkFinish,
    Damaged,
    File,
    Image,
    Other,
    Source,
    Surface,
    Text,
    Title,
    ToolCall,
    ToolCallBlock,
    TurnEnd,
    TurnStart,
    Unknown,
    UserMessage,
    parse_event,
)
from harness_client.types import MessageId, RequestId
from tests.harness_client.recorded import PAGES
from tests.wire_events import Obj, assistant, end, other, start, user

SEQS: list[object] = [-1, 1.0, 1.5, "1", True, None, [], MAX_SEQ + 1]
PLACED_WRONG: list[object] = [None, [], "x", 1, {}, {"seq": 1}, {"type": "x"}, {"type": 1, "seq": 1}]
PLACED_WRONG += ({"type": "x", "seq": bad} for bad in SEQS)


@pytest.mark.parametrize("wire", PLACED_WRONG)
def test_an_event_needs_a_type_and_a_seq(wire: object) -> None:
    with pytest.raises(Malformed):
        parse_event(wire)


@pytest.mark.parametrize("seq", [0, MAX_SEQ])
def test_the_range_of_seq(seq: int) -> None:
    assert parse_event({"type": "future/thing", "seq": seq, "data": None}) == Unknown(seq, "future/thing")


def test_a_user_message() -> None:
    image: Obj = {"type": "image", "attachment": {}}
    wire = user(7, "hi", image, {"type": "file"}, {"type": "reasoning", "text": 5})
    blocks = (Text("hi"), Image(), File(), Other("reasoning"))
    source = Source("user", RequestId("r7"))
    assert parse_event(wire) == UserMessage(7, Surface.APPEND, MessageId("m7"), source, blocks, time=1)


@pytest.mark.parametrize(
    ("surface", "read"),
    [
        ("append", Surface.APPEND),
        ("replace", Surface.REPLACE),
        ({"op": "replace", "startSeq": 1, "endSeq": 2}, Surface.REPLACE),
        ({"op": "append"}, Surface.NONE),
        ("APPEND", Surface.NONE),
        (None, Surface.NONE),
        (True, Surface.NONE),
        (["append"], Surface.NONE),
        (..., Surface.NONE),
    ],
)
def test_the_surface_of_a_message(surface: object, read: Surface) -> None:
    event = parse_event(user(1, "x", surfaceOp=surface))
    assert isinstance(event, UserMessage)
    assert event.surface is read


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ({"kind": "user"}, Source("user")),
        ({"kind": "user", "rpcId": 5}, Source("user")),
        ({"kind": "plugin", "rpcId": "r"}, Source("plugin", RequestId("r"))),
        ({"kind": 5}, None),
        ({}, None),
        ("user", None),
        (None, None),
        (..., None),
    ],
)
def test_the_source_of_a_message(source: object, read: Source | None) -> None:
    event = parse_event(user(1, "x", source=source))
    assert isinstance(event, UserMessage)
    assert event.source == read


CONTENTS: list[object] = [None, "text", {}, ..., [None], ["x"], [{}], [{"type": 1}], [{"type": "text"}],
                          [{"type": "text", "text": None}], [{"type": "tool-call", "id": 1, "name": "x"}]]  # fmt: skip


@pytest.mark.parametrize("content", CONTENTS)
def test_broken_content_is_damage(content: object) -> None:
    human = parse_event(user(1, content=content))
    assert human == Damaged(1, "user/message", Surface.APPEND, turn=None, human=True)
    injected = parse_event(user(1, content=content, source={"kind": "goal"}))
    assert injected == Damaged(1, "user/message", Surface.APPEND, turn=None, human=False)
    reply = parse_event(assistant(1, 4, message={"content": content} if content is not ... else {}))
    assert reply == Damaged(1, "assistant/message", Surface.APPEND, turn=4, human=False)


@pytest.mark.parametrize("data", [None, [], "x", 5])
def test_data_that_is_no_object(data: object) -> None:
    assert parse_event(user(1, data=data)) == Damaged(1, "user/message", Surface.APPEND, turn=None, human=False)
    assert parse_event(assistant(1, 1, data=data)) == Damaged(1, "assistant/message", Surface.APPEND, None, human=False)
    for kind in ("turn/start", "turn/end"):
        broken = {"type": kind, "seq": 1, "data": data}
        assert parse_event(broken) == Damaged(1, kind, Surface.NONE, turn=None, human=False)
    for kind in ("tool/call", "approval/decided", "session/title", "assistant/chunk"):
        assert parse_event({"type": kind, "seq": 1, "data": data}) == Unknown(1, kind)


FINISHED: list[Obj] = [{"type": "text-chunks", "texts": []}, {"chunk": {"type": "finish", "reason": {"kind": "stop"}}}]


def test_an_assistant_message() -> None:
    wire = assistant(3, 2, "x", {"type": "tool-call", "id": "c", "name": "bash"}, step=4, stream=FINISHED)
    blocks = (Text("x"), ToolCallBlock("c", "bash"))
    assert parse_event(wire) == AssistantMessage(
        3, Surface.APPEND, MessageId("m3"), 2, 4, blocks, interrupted=False, finish="stop", time=1
    )


@pytest.mark.parametrize("stream", [None, {}, [], [None], [{"chunk": None}], [{"chunk": {"type": "finish"}}]])
def test_a_message_without_finish_reason(stream: object) -> None:
    event = parse_event(assistant(3, 2, "x", stream=stream, interrupted=True))
    assert isinstance(event, AssistantMessage)
    assert (event.finish, event.interrupted) == (None, True)


@pytest.mark.parametrize("turn", [None, -1, 1.0, True, "1"])
def test_a_turn_number_is_a_number(turn: object) -> None:
    assert parse_event(assistant(1, turn, "x")) == Damaged(1, "assistant/message", Surface.APPEND, None, human=False)
    assert parse_event(start(1, turn)) == Damaged(1, "turn/start", Surface.NONE, turn=None, human=False)
    assert parse_event(end(1, turn)) == Damaged(1, "turn/end", Surface.NONE, turn=None, human=False)


def test_interrupted_is_a_boolean() -> None:
    assert isinstance(parse_event(assistant(1, 1, "x", interrupted=1)), Damaged)


def test_turns() -> None:
    assert parse_event(start(1, 2)) == TurnStart(1, 2, time=1)
    assert parse_event(end(1, 2, "aborted")) == TurnEnd(1, 2, "aborted", time=1)
    assert parse_event(other(1, "turn/end", turn=2, reason="completed")) == TurnEnd(1, 2, "completed", time=1)


@pytest.mark.parametrize("reason", [None, 5, {}, {"kind": None}, [], True])
def test_an_end_without_a_reason(reason: object) -> None:
    damaged = Damaged(1, "turn/end", Surface.NONE, turn=2, human=False)
    assert parse_event(other(1, "turn/end", turn=2, reason=reason)) == damaged


@pytest.mark.parametrize(
    ("wire", "event"),
    [
        (other(1, "tool/call", turn=1, callId="c", name="n", arguments="{}"), ToolCall(1, 1, "c", "n", "{}")),
        (other(1, "tool/call", turn=1, callId="c", name="n", arguments={}), Unknown(1, "tool/call")),
        (other(1, "approval/decided", id="a", outcome="allowed-once"), ApprovalDecided(1, "a", "allowed-once")),
        (other(1, "session/title", title="t"), Title(1, "t")),
        (
            other(1, "assistant/chunk", turn=1, step=2, chunk={"type": "finish", "reason": {"kind": "stop"}}),
            ChunkFinish(1, 1, 2, "stop"),
        ),
        (
            other(1, "assistant/chunk", turn=1, step=2, chunk={"type": "text-delta", "text": "x"}),
            Unknown(1, "assistant/chunk"),
        ),
    ],
)
def test_the_rest(wire: Obj, event: object) -> None:
    assert parse_event(wire) == event


def test_events_of_real_hosts_are_never_damaged() -> None:
    seen = set()
    for body in PAGES.values():
        value = json.loads(body)["result"]["value"]
        for record in value.get("events") or value["records"]:
            event = parse_event(record["event"])
            seen.add(type(event))
            assert not isinstance(event, Damaged)
    assert {UserMessage, AssistantMessage, TurnStart, TurnEnd, ToolCall, Title, ChunkFinish, Unknown} <= seen

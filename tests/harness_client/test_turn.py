from __future__ import annotations

import pytest

from harness_client.events import (
    AssistantMessage,
    Block,
    Damaged,
    Event,
    Other,
    Source,
    StreamReset,
    Surface,
    Text,
    TextDelta,
    ToolCallBlock,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from harness_client.turn import TurnEnding, TurnReader
from harness_client.types import RequestId

OURS = RequestId("ours")


def asked(seq: int, request: str = "ours", kind: str = "user") -> UserMessage:
    return UserMessage(seq, Surface.APPEND, None, Source(kind, RequestId(request)), (Text("hi"),))


def said(seq: int, text: str, *, turn: int = 1, step: int | None = 1, surface: Surface = Surface.APPEND) -> Event:
    blocks: tuple[Block, ...] = (Other("reasoning"), Text(text), ToolCallBlock("c", "bash"))
    return AssistantMessage(seq, surface, None, turn, step, blocks, interrupted=False, finish=None)


def read(*items: Event | TextDelta | StreamReset) -> TurnReader:
    reader = TurnReader(OURS)
    for item in items:
        reader.take(item)
    return reader


def test_the_answer_is_the_text_of_all_steps_in_order_and_nothing_else() -> None:
    reader = read(TurnStart(0, 1), asked(1), said(2, "one"), said(3, "two", step=2), TurnEnd(4, 1, "completed"))
    assert reader.text() == "one\n\ntwo"
    assert reader.ending is TurnEnding.COMPLETED


def test_a_finished_step_replaces_what_was_streamed_of_it() -> None:
    reader = read(TurnStart(0, 1), asked(1), TextDelta(1, 1, "on"), TextDelta(1, 1, "e m"))
    assert reader.text() == "one m"
    reader.take(said(2, "one more"))
    assert reader.text() == "one more"
    assert not reader.take(TextDelta(1, 1, " late"))
    assert reader.text() == "one more"


def test_what_a_failed_attempt_streamed_is_void() -> None:
    reader = read(TurnStart(0, 1), asked(1), TextDelta(1, 1, "wrong"))
    assert reader.take(StreamReset(1, 1))
    assert reader.text() == ""
    reader.take(TextDelta(1, 1, "right"))
    assert reader.text() == "right"
    assert not reader.take(StreamReset(2, 1))


def test_other_turns_prompts_and_copies_stay_out() -> None:
    reader = read(
        TurnStart(0, 1),
        asked(1, "theirs"),
        said(2, "theirs"),
        TurnEnd(3, 1, "completed"),
        TurnStart(4, 2),
        asked(5, kind="plugin"),
        said(6, "too early", turn=2),
        asked(7),
        said(8, "of another turn", turn=1),
        said(9, "a copy", turn=2, surface=Surface.REPLACE),
        said(10, "ours", turn=2),
    )
    assert reader.text() == "ours"
    assert reader.ending is None
    reader.take(TurnEnd(11, 1, "error"))
    assert reader.ending is None


def test_an_event_read_twice_counts_once() -> None:
    tail: list[Event] = [TurnStart(0, 1), asked(1), said(2, "once")]
    assert read(*tail, *tail, said(3, "twice", step=2)).text() == "once\n\ntwice"


def test_a_page_may_begin_behind_the_start_of_the_turn() -> None:
    reader = read(asked(7), said(8, "yes", turn=4), TurnEnd(9, 4, "completed"))
    assert (reader.text(), reader.ending) == ("yes", TurnEnding.COMPLETED)


def test_a_broken_stream_goes_on_from_what_the_host_says_is_there() -> None:
    reader = read(TurnStart(0, 1), asked(1), TextDelta(1, 1, "lost"))
    reader.resume(TextDelta(1, 1, "whole so far"))
    assert reader.text() == "whole so far"
    reader.resume(None)
    assert reader.text() == ""


def test_nothing_before_the_prompt_was_sent_is_looked_at() -> None:
    reader = TurnReader(OURS)
    reader.skip_to(5)
    assert not reader.take(asked(5))
    assert not reader.begun
    assert reader.take(asked(6))
    assert reader.last == 6


def test_a_part_that_cannot_be_read_is_known() -> None:
    broken = Damaged(2, "assistant/message", Surface.APPEND, 1, human=False)
    assert read(TurnStart(0, 1), asked(1), broken).damaged
    assert not read(TurnStart(0, 1), broken, asked(3)).damaged


def test_an_unreadable_end_is_an_end() -> None:
    broken = Damaged(2, "turn/end", Surface.NONE, 1, human=False)
    assert read(TurnStart(0, 1), asked(1), broken).ending is TurnEnding.OTHER


@pytest.mark.parametrize("reason", [*TurnEnding, "forked", "something new"])
def test_every_reason_has_an_ending(reason: str) -> None:
    reader = read(TurnStart(0, 1), asked(1), TurnEnd(2, 1, str(reason)))
    assert reader.ending is (reason if isinstance(reason, TurnEnding) else TurnEnding.OTHER)


def test_a_steered_prompt_that_came_too_late_is_read_in_the_turn_it_opened() -> None:
    late = RequestId("late")
    reader = read(TurnStart(0, 1), asked(1), said(2, "one"))
    reader.steered(late)
    reader.take(TurnEnd(3, 1, "completed"))
    assert (reader.ending, reader.begun, reader.on_their_way) == (None, False, ())
    for item in (TurnStart(4, 2), asked(5, "theirs"), said(6, "theirs", turn=2), TurnEnd(7, 2, "completed")):
        reader.take(item)
    assert reader.text() == "one"
    for item in (TurnStart(8, 3), asked(9, "late"), said(10, "two", turn=3), TurnEnd(11, 3, "completed")):
        reader.take(item)
    assert reader.text() == "one\n\ntwo"
    assert reader.ending is TurnEnding.COMPLETED


@pytest.mark.parametrize("reason", ["aborted", "error"])
def test_a_turn_that_ended_badly_waits_for_nothing(reason: str) -> None:
    reader = read(TurnStart(0, 1), asked(1))
    reader.steered(RequestId("late"))
    reader.take(TurnEnd(2, 1, reason))
    assert reader.ending is TurnEnding.of(reason)


def test_a_steered_prompt_that_joined_or_was_dropped_changes_nothing() -> None:
    reader = read(TurnStart(0, 1), asked(1))
    for request in ("joins", "dropped"):
        reader.steered(RequestId(request))
    reader.take(asked(2, "joins"))
    reader.dropped(RequestId("dropped"))
    reader.dropped(RequestId("never heard of"))
    reader.take(TurnEnd(3, 1, "completed"))
    assert reader.ending is TurnEnding.COMPLETED

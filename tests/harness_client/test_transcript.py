"""What a person may see of a log, and its turns (spec HISTORY 3 and 4)."""

from __future__ import annotations

import pytest

from harness_client.errors import Malformed
from harness_client.events import Block, Event, File, Image, Text, parse_event
from harness_client.pages import read_page
from harness_client.transcript import UNREADABLE, Message, Role, is_open, text_of, turns, visible
from tests.harness_client.recorded import PAGES
from tests.wire_events import Obj, assistant, dialogue, end, other, start, user


def events(*wires: Obj) -> list[Event]:
    return [parse_event(wire) for wire in wires]


def seen(*wires: Obj) -> tuple[Message, ...]:
    return visible(events(*wires), is_command=lambda text: text == "/history", without_marks=lambda blocks: blocks)


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [text_of(message.blocks) for message in messages]


def test_messages_say_who_and_where() -> None:
    wires = [user(5, "q", {"type": "image"}, {"type": "reasoning"}), assistant(7, 1, "a", {"type": "file"}), end(8, 1)]
    assert seen(*wires) == (
        Message(5, Role.USER, (Text("q"), Image())),
        Message(7, Role.ASSISTANT, (Text("a"), File())),
    )


def test_an_answer_stands_where_it_was_given() -> None:
    assert texts(seen(assistant(1, 1, "a1"), user(2, "u2"), end(3, 1))) == ["a1", "u2"]


def test_marks_go_before_the_command_test() -> None:
    def without_marks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return blocks[1:]

    found = visible(
        events(user(1, "mark", "/history"), user(2, "mark", "hello")),
        is_command=lambda text: text == "/history",
        without_marks=without_marks,
    )
    assert texts(found) == ["hello"]


def test_a_reply_that_is_a_command_is_shown() -> None:
    assert texts(seen(assistant(1, 1, "/history"), end(2, 1))) == ["/history"]


@pytest.mark.parametrize(
    "wires",
    [
        [user(1, content=None)],
        [user(1, "fine"), user(2, content=[{}])],
        [assistant(1, 1, "a"), assistant(2, 1, message={}), end(3, 1)],
        [assistant(1, None, "a")],
    ],
)
def test_damage_that_would_be_shown_fails(wires: list[Obj]) -> None:
    with pytest.raises(Malformed):
        seen(*wires)


def test_damage_in_an_earlier_turn_of_the_same_number_is_not_carried_over() -> None:
    wires = [assistant(1, 1, message={}), end(2, 1, "aborted"), assistant(3, 1, "a"), end(4, 1)]
    assert texts(seen(*wires)) == ["a"]
    assert texts(seen(assistant(1, 1, message={}), start(2, 1), assistant(3, 1, "a"), end(4, 1))) == ["a"]


def test_a_turn_that_said_nothing_has_no_answer() -> None:
    assert seen(start(1, 1), end(2, 1)) == ()


def test_turns_are_told_apart() -> None:
    found = turns(
        events(
            start(1, 1), user(2, "u1"), assistant(3, 1, "a"), user(4, "steer"), assistant(5, 1, "b", step=2), end(6, 1),
            start(7, 2), user(8, "x", source={"kind": "tool-jobs"}), assistant(9, 2, "c"),
        )
    )  # fmt: skip
    assert [(turn.number, [m.seq for m in turn.messages], turn.end and turn.end.reason) for turn in found] == [
        (1, [2, 3, 4, 5], "completed"),
        (2, [8, 9], None),
    ]
    assert [reply.seq for reply in found[0].replies] == [3, 5]
    assert found[0].start is not None
    assert found[0].answer is found[0].replies[-1]
    assert found[1].answer is None


def test_numbers_repeat() -> None:
    found = turns(events(assistant(1, 1, "a"), end(2, 1), assistant(3, 1, "b"), end(4, 1), start(5, 1), start(6, 1)))
    assert [(turn.start and turn.start.seq, turn.end and turn.end.seq) for turn in found] == [
        (None, 2), (None, 4), (5, None), (6, None),
    ]  # fmt: skip


def test_what_a_page_begins_with_belongs_to_the_turn_that_shows_itself_next() -> None:
    found = turns(events(user(1, "u"), assistant(2, 7, "a"), end(3, 7), user(4, "late"), start(5, 8), user(6, "v")))
    assert [[m.seq for m in turn.messages] for turn in found] == [[1, 2], [4, 6]]


def test_an_end_alone_is_a_turn() -> None:
    (turn,) = turns(events(end(3, 7, "aborted")))
    assert (turn.start, turn.messages, turn.end and turn.end.reason) == (None, [], "aborted")


def test_an_end_that_cannot_be_read_completes_nothing() -> None:
    (turn,) = turns(events(assistant(1, 1, "a"), other(2, "turn/end", turn=1)))
    assert turn.end is not None
    assert (turn.end.reason, turn.answer) == (UNREADABLE, None)


def test_replacements_are_no_part_of_a_turn() -> None:
    (turn,) = turns(events(start(1, 1), user(2, "x", surfaceOp="replace"), assistant(3, 1, "y", surfaceOp=...)))
    assert turn.messages == []


def test_the_finish_reason_of_old_hosts_comes_from_the_last_chunk() -> None:
    def chunk(seq: int, step: int, reason: str) -> Obj:
        finish = {"type": "finish", "reason": {"kind": reason}}
        return other(seq, "assistant/chunk", turn=1, step=step, chunk=finish)

    (turn,) = turns(
        events(chunk(1, 1, "error"), chunk(2, 1, "tool-calls"), assistant(3, 1, "a"), assistant(4, 1, "b", step=2))
    )
    assert [reply.finish for reply in turn.replies] == ["tool-calls", None]


@pytest.mark.parametrize(
    ("wires", "open_"),
    [
        ([], False),
        ([user(1, "u")], False),
        (dialogue(2), False),
        ([*dialogue(1), start(20, 2)], True),
        ([*dialogue(1), start(20, 2), end(21, 2, "aborted")], False),
        ([*dialogue(1), start(20, 2), other(21, "turn/end", turn=2)], False),
        ([assistant(1, 1, "a")], True),
        ([assistant(1, 1, "a"), end(2, 1)], False),
        ([start(1, 1), start(2, 2), end(3, 2)], False),
        ([start(1, 1), start(2, 2), end(3, 1)], True),
        ([start(1, 1), assistant(2, 1, "a"), start(3, 2), end(4, 2)], True),
        ([start(1, 1), assistant(2, 1, "a"), start(3, 1), end(4, 1)], False),
        ([assistant(1, 1, "a", surfaceOp="replace")], False),
    ],
)
def test_whether_the_log_ends_inside_a_turn(wires: list[Obj], open_: bool) -> None:
    assert is_open(events(*wires)) is open_


SHOWN = {
    "01-simple-qa.page1": "ua",
    "04-cancelled-mid-text.page1": "uau",
    "05-failed-turns.page1": "uuuauua",
    "06-running-turn-read-midway": "uau",
    "07-compaction.page1": "ua" * 8,
    "21-crashed-host-mid-tool.page1": "u",
}
"""Who speaks in a recorded log, u or a; counted by hand."""


@pytest.mark.parametrize("generation", ["legacy", "modern"])
@pytest.mark.parametrize("name", SHOWN)
async def test_recorded_logs(generation: str, name: str) -> None:
    page = await read_page(PAGES[f"{generation}/{name}"], "page", through=None)
    found = visible(page.events, is_command=lambda _: False, without_marks=lambda blocks: blocks)
    assert "".join(message.role[0] for message in found) == SHOWN[name]
    assert is_open(page.events) is (name == "06-running-turn-read-midway")
    assert "[blanked]" not in "".join(texts(found))

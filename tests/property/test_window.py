"""The window of N against an oracle that looks at every message on its own and knows no turns and no pages."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_client.pages import read_page
from harness_client.streams import Page
from harness_client.transcript import text_of
from harness_client.types import SessionId
from harness_client.window import Window, read_window
from tests.fakes.clock import FakeClock
from tests.wire_events import Obj, assistant, end, other, page_body, start, user

REASONS = ("completed", "completed", "completed", "aborted", "error", "interrupted")
TURNS = st.integers(1, 3)


@st.composite
def logs(draw: st.DrawFn) -> list[Obj]:
    """A dense log in which anything may follow anything: turns interleave, repeat, and miss their ends."""
    log: list[Obj] = []
    for seq in range(draw(st.integers(0, 40))):
        turn = draw(TURNS)
        match draw(st.sampled_from("uuiraaaasree..")):
            case "u":
                words = draw(st.sampled_from([f"u{seq}", f"u{seq}", "/history 3"]))
                log.append(user(seq, words))
            case "i":
                log.append(user(seq, "hidden", source={"kind": "plugin"}))
            case "r":
                log.append(
                    draw(
                        st.sampled_from(
                            [
                                user(seq, "hidden", surfaceOp="replace"),
                                assistant(seq, turn, "hidden", surfaceOp={"op": "replace"}),
                            ]
                        )
                    )
                )
            case "a":
                log.append(
                    assistant(seq, turn, f"a{seq}", interrupted=draw(st.sampled_from([False, False, False, True])))
                )
            case "s":
                log.append(start(seq, turn))
            case "e":
                log.append(end(seq, turn, draw(st.sampled_from(REASONS))))
            case _:
                log.append(other(seq))
    return log


def seq_of(event: Obj) -> int:
    return int(str(event["seq"]))


def of_turn(event: Obj, kind: str, turn: object) -> bool:
    data = event["data"]
    assert isinstance(data, dict)
    return event["type"] == kind and data.get("turn") == turn


def words_of(event: Obj) -> str:
    data = event["data"]
    assert isinstance(data, dict)
    return str((data.get("message") or data)["content"][0]["text"])


def is_shown(event: Obj, log: list[Obj]) -> bool:
    data = event["data"]
    assert isinstance(data, dict)
    if event.get("surfaceOp") != "append":
        return False
    if event["type"] == "user/message":
        return data["source"]["kind"] == "user" and not words_of(event).startswith("/history")
    turn, after = data["turn"], [later for later in log if seq_of(later) > seq_of(event)]
    ends = [seq_of(later) for later in after if of_turn(later, "turn/end", turn)]
    if not ends or data["interrupted"]:
        return False
    (closing,) = (later for later in after if seq_of(later) == min(ends))
    between = [later for later in after if seq_of(later) < min(ends)]
    overtaken = any(
        of_turn(later, "turn/start", turn)
        or (of_turn(later, "assistant/message", turn) and later["surfaceOp"] == "append")
        for later in between
    )
    reason = closing["data"]
    assert isinstance(reason, dict)
    return reason["reason"] == {"kind": "completed"} and not overtaken


@dataclass
class Paged:
    """Serves a log in pages cut anywhere, shuffled, with repeats, and with events that came after the first read."""

    log: list[Obj]
    borders: list[int]
    noise: random.Random
    late: list[Obj]
    reads: list[int | None] = field(default_factory=list)

    def _cut(self, before: int | None) -> tuple[list[Obj], int]:
        stop = len(self.log) if before is None else before
        begin = max((border for border in self.borders if border < stop), default=0)
        return self.log[begin:stop], begin

    async def page(
        self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
    ) -> Page:
        self.reads.append(before)
        events, begin = self._cut(before)
        if events:
            events = events + self.noise.choices(events, k=self.noise.randrange(3))
        if before is not None:
            events = events + self.noise.choices(self.log[before:] or events, k=self.noise.randrange(3)) + self.late
        self.noise.shuffle(events)
        return await read_page(page_body(events, begin > 0), "page", through=None)

    async def running(self, session: SessionId) -> bool:
        return True


@given(logs(), st.lists(st.integers(0, 40), max_size=6), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_the_window_is_what_the_oracle_says(
    log: list[Obj], borders: list[int], count: int, noise: random.Random
) -> None:
    late = [end(len(log) + turn, turn) for turn in (1, 2, 3)] + [user(len(log) + 9, "too late")]
    source = Paged(log, [border for border in borders if border < len(log)], noise, late)
    found = asyncio.run(window(source, count))

    within = log
    for _ in range(3):
        within = within[: -len(source._cut(len(within))[0])] if within else within
    reachable = log[len(within) :]
    expected = [words_of(event) for event in reachable if is_shown(event, reachable)][-count:]
    assert [text_of(message.blocks) for message in found.messages] == expected
    assert source.reads[0] is None
    assert len(source.reads) <= 3
    if len(expected) < count:
        assert found.more is bool(within)
    read = log[source._cut(source.reads[-1])[1] :]
    assert found.running is ends_inside_a_turn(read)


def ends_inside_a_turn(log: list[Obj]) -> bool:
    starts = [event for event in log if event["type"] == "turn/start"]
    replies = [e for e in log if e["type"] == "assistant/message" and e["surfaceOp"] == "append"]

    def ended(event: Obj, *closers: str) -> bool:
        data = event["data"]
        assert isinstance(data, dict)
        return any(
            of_turn(later, kind, data["turn"]) for later in log for kind in closers if seq_of(later) > seq_of(event)
        )

    return any(not ended(event, "turn/end") for event in starts[-1:]) or any(
        not ended(event, "turn/end", "turn/start") for event in replies
    )


async def window(source: Paged, count: int) -> Window:
    return await read_window(
        source,
        SessionId("s"),
        count,
        clock=FakeClock(),
        is_command=lambda text: text.startswith("/history"),
        without_marks=lambda blocks: blocks,
    )

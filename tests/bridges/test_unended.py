"""What is open in chats is written down, bounded, and ended by the next process: once."""

from __future__ import annotations

import pytest

from bridges.message import NotSent, RetryAfter, SendOutcome, Sent
from bridges.unended import MOST, ROUNDS, Unended
from tests.channels.around import MemoryCursors


async def left_of(kept: MemoryCursors) -> list[str]:
    """Return what a new process ends."""
    ended: list[str] = []
    unended = Unended(kept, "open")

    async def end(name: str) -> None:
        assert name.encode() in kept.values["open"], "not forgotten before it is over"
        ended.append(name)

    for _ in range(2):
        await unended.end_left_over(end)
    return ended


async def test_what_is_open_is_ended_once() -> None:
    kept = MemoryCursors()
    before = Unended(kept, "open")
    for name in ("one", "two", "three"):
        await before.begin(name)
    await before.end("two")
    await before.end("two")
    assert len(before) == 2
    assert await left_of(kept) == ["one", "three"]
    assert await left_of(kept) == []


async def test_the_oldest_go_first_when_there_are_too_many() -> None:
    kept = MemoryCursors()
    before = Unended(kept, "open")
    for number in range(MOST + 5):
        await before.begin(f"thing {number}")
    assert len(before) == MOST
    assert (await left_of(kept))[0] == "thing 5"


async def test_what_is_begun_meanwhile_stays() -> None:
    kept = MemoryCursors()
    await Unended(kept, "open").begin("old")
    unended = Unended(kept, "open")

    async def end(name: str) -> None:
        assert name == "old"
        await unended.begin("new")

    await unended.end_left_over(end)
    assert kept.values["open"] == b'["new"]'


async def test_what_is_begun_before_anybody_looked_back_takes_nothing_away() -> None:
    kept = MemoryCursors()
    await Unended(kept, "open").begin("old")
    await Unended(kept, "open").begin("new")
    assert await left_of(kept) == ["old", "new"]


class Unreadable(MemoryCursors):
    """Cannot be read at first."""

    readable = False

    async def load(self, key: str) -> bytes | None:
        if not self.readable:
            raise OSError("no")
        return await super().load(key)


async def test_what_cannot_be_read_is_not_written_over() -> None:
    kept = Unreadable()
    kept.values["open"] = b'["old"]'
    unended = Unended(kept, "open")
    await unended.begin("new")
    assert kept.values["open"] == b'["old"]'
    kept.readable = True
    await unended.begin("newer")
    assert kept.values["open"] == b'["old","new","newer"]'


@pytest.mark.parametrize(
    ("outcome", "calls"),
    [
        (Sent(None), 1),
        (NotSent.REJECTED, 1),
        (None, 1),
        (NotSent.UNKNOWN, ROUNDS),
        (NotSent.REAUTHENTICATE, ROUNDS),
        (RetryAfter(1), ROUNDS),
    ],
)
async def test_what_is_open_still_is_ended_with_a_later_link_but_not_tried_for_ever(
    outcome: SendOutcome | None, calls: int
) -> None:
    kept = MemoryCursors()
    await Unended(kept, "open").begin("old")
    unended, called = Unended(kept, "open"), 0

    async def end(name: str) -> SendOutcome | None:
        nonlocal called
        called += 1
        return outcome

    for _ in range(2 * ROUNDS):
        await unended.end_left_over(end)
    assert (called, kept.values["open"]) == (calls, b"[]")

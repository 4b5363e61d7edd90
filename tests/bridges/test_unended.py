"""What is open in chats is written down, bounded, and ended by the next process: once."""

from __future__ import annotations

from bridges.unended import MOST, Unended
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
        await unended.begin("new")

    await unended.end_left_over(end)
    assert kept.values["open"] == b'["new"]'

"""What a channel keeps for each chat, and what waits there."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from bridges.backlog import LONGEST, MAX_BYTES, Backlog
from bridges.message import Kept, NotSent, SendOutcome, Sent
from bridges.records import REMEMBERED, Records
from tests.channels.around import MemoryCursors


class Note:
    """A record of one text."""

    def __init__(self, name: str, data: bytes | None) -> None:
        self.name = name
        self.sending = asyncio.Lock()
        self.text = msgspec.json.decode(data, type=str) if data else ""
        self.backlog = Backlog()

    def encode(self) -> bytes:
        return msgspec.json.encode(self.text)


class SlowCursors(MemoryCursors):
    """Lets others run while it reads, as a disk does."""

    async def load(self, key: str) -> bytes | None:
        await asyncio.sleep(0)
        return await super().load(key)


@pytest.fixture
def cursors() -> SlowCursors:
    return SlowCursors()


@pytest.fixture
def notes(cursors: SlowCursors) -> Records[Note]:
    return Records(cursors, "note:", Note)


async def test_a_record_is_one_however_many_ask(notes: Records[Note]) -> None:
    first, second = await asyncio.gather(notes.get("a"), notes.get("a"))
    assert first is second


async def test_a_record_is_read_back(notes: Records[Note], cursors: SlowCursors) -> None:
    note = await notes.get("a")
    note.text = "hello"
    await notes.save(note)
    assert (await Records(cursors, "note:", Note).get("a")).text == "hello"
    assert (await Records(cursors, "other:", Note).get("a")).text == ""


async def test_a_damaged_record_begins_anew(notes: Records[Note], cursors: SlowCursors) -> None:
    cursors.values["note:a"] = b"{"
    assert (await notes.get("a")).text == ""


async def test_memory_is_bounded_and_nobody_who_sends_is_forgotten(notes: Records[Note]) -> None:
    busy, idle = await notes.get("busy"), await notes.get("idle")
    async with busy.sending:
        for number in range(REMEMBERED):
            await notes.get(str(number))
        assert await notes.get("busy") is busy
        assert await notes.get("idle") is not idle


async def test_a_full_disk_is_an_error_only_where_it_matters(notes: Records[Note], cursors: SlowCursors) -> None:
    cursors.full = True
    note = await notes.get("a")
    await notes.note(note)
    with pytest.raises(OSError, match="space"):
        await notes.save(note)
    assert await note.backlog.keep("x", notes, note) is NotSent.WINDOW_CLOSED
    assert not note.backlog


@pytest.mark.parametrize("text", ["x" * 2_000, "字" * 2_000, "\x01" * 1_900])
async def test_what_waits_fits_its_cursor(notes: Records[Note], text: str) -> None:
    note = await notes.get("a")
    while await note.backlog.keep(text, notes, note) == Kept():
        assert len(msgspec.json.encode(note.backlog)) <= MAX_BYTES + 100
    assert 0 < len(note.backlog) <= LONGEST


async def waiting(note: Note, notes: Records[Note], *outcomes: SendOutcome | None) -> list[str]:
    """Send what waits, with these outcomes; return what was tried."""
    tried: list[str] = []

    async def send(text: str) -> SendOutcome | None:
        tried.append(text)
        return outcomes[len(tried) - 1]

    await note.backlog.send(send, lambda: len(tried) < len(outcomes), lambda: notes.note(note))
    return tried


async def test_what_waits_goes_out_in_order_while_there_is_room(notes: Records[Note]) -> None:
    note = await notes.get("a")
    for text in "abc":
        await note.backlog.keep(text, notes, note)
    assert await waiting(note, notes, Sent(None), Sent(None)) == ["a", "b"]
    assert await waiting(note, notes, Sent(None), Sent(None)) == ["c"]
    assert not note.backlog


async def test_what_cannot_go_out_now_waits_once_more_and_holds_up_nothing_for_ever(notes: Records[Note]) -> None:
    note = await notes.get("a")
    for text in "ab":
        await note.backlog.keep(text, notes, note)
    assert await waiting(note, notes, None, Sent(None)) == ["a"]
    assert await waiting(note, notes, None, Sent(None)) == ["a"]
    assert await waiting(note, notes, Sent(None)) == ["b"]


async def test_what_may_have_arrived_is_not_sent_again(notes: Records[Note]) -> None:
    note = await notes.get("a")
    for text in "ab":
        await note.backlog.keep(text, notes, note)
    assert await waiting(note, notes, NotSent.UNKNOWN, Sent(None)) == ["a"]
    assert await waiting(note, notes, Sent(None)) == ["b"]

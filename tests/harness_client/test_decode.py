"""Strict JSON in short steps, and the pages read with it."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined] # typeshed leaves it out

import pytest

from harness_client import decode
from harness_client.decode import DIRECT_BYTES, JsonText, Stopped, loads, off_loop
from harness_client.errors import HarnessError, Malformed, Refused, SessionNotFound, Unsupported
from harness_client.events import ChunkFinish, UserMessage
from harness_client.offload import TURN, offload
from harness_client.pages import read_page
from tests.harness_client.recorded import PAGES
from tests.wire_events import answer, dialogue, other, page_body, user

VALUES: list[object] = [
    *(None, True, False, 0, -1, 12, 1.5, 1e300, [], {}, [1, [2]], {"a": {"b": []}}),
    *("", "x", "字😀", "\ud83d", '"\\/\b\f\n\r\t\u0001'),
]


@pytest.fixture(params=[1, 3, 128 * 1024])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the text arrive in pieces of this size; tiny ones also make every value a long one."""
    if request.param < 100:
        monkeypatch.setattr(decode, "_PIECE", request.param)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("value", VALUES)
def test_values_come_back(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    if not ascii_only and "\ud83d" in text:
        return  # half a character can only be written as an escape
    assert loads(f" {text}\r\n".encode()) == value
    assert loads(f"\n[{text} , {text}]".encode()) == [value, value]


BAD: list[bytes] = [
    *(
        b"",
        b" ",
        b"{",
        b"[1",
        b"[1,]",
        b'{"a":1,}',
        b'{"a"}',
        b"{a:1}",
        b"tru",
        b"nul",
        b"-",
        b"1.",
        b"01",
        b"1 2",
        b"{} x",
    ),
    *(b"NaN", b"[Infinity]", b"-Infinity", b'{"a":1,"a":1}', b'[{"a":{"b":1,"b":2}}]', b'"\n"', b'"\\x"', b'"\\u12"'),
    *(b'"a', b"'a'", b"\xff", b'"\xed\xa0\x80"', b'"\xe5\xad"', b"\xef\xbb\xbf1"),
    *(b"1" * 5_000, b"[" * 100_000, b'{"a":' * 100_000),
]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_everything_else_is_malformed_and_not_quoted(body: bytes) -> None:
    if len(body) > 10_000 and decode._PIECE < 100:
        return  # a hundred thousand pieces only to find the same
    with pytest.raises(Malformed) as raised:
        loads(body)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    assert len(str(raised.value)) < 60


def test_objects_and_lists_are_walked() -> None:
    text = JsonText(b' { "a" : [ 1 , "x" ] , "b" : {} , "c" : [ ] } ')
    found: list[object] = []
    for key in text.members():
        if text.opens("["):
            found.append([key, [text.value() for _ in text.items()]])
        else:
            found.append([key, list(text.members())])
    text.end()
    assert found == [["a", [(1, "1"), ("x", '"x"')]], ["b", []], ["c", []]]


@pytest.mark.parametrize("body", [b'{"a":1 "b":2}', b"{1:2}", b'{"a":1,"a":2}', b"[]", b'{"a" 1}', b'{"a":1'])
def test_a_broken_object_is_malformed(body: bytes) -> None:
    text = JsonText(body)
    with pytest.raises(Malformed):
        [text.value() for _ in text.members()]


def test_a_broken_list_is_malformed() -> None:
    text = JsonText(b"[1 2]")
    with pytest.raises(Malformed):
        [text.value() for _ in text.items()]


LONG = [
    "x" * 3_000_000,
    "\\" * 1_500_000,
    "\n😀" * 400_000,
    "\ud83d" * 200_000,
    '字\u2028"' * 400_000,
    ["😀" * 200_000, {"k": "v" * 1_200_000}, 1.5, None],
]


@pytest.mark.parametrize("value", LONG, ids=range(len(LONG)))
@pytest.mark.parametrize("ascii_only", [True, False])
def test_long_values_are_read_in_short_calls(value: object, ascii_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def counting(text: str, *rest: object) -> object:
        called.append(len(text))
        return scanstring(text, *rest)

    monkeypatch.setattr(decode, "scanstring", counting)
    if not ascii_only and value is LONG[3]:
        return  # half a character can only be written as an escape
    text = json.dumps([value, {"after": 1}], ensure_ascii=ascii_only)
    reader = JsonText(text.encode())
    assert [reader.value()[0] for _ in reader.items()] == [json.loads(json.dumps(value)), {"after": 1}]
    assert called
    assert max(called) <= decode._PIECE + 1


@pytest.mark.parametrize(
    "tail", ["\\ud8", "\\ud83d", "\\ud83d\\", "\\\\", "\\", "\\u", "\\\\\\ud83d", "\\u0041", "\\n"]
)
@pytest.mark.parametrize("shift", range(14))
def test_a_cut_never_tears_an_escape(tail: str, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_PIECE", 20)
    inside = "x" * shift + tail + "\\ude00y\\\\z" * 3
    body = f'"{inside}"'
    try:
        expected = json.loads(body)
    except json.JSONDecodeError:
        with pytest.raises(json.JSONDecodeError):
            decode._long_string(body, 1)
    else:
        assert decode._long_string(body, 1) == (expected, len(body))


# -- pages ------------------------------------------------------------------------------------------------------------


async def read(body: bytes) -> list[int]:
    return sorted((await read_page(body, "session.history", through=None)).sources)


@pytest.mark.parametrize("name", PAGES)
async def test_recorded_pages_are_read_whole(name: str) -> None:
    page = await read_page(PAGES[name], "session.history", through=7)
    value = json.loads(PAGES[name])["result"]["value"]
    events = [record["event"] for record in value.get("events") or value["records"]]
    assert list(page.sources) == [event["seq"] for event in events]
    assert [json.loads(source)["event"] for source in page.sources.values()] == events
    assert (page.has_more, page.through) == (value["hasMore"], 7)
    assert (page.oldest, page.newest) == (events[0]["seq"], events[-1]["seq"])


@pytest.mark.parametrize("swap", [True, False])
async def test_the_order_of_keys_does_not_matter(swap: bool) -> None:
    value: dict[str, object] = {
        "hasMore": True,
        "projections": {"values": {}},
        "records": [{"type": "event", "event": user(1)}],
    }
    result: dict[str, object] = {"value": dict(reversed(value.items())) if swap else value, "ok": True}
    envelope: dict[str, object] = {"rpcId": 12, "result": result, "type": "server-response"}
    page = await read_page(
        json.dumps(dict(reversed(envelope.items())) if swap else envelope).encode(), "x", through=None
    )
    assert (page.has_more, page.oldest, len(page.events)) == (True, 1, 1)


def refused(code: object) -> bytes:
    return json.dumps(
        {"type": "server-response", "rpcId": "1", "result": {"ok": False, "error": {"code": code}}}
    ).encode()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (refused("session-not-found"), SessionNotFound),
        (refused("session/not-found"), SessionNotFound),
        (refused("internal"), Refused),
        (refused("gateway/invocation-unavailable"), Unsupported),
        (refused(5), Malformed),
        (b'{"type":"server-response","result":{"ok":false}}', Malformed),
        (b'{"type":"server-response","result":{"ok":1,"value":{"events":[],"hasMore":false}}}', Malformed),
        (b'{"type":"server-response","result":{"ok":true}}', Malformed),
        (b'{"type":"server-response","result":[]}', Malformed),
        (b'{"type":"server-response"}', Malformed),
        (b'{"type":"server-request","result":{"ok":true,"value":{"events":[],"hasMore":false}}}', Malformed),
        (b'{"result":{"ok":true,"value":{"events":[],"hasMore":false}}}', Malformed),
        (page_body([]) + b"x", Malformed),
        (page_body([], more=None), Malformed),
        (answer({"events": [{"type": "future", "event": user(1)}], "hasMore": False}), Malformed),
        (answer({"events": [], "records": [], "events2": 1, "hasMore": "no"}), Malformed),
        (b"<html>", Malformed),
        (b"[]", Malformed),
        (b"null", Malformed),
    ],
)
async def test_other_answers(body: bytes, error: type[HarnessError]) -> None:
    with pytest.raises(error) as raised:
        await read(body)
    assert str(raised.value).startswith("session.history: ")


async def test_identical_repeats_are_dropped_and_others_refused() -> None:
    same = user(1, "x", {"type": "image", "n": [1, {"a": None}]})
    again = {key: same[key] for key in reversed(same)}
    page = await read_page(page_body([same, again, same]), "x", through=None)
    assert (len(page.events), len(page.sources)) == (1, 1)
    for one, two in ((1, 1.0), (1, True), (1.0, True), (0, False), (None, False), ([], {}), ("1", 1), (0.0, -0.0)):
        with pytest.raises(Malformed):
            await read(page_body([other(1, x=one), other(1, x=two)]))


async def test_what_a_host_says_beside_an_event_is_no_part_of_it() -> None:
    body = answer({"events": [{"event": other(1), "view": 1}, {"event": other(1)}], "hasMore": False})
    assert await read(body) == [1]


def packed(**data: object) -> bytes:
    event = {"type": "chunkrow/text-chunks", "seq": 5, "time": 1, "data": {"turn": 1, "step": 1, "index": 0, **data}}
    return answer({"records": [{"type": "chunks", "event": event}], "hasMore": False})


async def test_packed_chunks_are_events_each() -> None:
    assert await read(packed(texts=["a", "b", "a"], dt=[1, 1])) == [5, 6, 7]
    assert await read(packed(id="c", name="n", args=["{", "}"])) == [5, 6]
    for broken in (packed(), packed(texts="ab"), answer({"records": [{"type": "chunks"}], "hasMore": False})):
        with pytest.raises(Malformed):
            await read(broken)


@pytest.mark.parametrize("seq", [True, 1.0, -1, 2**53])
async def test_a_packed_run_begins_at_a_proper_seq(seq: object) -> None:
    chunks = {"type": "chunkrow/text-chunks", "seq": seq, "data": {"texts": ["a"]}}
    with pytest.raises(Malformed):
        await read(answer({"records": [{"type": "chunks", "event": chunks}], "hasMore": False}))


async def test_unknown_events_are_counted_and_not_kept() -> None:
    chunk = {"type": "finish", "reason": {"kind": "stop"}}
    page = await read_page(
        page_body([other(1), user(2), other(3, "assistant/chunk", turn=1, step=1, chunk=chunk)]), "x", through=None
    )
    assert [type(event) for event in page.events] == [UserMessage, ChunkFinish]
    assert list(page.sources) == [1, 2, 3]


# -- off the loop -----------------------------------------------------------------------------------------------------


def large(events: int) -> bytes:
    body = page_body([*dialogue(10), *(other(1_000 + n, x="字" * 50) for n in range(events))])
    assert len(body) > DIRECT_BYTES
    return body


async def test_a_large_page_is_read_in_a_thread() -> None:
    seen = []

    def note(text: JsonText) -> None:
        seen.append(threading.current_thread())
        text.value()

    await off_loop(note, large(2_000))
    await off_loop(note, b"1")
    assert seen[0] is not threading.main_thread()
    assert seen[1] is threading.main_thread()
    assert len(await read(large(2_000))) == 2_030


async def test_a_large_page_that_is_malformed() -> None:
    with pytest.raises(Malformed, match=r"session\.history"):
        await read(large(2_000)[:-1])


async def test_nobody_works_on_for_a_cancelled_reader() -> None:
    began, ended = threading.Event(), threading.Event()

    def endless(text: JsonText) -> None:
        began.set()
        try:
            for _ in text.items():
                text.value()
                while not text.stop.wait(1):
                    pass
        except Stopped:
            ended.set()
            raise

    reading = asyncio.create_task(off_loop(endless, b"[" + b'"xxxxxxxxxxxxxxxx",' * 100_000 + b"1]"))
    assert await asyncio.to_thread(began.wait, 5)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await asyncio.to_thread(ended.wait, 5)


@pytest.mark.parametrize("item", ["[]", '"a"'])
def test_a_long_value_too_is_stopped_while_it_is_read(item: str) -> None:
    class GivenUp(threading.Event):
        """Set once it was looked at far more often than the text has windows."""

        looks = 0

        def is_set(self) -> bool:
            self.looks += 1
            return self.looks > 1_000

    text = JsonText(f"[{f'{item},' * 300_000}{item}]".encode())
    text.stop = GivenUp()
    with pytest.raises(Stopped):
        text.value()


@pytest.fixture
def _collector() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.usefixtures("_collector")
@pytest.mark.parametrize("on", [True, False])
async def test_the_collector_rests_and_is_left_as_it_was(on: bool) -> None:
    (gc.enable if on else gc.disable)()
    both = threading.Barrier(2, timeout=5)

    def work() -> bool:
        both.wait()
        return gc.isenabled()

    first, second = asyncio.create_task(offload(work)), asyncio.create_task(offload(work))
    assert [await first, await second] == [False, False]
    assert gc.isenabled() is on


async def test_the_loop_goes_on_while_a_large_page_is_read() -> None:
    """No stall is measured here (see the benchmark): only that the loop gets its turns, many of them."""
    turns = 0
    reading = asyncio.create_task(read_page(large(20_000), "x", through=None))
    while not reading.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 5
    assert len((await reading).sources) == 20_030


async def test_turns_are_short_while_work_goes_on_and_as_they_were_after_it() -> None:
    before = sys.getswitchinterval()
    assert await offload(sys.getswitchinterval) == pytest.approx(TURN)
    assert await asyncio.gather(*(offload(sys.getswitchinterval) for _ in range(3))) == pytest.approx([TURN] * 3)
    assert sys.getswitchinterval() == before

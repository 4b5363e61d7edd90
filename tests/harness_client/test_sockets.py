"""What a client makes of a host's sockets, frame by frame, and how it hands it over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import WSMsgType

from harness_client.client import HarnessClient
from harness_client.errors import HarnessError, Malformed, Refused, SessionBusy, Unreachable
from harness_client.events import StreamReset, TextDelta
from harness_client.feed import ITEM_LIMIT, Feed
from harness_client.streams import FollowItem, Snapshot
from harness_client.types import SessionId
from tests.fakes.harness import Obj
from tests.harness_client.conftest import seqs
from tests.harness_client.raw import Wire, raw_host, raw_legacy_host

SESSION = SessionId("session-raw")


def snapshot(cursor: int = -1, **extra: object) -> Obj:
    return {"type": "snapshot", "header": {}, "cursor": cursor, "records": [], "hasMore": False, **extra}


def event(seq: int, type_: str = "x/y", **data: object) -> Obj:
    return {"type": "event", "event": {"type": type_, "seq": seq, "time": 1, "data": data}}


def frame(type_: str, attempt: str = "a:1", **extra: object) -> Obj:
    return {"type": "assistant-stream", "frame": {"type": type_, "attemptId": attempt, "revision": 1, **extra}}


def text(words: str) -> Obj:
    return {"type": "text-delta", "index": 0, "text": words}


async def followed(*values: object) -> list[FollowItem]:
    """Return what a follow makes of these values, up to and without the end of the link."""

    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), *values)

    taken: list[FollowItem] = []
    async with raw_host(talk) as address, HarnessClient(address) as client, client.follow(SESSION) as items:
        with pytest.raises(Unreachable, match="closed the link"):
            await collect(items, taken)
    return taken


async def collect(items: AsyncIterator[FollowItem], into: list[FollowItem]) -> None:
    async for item in items:
        into.append(item)  # noqa: PERF401 the caller keeps what came before the end


async def test_repeats_are_dropped_and_unknown_values_ignored() -> None:
    taken = await followed(snapshot(3), event(2), event(3), event(4), {"type": "news"}, event(4), event(5))
    assert seqs(taken) == [4, 5]


async def test_the_assistant_stream() -> None:
    taken = await followed(
        snapshot(),
        frame("chunk", chunk=text("of an unknown attempt")),
        frame("start", turn=2, step=3),
        frame("chunk", chunk={"type": "block-start", "index": 0}),
        frame("chunk", chunk=text("a")),
        frame("end", outcome={"kind": "committed", "eventType": "assistant/attempt", "seq": 1}),
        frame("start", "a:2", turn=2, step=3),
        frame("chunk", "a:2", chunk=text("b")),
        frame("end", "a:2", outcome={"kind": "committed", "eventType": "assistant/message", "seq": 2}),
        frame("start", "a:3", turn=3, step=1),
        frame("end", "a:3", outcome={"kind": "abandoned"}),
        frame("news", "a:3"),
    )
    reset = StreamReset(2, 3)
    assert taken[1:] == [TextDelta(2, 3, "a"), reset, TextDelta(2, 3, "b"), StreamReset(3, 1)]


async def test_the_attempt_of_the_snapshot_goes_on() -> None:
    stream = [
        {"type": "chunk", "time": 1, "chunk": text("one ")},
        {"type": "reasoning-chunks", "time0": 1, "index": 0, "dt": [], "texts": ["thinking"]},
        {"type": "text-chunks", "time0": 1, "index": 1, "dt": [1], "texts": ["two ", "three"]},
        {"type": "chunk", "time": 1, "chunk": {"type": "block-end", "index": 1}},
    ]
    active = {"attemptId": "a:1", "startedAfterSeq": 1, "turn": 1, "step": 2, "nextIndex": 5, "stream": stream}
    taken = await followed(
        snapshot(assistantStream={"revision": 5, "activeAttempt": active}), frame("chunk", chunk=text(" four"))
    )
    first = taken[0]
    assert isinstance(first, Snapshot)
    assert first.partial == TextDelta(1, 2, "one two three")
    assert taken[1:] == [TextDelta(1, 2, " four")]


async def test_chunks_in_the_log_are_events_and_text() -> None:
    chunks = [
        text("a"),
        {"type": "finish", "reason": {"kind": "error"}},
        text("b"),
        {"type": "finish", "reason": {"kind": "stop"}},
        {"type": "finish"},
    ]
    values = [event(seq, "assistant/chunk", turn=1, step=1, chunk=chunk) for seq, chunk in enumerate(chunks)]
    taken = await followed(snapshot(), *values)
    assert seqs(taken) == [0, 1, 2, 3, 4]
    said = [item for item in taken if isinstance(item, TextDelta | StreamReset)]
    assert said == [TextDelta(1, 1, "a"), StreamReset(1, 1), TextDelta(1, 1, "b")]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ('{"type":"item","streamId":"s1","value":{"type":"event","event":{"type":"x","seq":"9"}}}', Malformed),
        ('{"type":"item","streamId":"s1","value":{"type":"event","event":{"type":"x","seq":9}}}', Unreachable),
        ('{"type":"item","streamId":"s1","value":5}', Malformed),
        ('{"type":"end","streamId":"s1"}', Unreachable),
        ('{"type":"error","streamId":"s1","error":{"code":"session/agent-busy","message":"x"}}', SessionBusy),
        ('{"type":"error","streamId":"s1"}', Malformed),
        ('{"type":"news","streamId":"s1"}', Malformed),
        ("{", Malformed),
        ("[]", Malformed),
    ],
)
async def test_what_ends_a_follow(sent: str, error: type[HarnessError]) -> None:
    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), snapshot(7))
        await wire.send("never-opened", {"type": "x"})
        await wire.socket.send_str(sent)
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client, client.follow(SESSION) as items:
        assert isinstance(await anext(aiter(items)), Snapshot)
        with pytest.raises(error):
            await anext(aiter(items))


async def test_a_binary_frame_is_ignored() -> None:
    async def talk(wire: Wire) -> None:
        stream = await wire.opened()
        await wire.socket.send_bytes(b"\x00")
        await wire.send(stream, snapshot(3))
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client, client.follow(SESSION) as items:
        assert isinstance(await anext(aiter(items)), Snapshot)


@pytest.mark.parametrize("record", [{"type": "event", "event": {"seq": 0}}, {"type": "news"}, 5])
async def test_a_snapshot_with_a_broken_record(record: object) -> None:
    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), snapshot(0, records=[record]))
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client:
        with pytest.raises(Malformed):
            async with client.follow(SESSION):
                pass


async def test_a_long_snapshot_lets_the_loop_breathe_and_is_whole() -> None:
    records = [{"type": "event", "event": {"type": "turn/start", "seq": n, "data": {"turn": n}}} for n in range(1000)]
    (first,) = await followed(snapshot(999, records=records))
    assert isinstance(first, Snapshot)
    assert len(first.page.events) == 1000


async def test_pings_are_answered_while_nobody_reads_the_stream() -> None:
    answered = asyncio.Event()

    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), snapshot(3), *(event(seq) for seq in range(4, 104)))
        await wire.socket.ping(b"still there?")
        message = await wire.socket.receive()
        assert (message.type, message.data) == (WSMsgType.PONG, b"still there?")
        answered.set()
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client, client.follow(SESSION):
        await answered.wait()


async def test_a_link_that_answers_no_ping_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_client.carrier.HEARTBEAT_SECONDS", 0.05)

    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), snapshot(3))
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client, client.follow(SESSION) as items:
        assert isinstance(await anext(aiter(items)), Snapshot)
        with pytest.raises(Unreachable):
            await anext(aiter(items))


async def test_a_message_over_the_cap_ends_the_link() -> None:
    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), snapshot(3))
        await wire.socket.send_str(" " * (33 * 2**20))
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client, client.follow(SESSION) as items:
        assert isinstance(await anext(aiter(items)), Snapshot)
        with pytest.raises(Unreachable):
            await anext(aiter(items))


async def test_a_feed_gives_everything_before_its_end_and_ends_once() -> None:
    feed: Feed[int] = Feed()
    feed.put(1, 1)
    feed.end(Unreachable("first"))
    feed.end(Malformed("second"))
    feed.put(2, 1)
    assert await anext(feed) == 1
    for _ in range(2):
        with pytest.raises(Unreachable, match="first"):
            await anext(feed)


@pytest.mark.parametrize(("items", "size"), [(ITEM_LIMIT, 1), (4, 8 * 2**20)])
async def test_a_feed_nobody_reads_is_bounded_and_ends(items: int, size: int) -> None:
    feed: Feed[int] = Feed()
    for item in range(items + 1):
        feed.put(item, size)
    with pytest.raises(Unreachable, match="slowly"):
        await anext(feed)


async def test_a_feed_that_is_read_takes_any_number() -> None:
    feed: Feed[int] = Feed()
    for item in range(ITEM_LIMIT * 2):
        feed.put(item, 8 * 2**20)
        assert await anext(feed) == item


def pushed(kind: str, **payload: object) -> str:
    return json.dumps({"rpcId": "x", "method": kind, "payload": {"type": kind, **payload}})


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (pushed("stream/error", error={"code": "agent-busy", "message": "x"}), SessionBusy),
        (pushed("stream/error"), Refused),
        ("{}", Malformed),
    ],
)
async def test_what_ends_the_legacy_sockets(sent: str, error: type[HarnessError]) -> None:
    async def push(wire: Wire) -> None:
        await wire.socket.send_str(sent)
        await wire.closed()

    for silent in ("events.mux", "events.host"):
        talks = {"events.mux": push, "events.host": push, silent: Wire.closed}
        async with raw_legacy_host(talks) as address, HarnessClient(address) as client, client.host_events() as events:
            with pytest.raises(error):
                await anext(aiter(events))

"""The modern socket: frames, streams, questions and approvals."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj, Tool, ask, question, say
from tests.fakes.harness.dialect import Flavour
from tests.fakes.harness.replay import recorded
from tests.fakes_selftest.shape import differences
from tests.fakes_selftest.sockets import mux
from tests.fakes_selftest.wire import wired

MODERN = Generation.MODERN
COLOR = question("color", "Which color?", "Red", "Blue", header="Color")


def _text(words: str) -> list[Obj]:
    return [{"type": "text", "text": words}]


@pytest.mark.parametrize(
    ("frame", "code"),
    [("garbage", 1008), ('{"type":"cancel"}', 1008), ('{"type":"end","streamId":"s","x":1}', 1008), (b"x", 1003)],
)
async def test_a_wrong_frame_ends_the_socket(frame: str | bytes, code: int) -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        await (m.socket.send_bytes(frame) if isinstance(frame, bytes) else m.socket.send_str(frame))
        message = await m.socket.receive(timeout=5)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, code)


@pytest.mark.parametrize(
    ("endpoint", "args", "code"),
    [
        ("session/list", {"_request": {}}, "gateway/signature-invalid"),
        ("nope/nope", {}, "gateway/invocation-unavailable"),
        ("session/follow", {}, "gateway/arguments-invalid"),
        ("session/follow", {"request": {}}, "gateway/input-invalid"),
        ("session/follow", {"request": {"address": {"kind": "session", "sessionId": "nope"}}}, "session/not-found"),
        ("$events", {"x": 1}, "gateway/arguments-invalid"),
    ],
)
async def test_a_stream_that_does_not_open(endpoint: str, args: Obj, code: str) -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        await m.open("s", endpoint, **args)
        frame = await m.frame()
        assert (frame["type"], frame["streamId"]) == ("error", "s")
        error = frame["error"]
        assert isinstance(error, dict)
        assert error["code"] == code


async def test_a_follower_that_comes_late_is_told_the_text_so_far() -> None:
    real = recorded(MODERN, "frames/follow-opened-mid-stream")
    assert isinstance(real, list)
    gate = asyncio.Event()
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        host.model.script(say("Hel", gate, "lo", reasoning=["hm"]))
        session = host.session("s1")
        session.prompt(_text("hi"), "r", "queue")
        await host.until(lambda: session.partial == "Hel")
        snapshot = await m.follow("f", "s1", assistantStream=True)
        assert not list(differences(real[0]["value"], snapshot))
        stream = snapshot["assistantStream"]
        assert isinstance(stream, dict)
        attempt = stream["activeAttempt"]
        assert [record.get("texts") for record in attempt["stream"]] == [None, ["hm"], None, None, ["Hel"]]
        gate.set()
        chunk = await m.until(type="assistant-stream")
        assert not list(differences(real[1]["value"], chunk))
        frame = chunk["frame"]
        assert isinstance(frame, dict)
        assert frame["index"] == attempt["nextIndex"]
        assert frame["revision"] == stream["revision"] + 1
        assert frame["chunk"]["text"] == "lo"
        last = {"kind": "committed", "eventType": "assistant/message", "seq": session.cursor - 2}
        while frame["type"] != "end":
            frame = (await m.until(type="assistant-stream"))["frame"]
            assert isinstance(frame, dict)
        await session.settle()
        assert frame["outcome"]["kind"] == last["kind"]
        assert session.log[frame["outcome"]["seq"]]["type"] == last["eventType"]


async def test_a_follower_gets_every_later_event_once() -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        session = host.session("s1")
        snapshot = await m.follow("f", "s1")
        assert "assistantStream" not in snapshot
        session.prompt(_text("hi"), "r", "queue")
        await session.settle()
        seqs = []
        while session.cursor not in seqs:
            event = (await m.until(type="event"))["event"]
            assert isinstance(event, dict)
            seqs.append(event["seq"])
        assert seqs == list(range(int(str(snapshot["cursor"])) + 1, session.cursor + 1))


async def test_a_cancelled_stream_falls_silent_and_others_go_on() -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        session = host.session("s1")
        await m.follow("f1", "s1")
        await m.follow("f2", "s1")
        await m.socket.send_json({"type": "cancel", "streamId": "f1"})
        await m.open("w", "workspace/follow")
        await m.frame()
        session.rename("title")
        assert (await m.frame())["streamId"] == "f2"


async def test_following_a_cold_session_wakes_it_and_is_a_write() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        session = host.session("s1")
        async with mux(host, wire) as m:
            await m.follow("f", "s1")
        assert host.writes == []
        await host.restart()
        async with mux(host, wire) as m:
            snapshot = await m.follow("f", "s1")
            assert snapshot["cursor"] == 2
            woken = (await m.until(type="event"))["event"]
            assert isinstance(woken, dict)
            assert (woken["type"], woken["seq"]) == ("session/end-seed", 3)
        assert [call.name for call in host.writes] == ["session/follow"]
        assert session.attached


async def _asked(host: FakeHarness, *tools: Tool) -> None:
    host.model.script(say("esc", tools=tools), "after")
    host.session("s1").prompt(_text("go"), "r", "queue")
    await host.until(lambda: bool(host.world.pending))


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ({"kind": "result", "value": {"answers": [{"id": "color", "selected": ["Green"]}]}}, "Green"),
        ({"kind": "rejected", "error": {"name": "UserQuestionError", "code": "ASK_CANCELLED"}}, "ASK_CANCELLED"),
        ({"kind": "next"}, "NO_PROVIDER"),
    ],
)
async def test_a_question(outcome: Obj, told: str) -> None:
    async with FakeHarness() as host, wired(host) as wire:
        await _asked(host, ask(COLOR))
        async with mux(host, wire) as m:
            await m.open("e", "$events")
            ready = await m.value()
            assert not list(differences(recorded(MODERN, "frames/events-ready"), {
                "type": "item", "streamId": "e", "value": ready,
            }))  # fmt: skip
            frame = await m.frame()
            assert not list(differences(recorded(MODERN, "frames/question-waterfall"), frame))
            value = frame["value"]
            assert isinstance(value, dict)
            args: Obj = {"clientId": ready["clientId"], "eventId": value["eventId"], "outcome": outcome}
            for _ in range(2):  # the second comes too late, and nobody says so
                result = (await wire.envelope("$events/result", {"args": args}))["result"]
                assert result == {"ok": True}
            await host.settle()
        result = next(event for event in host.session("s1").log if event["type"] == "tool/result")
        assert told in str(result["data"])


@pytest.mark.parametrize(
    ("outcome", "decided"),
    [
        ({"kind": "result", "value": "allowed-once"}, "allowed-once"),
        ({"kind": "result", "value": "rejected"}, "rejected"),
        ({"kind": "result", "value": "bogus"}, "unavailable"),
        ({"kind": "rejected", "error": {}}, "unavailable"),
        ({"kind": "next"}, "unavailable"),
    ],
)
async def test_an_approval(outcome: Obj, decided: str) -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        await m.open("e", "$events")
        ready = await m.value()
        await _asked(host, Tool("bash", approval="escalate"))
        asked = await m.until(type="waterfall")
        real = recorded(MODERN, "frames/approval-waterfall")
        assert isinstance(real, dict)
        assert not list(differences(real["value"], asked))
        args: Obj = {"clientId": ready["clientId"], "eventId": asked["eventId"], "outcome": outcome}
        assert (await wire.envelope("$events/result", {"args": args}))["result"] == {"ok": True}
        await host.settle()
        (decision,) = [event["data"] for event in host.session("s1").log if event["type"] == "approval/decided"]
        assert isinstance(decision, dict)
        assert decision["outcome"] == decided


async def test_everybody_but_the_one_who_answered_is_told_to_forget() -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as one, mux(host, wire) as two:
        await one.open("e", "$events")
        ready = await one.value()
        await two.open("e", "$events")
        await two.value()
        await _asked(host, ask(COLOR))
        asked = await one.until(type="waterfall")
        outcome: Obj = {"kind": "result", "value": {"answers": []}}
        args: Obj = {"clientId": ready["clientId"], "eventId": asked["eventId"], "outcome": outcome}
        await wire.envelope("$events/result", {"args": args})
        await two.until(type="cancel", eventId=asked["eventId"])
        await host.settle()
        host.session("s2")
        while (value := await one.value()).get("event") != "api-session/added" or value["args"] == []:
            assert value["type"] != "cancel"


@pytest.mark.parametrize("bad", [{"clientId": "nope"}, {"outcome": {"kind": "zzz"}}, {"outcome": None}])
async def test_a_wrong_result_is_refused(bad: Obj) -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        await m.open("e", "$events")
        ready = await m.value()
        args: Obj = {"clientId": ready["clientId"], "eventId": "x", "outcome": {"kind": "next"}, **bad}
        assert (await wire.error("$events/result", **args))["code"] == "gateway/internal"


async def test_the_control_stream_tells_of_every_queue() -> None:
    async with FakeHarness() as host, wired(host) as wire, mux(host, wire) as m:
        host.session("s1")
        await m.open("c", "session/control")
        baseline = (await m.value())["value"]
        assert isinstance(baseline, dict)
        assert baseline["projections"]["s1"]["asOfSeq"] == 2
        host.session("s1").prompt(_text("hi"), "r", "queue")
        queue = await m.until(type="projection", key="inbox")
        assert queue["seq"] == 3


@pytest.mark.parametrize("flavour", ["0.1.2", "0.1.5", "0.2"])
async def test_what_flavours_tell_of_a_streaming_step(flavour: Flavour) -> None:
    gate = asyncio.Event()
    async with FakeHarness(flavour=flavour) as host, wired(host) as wire:
        host.model.script(say("a", "b", "c", "d", gate))
        session = host.session("s1")
        session.prompt(_text("hi"), "r", "queue")
        await host.until(lambda: session.partial == "abcd")
        address = {"kind": "session", "sessionId": "s1"}
        page = await wire.call("session/page", address=address, throughSeq=session.cursor)
        rows = page["records"]
        assert isinstance(rows, list)
        packed = [row["event"] for row in rows if row["type"] == "chunks"]
        if flavour == "0.1.2":
            (run,) = packed
            assert run["type"] == "chunkrow/text-chunks"
            assert run["data"] == {"turn": 1, "step": 1, "index": 0, "dt": [1, 1, 1], "texts": ["a", "b", "c", "d"]}
            assert run["seq"] + 3 == session.cursor
        else:
            assert packed == []
            assert "abcd" not in str(rows)
        gate.set()
        await session.settle()


@pytest.mark.parametrize(("flavour", "status"), [("0.1.2", 404), ("0.1.5", 404), ("0.2", 200)])
async def test_only_the_newest_hosts_have_projections(flavour: Flavour, status: int) -> None:
    async with FakeHarness(flavour=flavour) as host, wired(host) as wire:
        host.session("s1")
        body: Obj = {"type": "client-request", "rpcId": "r", "method": "session/projections"}
        body["payload"] = {"args": {"request": {"sessionId": "s1"}}}
        async with wire.http.post(f"{host.base}/api/session/projections", json=body) as response:
            assert response.status == status
        address = {"kind": "session", "sessionId": "s1"}
        error = await wire.error("session/page", address=address, throughSeq=10**9)
        assert error["message"] == "session page through seq 1000000000 is past cursor 2"

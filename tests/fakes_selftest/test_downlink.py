"""Legacy sockets, questions and approvals."""

from __future__ import annotations

import aiohttp
import pytest

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj, Tool, ask, question, say
from tests.fakes.harness.replay import recorded
from tests.fakes_selftest.shape import differences
from tests.fakes_selftest.sockets import downlink
from tests.fakes_selftest.wire import Wire, wired

LEGACY = Generation.LEGACY
QUESTIONS = (
    question("color", "Which color?", "Red", "Blue", header="Color"),
    question("extras", "Which extras?", "A", "B", "C", multiple=True),
    question("free", "Any words?"),
)
GOOD = [
    {"id": "color", "selected": ["Red"]},
    {"id": "extras", "selected": ["A", "C"]},
    {"id": "free", "selected": [], "custom": "just words"},
]


def _text(words: str) -> list[Obj]:
    return [{"type": "text", "text": words}]


async def _respond(wire: Wire, rpc_id: object, result: Obj) -> Obj:
    body: Obj = {"type": "client-response", "rpcId": rpc_id, "result": result}
    async with wire.http.post(f"{wire.base}/api/respond", json=body) as response:
        assert response.status == 200
        receipt: Obj = await response.json()
    return receipt


def _answer(session: str, answers: object) -> Obj:
    return {"ok": True, "value": {"sessionId": session, "answer": {"answers": answers}}}


@pytest.mark.parametrize("name", ["events.mux", "events.host"])
async def test_whoever_sends_is_cut_off(name: str) -> None:
    async with FakeHarness(LEGACY) as host, wired(host) as wire, downlink(host, wire, name) as down:
        await down.socket.send_str("{}")
        message = await down.socket.receive(timeout=5)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1008)


async def test_frames_have_the_recorded_shape() -> None:
    real = recorded(LEGACY, "frames/one-of-each-kind-mux-and-host")
    assert isinstance(real, dict)
    async with FakeHarness(LEGACY) as host, wired(host) as wire, downlink(host, wire) as mux:
        async with downlink(host, wire, "events.host") as hosts:
            await host.until_called("events.host")
            session = host.session()
            session.prompt(_text("hi"), "r", "queue")
            frames = {f"mux {kind}": await mux.until(kind) for kind in ("session/event", "session/queue")}
            for kind in ("host/session-added", "host/session-status"):
                frames[f"host {kind}"] = await hosts.until(kind)
            frames["mux session/projection"] = await mux.until("session/projection")
        title = frames["mux session/projection"]["payload"]
        assert isinstance(title, dict)
        assert title.pop("value") == "hi"  # the recorded one is another projection
        real["mux session/projection"]["payload"].pop("value")
        for name, frame in frames.items():
            assert not list(differences(real[name], frame)), name


async def test_a_question_waits_for_somebody_and_takes_the_first_fitting_answer() -> None:
    async with FakeHarness(LEGACY) as host, wired(host) as wire:
        host.model.script(say("I need to ask.", tools=[ask(*QUESTIONS)]), "Thanks.")
        session = host.session("s1")
        session.prompt(_text("ask me"), "r", "queue")
        await host.until(lambda: bool(host.world.pending))
        async with downlink(host, wire) as first:
            asked = await first.until("question/requested", sessionId="s1")
        async with downlink(host, wire) as again:
            frame = await again.until("question/requested")
            assert frame["rpcId"] == asked["rpcId"]
            assert not list(differences(recorded(LEGACY, "frames/question-requested"), frame))
            for answers in (GOOD[:2], [*GOOD[1:], GOOD[0]], [{**GOOD[0], "selected": ["Green"]}, *GOOD[1:]],
                            [{**GOOD[0], "custom": "x"}, *GOOD[1:]]):  # fmt: skip
                receipt = await _respond(wire, frame["rpcId"], _answer("s1", answers))
                assert receipt == {"accepted": False, "reason": "bad-response"}
            assert await _respond(wire, frame["rpcId"], _answer("s1", GOOD)) == {"accepted": True}
            assert await _respond(wire, frame["rpcId"], _answer("s1", GOOD)) == {
                "accepted": False, "reason": "not-pending",
            }  # fmt: skip
            await again.until("question/resolved", questionRpcId=frame["rpcId"], outcome="answered")
        await host.settle()
        result = next(event for event in session.log if event["type"] == "tool/result")
        assert '"custom":"just words"' in str(result["data"])


async def test_a_declined_question_lets_the_turn_go_on() -> None:
    async with FakeHarness(LEGACY) as host, wired(host) as wire, downlink(host, wire) as mux:
        host.model.script(say(tools=[ask(*QUESTIONS)]), "You cancelled.")
        session = host.session()
        session.prompt(_text("ask me"), "r", "queue")
        frame = await mux.until("question/requested")
        error: Obj = {"code": "cancelled", "message": "no", "details": {}}
        assert await _respond(wire, frame["rpcId"], {"ok": False, "error": error}) == {"accepted": True}
        await mux.until("question/resolved", outcome="cancelled")
        await host.settle()
        result = next(event for event in session.log if event["type"] == "tool/result")
        assert isinstance(result["data"], dict)
        assert result["data"]["error"] == {"name": "UserQuestionError", "code": "ASK_CANCELLED"}


@pytest.mark.parametrize("outcome", ["allowed-once", "rejected"])
async def test_an_approval(outcome: str) -> None:
    async with FakeHarness(LEGACY) as host, wired(host) as wire, downlink(host, wire) as mux:
        host.model.script(say(tools=[Tool("bash", approval="escalate", result="written")]), "done")
        session = host.session("s1")
        session.prompt(_text("write"), "r", "queue")
        frame = await mux.until("approval/requested")
        assert not list(differences(recorded(LEGACY, "frames/approval-requested"), frame))
        payload = frame["payload"]
        assert isinstance(payload, dict)
        value: Obj = {"sessionId": "s1", "approvalId": payload["approvalId"]}
        bad = await _respond(wire, frame["rpcId"], {"ok": True, "value": {**value, "outcome": "always"}})
        assert bad == {"accepted": False, "reason": "bad-response"}
        assert (await _respond(wire, frame["rpcId"], {"ok": True, "value": {**value, "outcome": outcome}}))["accepted"]
        await mux.until("approval/resolved", approvalId=payload["approvalId"], outcome=outcome)
        await host.settle()
        result = next(event for event in session.log if event["type"] == "tool/result")
        assert ("written" in str(result["data"])) is (outcome == "allowed-once")


async def test_a_stop_settles_what_is_asked() -> None:
    async with FakeHarness(LEGACY) as host, wired(host) as wire, downlink(host, wire) as mux:
        host.model.script(say(tools=[Tool("bash", approval="escalate")]))
        host.session("s1").prompt(_text("write"), "r", "queue")
        await mux.until("approval/requested")
        await wire.call("session.cancel", sessionId="s1")
        await mux.until("approval/resolved", outcome="cancelled")
        await host.settle()
        kinds = [event["type"] for event in host.session("s1").log][-4:]
        assert kinds[:3] == ["approval/decided", "tool/result", "step/end"]


async def test_a_garbled_answer_is_no_answer() -> None:
    async with FakeHarness(LEGACY) as host, wired(host) as wire:
        assert await _respond(wire, "nope", _answer("s", [])) == {"accepted": False, "reason": "not-pending"}
        assert await _respond(wire, 7, {}) == {"accepted": False, "reason": "bad-response"}
        assert [call.name for call in host.writes] == ["respond", "respond"]

"""Queue, steer, stop, forks, crashes, and what counts as a write."""

from __future__ import annotations

import asyncio

import pytest

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj, Session, say
from tests.fakes.harness.dialect import DIALECTS, Flavour
from tests.fakes_selftest.wire import Wire, wired

FLAVOURS = list(DIALECTS)


def _host(flavour: Flavour) -> FakeHarness:
    return FakeHarness(DIALECTS[flavour].generation, flavour=flavour)


def _text(words: str) -> list[Obj]:
    return [{"type": "text", "text": words}]


def _types(session: Session, start: int = 0) -> list[object]:
    return [event["type"] for event in session.log][start:]


def _humans(session: Session) -> list[str]:
    """Return who said what, in order: the prompts and the answers."""
    out = []
    for event in session.log:
        data = event["data"]
        assert isinstance(data, dict)
        if event["type"] == "user/message" and data["source"]["kind"] == "user":
            out.append(data["content"][0]["text"])
        if event["type"] == "assistant/message":
            out.append("".join(block["text"] for block in data["message"]["content"] if block["type"] == "text"))
    return out


def _name(wire: Wire, method: str) -> str:
    return f"session/{method}" if wire.modern else f"session.{method}"


async def _fork(host: FakeHarness, wire: Wire, at: object) -> Session:
    forked = await wire.call(_name(wire, "fork"), sessionId="s1", atSeq=at)
    return host.world.sessions[str(forked["sessionId"])]


@pytest.mark.parametrize("flavour", FLAVOURS)
async def test_prompts_queue_and_steer(flavour: Flavour) -> None:
    gate = asyncio.Event()
    async with _host(flavour) as host, wired(host) as wire:
        host.model.script(say("one", gate), "steered")
        host.model.script("three")
        session = host.session("s1")
        more: Obj = {"requestId": "r"} if wire.modern else {}
        for words, mode in (("p1", "queue"), ("p3", "queue"), ("p2", "steer")):
            prompt = {"sessionId": "s1", "mode": mode, "content": _text(words), **more}
            assert await wire.call(_name(wire, "prompt"), **prompt) == {"accepted": True}
        gate.set()
        await session.settle()
        assert _humans(session) == ["p1", "one", "p2", "steered", "p3", "three"]
        assert session.turns == 2


@pytest.mark.parametrize("flavour", FLAVOURS)
async def test_a_stop_keeps_the_partial_text_and_parks_the_queue(flavour: Flavour) -> None:
    async with _host(flavour) as host, wired(host) as wire:
        host.model.script(say("par", "tial", asyncio.Event()))
        session = host.session("s1")
        for words in ("p1", "p2"):
            session.prompt(_text(words), words, "queue")
        await host.until(lambda: session.partial == "partial")
        assert await wire.call(_name(wire, "cancel"), sessionId="s1") == {"accepted": True}
        await session.settle()
        message = next(event["data"] for event in session.log if event["type"] == "assistant/message")
        assert isinstance(message, dict)
        assert message["interrupted"] is True
        assert _humans(session) == ["p1", "partial"]
        session.prompt(_text("p3"), "p3", "queue")
        await session.settle()
        assert _humans(session)[2:] == ["p2", "You said: p2", "p3", "You said: p3"]


async def test_a_stop_while_nothing_runs_is_accepted() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        host.session("s1")
        assert await wire.call("session/cancel", sessionId="s1") == {"accepted": True}


async def test_a_queued_prompt_may_be_removed() -> None:
    gate = asyncio.Event()
    async with FakeHarness() as host, wired(host) as wire:
        host.model.script(say("one", gate))
        session = host.session("s1")
        session.prompt(_text("p1"), "p1", "queue")
        await host.until(lambda: session.partial == "one")
        item = session.prompt(_text("p2"), "p2", "queue")
        action = {"kind": "remove"}
        assert await wire.call("session/updateQueue", sessionId="s1", itemId=item, action=action) == {"accepted": True}
        error = await wire.error("session/updateQueue", sessionId="s1", itemId=item, action=action)
        assert error["code"] == "session/queue-item-not-found"
        gate.set()
        await session.settle()
        assert _humans(session) == ["p1", "one"]


@pytest.mark.parametrize("flavour", FLAVOURS)
async def test_a_fork_at_a_turns_end_copies_the_turns_up_to_it(flavour: Flavour) -> None:
    async with _host(flavour) as host, wired(host) as wire:
        session = host.session("s1")
        session.dialogue(3)
        ends = [int(str(event["seq"])) for event in session.log if event["type"] == "turn/end"]
        child = host.world.sessions[
            str((await wire.call(_name(wire, "fork"), sessionId="s1", atSeq=ends[1]))["sessionId"])
        ]
        assert child.parent == "s1"
        assert child.log[ends[1]] == session.log[ends[1]]
        assert _types(child, ends[1] + 1) == (
            ["agent/inbox/spliced", "session/end-seed"] if flavour == "0.1.5" else ["session/end-seed"]
        )
        child.prompt(_text("more"), "r", "queue")
        await child.settle()
        again = ["u3", "You said: u3"] if flavour == "0.1.5" else []
        assert _humans(child) == ["u1", "a1", "u2", "a2", *again, "more", "You said: more"]


@pytest.mark.parametrize(("flavour", "humans"), [("0.1.0", ["u1", "a1"]), ("0.2", ["u1"])])
async def test_a_fork_inside_a_turn_is_cut_in_two_ways(flavour: Flavour, humans: list[str]) -> None:
    async with _host(flavour) as host, wired(host) as wire:
        session = host.session("s1")
        session.dialogue(1)
        at = next(event["seq"] for event in session.log if event["type"] == "user/message")
        child = await _fork(host, wire, at)
        assert _humans(child) == humans
        if flavour == "0.2":
            assert _types(child)[-3:] == ["session/end-seed", "step/end", "turn/end"]
            error = await wire.error("session/fork", sessionId="s1", atSeq=10**6)
            assert error["code"] == "session/fork-unavailable"


@pytest.mark.parametrize("flavour", FLAVOURS)
async def test_a_killed_host_comes_back_with_an_interrupted_turn_and_cold_sessions(flavour: Flavour) -> None:
    async with _host(flavour) as host, wired(host) as wire:
        session = host.session("s1")
        session.dialogue(1)
        host.model.script(say("lost", asyncio.Event()))
        session.prompt(_text("p"), "r", "queue")
        await host.until(lambda: session.partial == "lost")
        await host.restart()
        assert _types(session)[-2:] == ["step/end", "turn/end"]
        assert session.log[len(session.log) - 1]["data"] == {"turn": 2, "reason": {"kind": "interrupted"}}
        cursor = session.cursor
        if wire.modern:
            address = {"kind": "session", "sessionId": "s1"}
            await wire.call("session/page", address=address, throughSeq=cursor)
        else:
            await wire.call("session.history", sessionId="s1")
        (row,) = await _rows(wire)
        assert row["running"] is False
        projections = row["projections"]
        assert isinstance(projections, dict)
        assert projections["asOfSeq"] < cursor
        if flavour == "0.2":
            assert (row["agentAvailable"], projections["kind"]) == (False, "cached")
            exact = await wire.call("session/projections", sessionId="s1")
            assert exact["asOfSeq"] == cursor
        assert host.writes == []
        assert not session.attached
        error = await wire.error(_name(wire, "cancel"), sessionId="s1")
        assert "not attached" in str(error["message"])
        session.prompt(_text("again"), "r2", "queue")
        await session.settle()
        assert session.log[cursor + 1]["type"] == "session/end-seed"
        assert _humans(session)[-2:] == ["again", "You said: again"]


async def _rows(wire: Wire) -> list[Obj]:
    items = (await wire.call("session/list" if wire.modern else "session.list"))["items"]
    assert isinstance(items, list)
    return items


async def test_the_same_request_id_twice_makes_two_prompts() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        session = host.session("s1")
        for _ in range(2):
            await wire.call("session/prompt", requestId="r", sessionId="s1", mode="queue", content=_text("p"))
        await session.settle()
        assert _humans(session).count("p") == 2


@pytest.mark.parametrize("generation", Generation)
async def test_a_command_is_run_and_a_slash_in_a_prompt_is_text(generation: Generation) -> None:
    async with FakeHarness(generation) as host, wired(host) as wire:
        session = host.session("s1")
        session.dialogue(2)
        extra: Obj = {"submittedAttachments": []} if wire.modern else {"images": []}
        done = await wire.call("commands/execute", agentId="s1", line="/compact", **extra)
        assert isinstance(done["result"], dict)
        assert done["result"]["kind"] == "success"
        replaced = [event for event in session.log if isinstance(event.get("surfaceOp"), dict)]
        assert len(replaced) == 1
        keys = {"op", "startSeq", "endSeq"} if wire.modern else {"op", "start", "end"}
        surface = replaced[0]["surfaceOp"]
        assert isinstance(surface, dict)
        assert set(surface) == keys
        unknown = await wire.envelope(
            "commands/execute", wire.wrap("commands/execute", {"agentId": "s1", "line": "/nope", **extra})
        )
        assert unknown["result"] == {"ok": True}
        before = len(session.log)
        session.prompt(_text("/compact"), "r", "queue")
        await session.settle()
        assert "compaction/start" not in _types(session, before)


async def test_reads_leave_no_trace_and_everything_else_does() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        host.session("s1").dialogue(1)
        await host.restart()
        await wire.call("session/list")
        await wire.call("session/projections", sessionId="s1")
        await wire.call("session/page", address={"kind": "session", "sessionId": "s1"}, throughSeq=5)
        assert host.writes == []
        await wire.envelope("commands/list", {"args": {"agentId": "s1"}})  # wakes the session
        await wire.envelope("commands/list", {"args": {"agentId": "s1"}})
        await wire.call("session/rename", sessionId="s1", title="T")
        assert [call.name for call in host.writes] == ["commands/list", "session/rename"]
        assert host.calls[0].name == "login"


async def test_a_built_past_may_have_anything_in_it() -> None:
    async with FakeHarness() as host:
        session = host.session("s1")
        turn = session.start()
        session.user("u1", request="r1")
        session.inject("tool-jobs", "a job is done")
        session.assistant("a1", "a2", turn=turn)
        session.end("error")
        session.raw(type="made/up", seq=100, data={"x": 1})
        assert session.cursor == 100
        assert _types(session)[3:] == [
            "turn/start", "user/message", "user/message", "assistant/message", "turn/end", "made/up",
        ]  # fmt: skip

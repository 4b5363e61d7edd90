from __future__ import annotations

import asyncio
import json

import pytest

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj, Step, say
from tests.fakes_selftest.wire import wired

LATE = ("session/title", "session-log-deepseek/delivery-accepted")


def _events(page: Obj) -> list[Obj]:
    rows = page.get("events", page.get("records"))
    assert isinstance(rows, list)
    return [row["event"] for row in rows]


async def test_legacy_prompt_is_answered_and_lies_in_the_history() -> None:
    async with FakeHarness(Generation.LEGACY) as host, wired(host) as wire:
        host.model.script("Paris.")
        session = (await wire.call("session.create"))["sessionId"]
        prompt = {"sessionId": session, "mode": "queue", "content": [{"type": "text", "text": "What?"}]}
        await wire.envelope("session.prompt", prompt, "mine")
        await host.settle()
        events = _events(await wire.call("session.history", sessionId=session))
        assert [e["seq"] for e in events] == list(range(len(events)))
        said = [e for e in events if e["type"] == "user/message"]
        assert said[0]["data"] == {**said[0]["data"], "source": {"kind": "user", "rpcId": "mine"}}  # type: ignore[dict-item] # JSON
        assert events[-1]["type"] == "session/title"
        assert [call.name for call in host.writes] == ["session.create", "session.prompt"]


async def test_modern_follow_streams_text_and_events() -> None:
    gate = asyncio.Event()
    async with FakeHarness(flavour="0.2") as host, wired(host) as wire:
        host.model.script(say("Hel", gate, "lo"))
        session = (await wire.call("session/create"))["sessionId"]
        async with wire.http.ws_connect(f"{host.base}/api/remote.mux") as mux:
            address = {"kind": "session", "sessionId": session}
            args = {"args": {"request": {"address": address, "assistantStream": True}}}
            await mux.send_json({"type": "open", "streamId": "s", "endpoint": "session/follow", "payload": args})
            first = (await mux.receive_json())["value"]
            assert first["cursor"] == 2
            await wire.call(
                "session/prompt", requestId="r", sessionId=session, mode="queue",
                content=[{"type": "text", "text": "hi"}],
            )  # fmt: skip
            seen: list[str] = []
            while "Hel" not in seen:
                value = (await mux.receive_json())["value"]
                if value["type"] == "assistant-stream" and value["frame"]["type"] == "chunk":
                    seen.append(value["frame"]["chunk"].get("text", ""))
            gate.set()
            kinds: list[str] = []
            while "turn/end" not in kinds:
                value = (await mux.receive_json())["value"]
                if value["type"] == "event":
                    kinds.append(value["event"]["type"])
            assert kinds[-3:] == ["assistant/message", "step/end", "turn/end"], json.dumps(kinds)


async def test_cancel_parks_the_queue_until_the_next_prompt() -> None:
    gate = asyncio.Event()
    async with FakeHarness(flavour="0.2") as host, wired(host) as wire:
        host.model.script(say("part", gate))
        session = host.session("s1")
        session.prompt([{"type": "text", "text": "one"}], "r1", "queue")
        session.prompt([{"type": "text", "text": "two"}], "r2", "queue")
        await host.until(lambda: session.partial == "part")
        await wire.call("session/cancel", sessionId="s1")
        await host.settle()
        page = await wire.call(
            "session/page", address={"kind": "session", "sessionId": "s1"}, throughSeq=session.cursor
        )
        kinds = [e["type"] for e in _events(page) if e["type"] not in LATE]
        assert kinds[-3:] == ["assistant/message", "step/end", "turn/end"]
        assert len(session.queues["next-turn"]) == 1
        session.prompt([{"type": "text", "text": "three"}], "r3", "queue")
        await host.settle()
        assert session.turns == 3


async def test_a_failure_of_the_fake_itself_fails_the_test() -> None:
    def broken(_: str) -> tuple[Step, ...]:
        raise ZeroDivisionError

    async def scene() -> None:
        async with FakeHarness() as host:
            host.model.default = broken
            session = host.session()
            session.prompt([{"type": "text", "text": "hi"}], "r", "queue")
            await session.settle()

    with pytest.raises(BaseExceptionGroup, match="the fake host failed"):
        await scene()

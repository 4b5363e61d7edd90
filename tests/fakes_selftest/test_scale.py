"""What benchmarks lean on: huge logs cost what is read of them, and many sessions run side by side."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj
from tests.fakes_selftest.wire import wired


async def test_a_session_of_forty_thousand_messages_is_made_when_it_is_read() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        tracemalloc.start()
        session = host.session("big")
        session.dialogue(20_000)
        made = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert made < 1_000_000
        assert session.cursor == 20_000 * 8 + 2
        seen: list[str] = []
        before: Obj = {}
        for _ in range(3):
            page = await wire.call(
                "session/page", address={"kind": "session", "sessionId": "big"}, throughSeq=session.cursor,
                maxMessages=50, **before,
            )  # fmt: skip
            rows = page["records"]
            assert isinstance(rows, list)
            seen = [row["event"]["data"]["content"][0]["text"] for row in rows
                    if row["event"]["type"] == "user/message"] + seen  # fmt: skip
            before = {"beforeSeq": rows[0]["event"]["seq"]}
            assert page["hasMore"] is True
        assert seen == [f"u{k}" for k in range(20_000 - 74, 20_001)]


async def test_a_dialogue_goes_on_where_it_stopped() -> None:
    async with FakeHarness(Generation.LEGACY) as host:
        session = host.session("s")
        session.dialogue(2)
        session.prompt([{"type": "text", "text": "next"}], "r", "queue")
        await session.settle()
        session.dialogue(1)
        seqs = [event["seq"] for event in session.log]
        assert seqs == list(range(len(seqs)))
        ends = [event["data"] for event in session.log if event["type"] == "turn/end"]
        assert [end["turn"] for end in ends if isinstance(end, dict)] == [1, 2, 3, 4]


async def test_a_prebuilt_page_of_twenty_megabytes() -> None:
    rows = b",".join(b'{"type":"event","event":{"type":"x","seq":%d,"data":{"pad":"%s"}}}' % (seq, b"x" * 150)
                     for seq in range(100_000))  # fmt: skip
    async with FakeHarness() as host, wired(host) as wire:
        host.fail("session/page", value=b'{"records":[' + rows + b'],"hasMore":false}')
        body = {"type": "client-request", "rpcId": "r", "method": "session/page", "payload": {"args": {}}}
        async with wire.http.post(f"{host.base}/api/session/page", json=body) as response:
            whole = await response.read()
        assert len(whole) > 20_000_000
        assert len(json.loads(whole)["result"]["value"]["records"]) == 100_000


async def test_a_thousand_sessions_answer_at_once_each_its_own_prompt() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        host.model.title = ""

        async def one(k: int) -> None:
            session = str((await wire.call("session/create"))["sessionId"])
            await wire.call(
                "session/prompt", requestId=f"r{k}", sessionId=session, mode="queue",
                content=[{"type": "text", "text": f"p{k}"}],
            )  # fmt: skip
            await host.world.sessions[session].settle()
            message = next(e for e in host.world.sessions[session].log if e["type"] == "assistant/message")
            assert f"You said: p{k}" in str(message["data"])

        await asyncio.gather(*(one(k) for k in range(1000)))
        assert len(host.world.sessions) == 1000

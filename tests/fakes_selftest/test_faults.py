"""Every fault a test can ask for reaches a client over the socket."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from harness_client.types import Generation
from tests.fakes.harness import Cut, FakeHarness, How
from tests.fakes_selftest.wire import Wire, wired


def _page(session: str = "s1", through: int = 2) -> dict[str, object]:
    return {"address": {"kind": "session", "sessionId": session}, "throughSeq": through}


async def _raw(wire: Wire, method: str = "session/list") -> tuple[int, bytes, str]:
    body = {"type": "client-request", "rpcId": "r", "method": method, "payload": {"args": {"_request": {}}}}
    async with wire.http.post(f"{wire.base}/api/{method}", json=body) as response:
        return response.status, await response.read(), response.headers["Content-Type"]


CASES: list[tuple[How, tuple[int, bytes, str]]] = [
    ({"status": 401}, (401, b"unauthorized", "application/json")),
    ({"status": 500}, (500, b"handler failure: fake", "application/json")),
    ({"body": b"{"}, (200, b"{", "application/json")),
    ({"body": b"<html>", "content_type": "text/html"}, (200, b"<html>", "text/html")),
    (
        {"value": b"[1]"},
        (200, b'{"type":"server-response","rpcId":"r","result":{"ok":true,"value":[1]}}', "application/json"),
    ),
    (
        {"value": None},
        (200, b'{"type":"server-response","rpcId":"r","result":{"ok":true,"value":null}}', "application/json"),
    ),
    (
        {"error": {"code": "x"}},
        (200, b'{"type":"server-response","rpcId":"r","result":{"ok": false, "error": {"code": "x"}}}',
         "application/json"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("how", "expected"), CASES)
async def test_an_answer_of_the_faults_own(how: How, expected: tuple[int, bytes, str]) -> None:
    async with FakeHarness() as host, wired(host) as wire:
        host.fail("session/list", **how)
        assert await _raw(wire) == expected
        host.heal()
        assert (await _raw(wire))[0] == 200


async def test_only_some_calls_go_wrong() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        host.fail("session/list", status=500, after=1, times=2)
        assert [(await _raw(wire))[0] for _ in range(4)] == [200, 500, 500, 200]


@pytest.mark.parametrize("drop", ["before", "mid"])
async def test_a_reset(drop: str) -> None:
    async with FakeHarness() as host, wired(host) as wire:
        if drop == "before":
            host.fail("session/list", drop="before")
        else:
            host.fail("session/list", drop="mid", body=b"x" * 100_000)
        with pytest.raises(aiohttp.ClientError):
            await _raw(wire)


async def test_a_lost_answer_is_not_a_lost_request() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        host.fail("session/create", drop="before", effect=True, times=1)
        host.fail("session/create", drop="before", times=1)
        for _ in range(2):
            with pytest.raises(aiohttp.ClientError):
                await wire.call("session/create")
        assert len(host.world.sessions) == 1
        assert len(host.writes) == 2


async def test_an_answer_that_is_held_back_until_an_event() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        gate = asyncio.Event()
        host.fail("session/list", delay=gate, times=1)
        held = asyncio.create_task(_raw(wire))
        await host.until_called("session/list")
        assert not held.done()
        gate.set()
        assert (await held)[0] == 200


async def test_a_body_that_stops_after_its_first_piece() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        gate = asyncio.Event()
        host.fail("session/list", drip=gate, drip_bytes=5)
        async with wire.http.post(
            f"{wire.base}/api/session/list",
            json={"type": "client-request", "rpcId": "r", "method": "session/list", "payload": {"args": {}}},
        ) as response:
            assert await response.content.readexactly(5) == b'{"typ'
            rest = asyncio.create_task(response.content.read())
            await asyncio.sleep(0)
            assert not rest.done()
            gate.set()
            assert (await rest).startswith(b"e")


async def test_a_cut_ends_sockets_and_a_refused_socket_stays_closed() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        async with wire.http.ws_connect(f"{host.base}/api/remote.mux") as mux:
            await mux.send_json({"type": "open", "streamId": "s", "endpoint": "$events", "payload": {"args": {}}})
            await mux.receive_json()
            host.cut()
            assert (await mux.receive()).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
        host.fail("remote.mux", status=401)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await wire.http.ws_connect(f"{host.base}/api/remote.mux")


@pytest.mark.parametrize("generation", Generation)
async def test_scripted_pages_come_in_turn_whatever_is_asked(generation: Generation) -> None:
    async with FakeHarness(generation) as host, wired(host) as wire:
        session = host.session("s1")
        first, second = {"type": "x", "seq": 50}, {"type": "y", "seq": 50, "other": True}
        session.script_pages(Cut([first], has_more=True), Cut([second], has_more=True))
        seen = []
        for _ in range(3):
            if wire.modern:
                rows = (await wire.call("session/page", **_page(through=50)))["records"]
            else:
                rows = (await wire.call("session.history", sessionId="s1"))["events"]
            assert isinstance(rows, list)
            seen.append(rows[0]["event"])
        assert seen == [first, second, second]


@pytest.mark.parametrize("seq", [-1, 1.5, "1", True, None])
async def test_events_may_carry_any_seq(seq: object) -> None:
    async with FakeHarness() as host, wired(host) as wire:
        session = host.session("s1")
        session.script_pages(Cut([{"type": "user/message", "seq": seq}], has_more=False))
        page = await wire.call("session/page", **_page(through=0))
        assert json.dumps(page["records"]) == json.dumps(
            [{"type": "event", "event": {"type": "user/message", "seq": seq}}]
        )

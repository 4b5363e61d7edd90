"""Recorded pages come back byte for byte: the fake cuts pages where the real hosts do."""

from __future__ import annotations

import json

import pytest

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness
from tests.fakes.harness.replay import ReplayHost, load, names, pages, recorded
from tests.fakes_selftest.wire import wired

LEGACY, MODERN = Generation.LEGACY, Generation.MODERN


@pytest.mark.parametrize("name", names(LEGACY))
async def test_legacy_pages_are_cut_as_recorded(name: str) -> None:
    async with FakeHarness(LEGACY) as host, wired(host) as wire:
        load(host, name)
        before: dict[str, int] = {}
        for page in pages(LEGACY, name):
            rows = page["events"]
            assert isinstance(rows, list)
            got = await wire.call("session.history", sessionId=name, **before)
            assert got["events"] == rows
            assert got["hasMore"] is page["hasMore"]
            assert ("projections" in got) is ("projections" in page)
            before = {"beforeSeq": rows[0]["event"]["seq"]}
        assert host.writes == []


@pytest.mark.parametrize("name", [name for name in names(MODERN) if name != "08-long-session"])
async def test_modern_pages_are_cut_as_recorded(name: str) -> None:
    async with FakeHarness(MODERN) as host, wired(host) as wire:
        session = load(host, name)
        (page,) = pages(MODERN, name)
        address = {"kind": "session", "sessionId": name}
        assert await wire.call("session/page", address=address, throughSeq=session.cursor) == page


async def test_the_replay_host_plays_recorded_frames() -> None:
    host = ReplayHost()
    host.play("session-queue")
    async with host, wired(host) as wire, wire.http.ws_connect(f"{host.base}/api/events.mux") as mux:
        assert json.loads(await mux.receive_str()) == recorded(LEGACY, "frames/session-queue")

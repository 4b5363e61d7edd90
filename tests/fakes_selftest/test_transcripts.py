"""Every recorded request of a real host, put to the fake: same status, same code, same keys and types."""

from __future__ import annotations

import json

import pytest

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj
from tests.fakes.harness.replay import recorded
from tests.fakes_selftest.shape import differences
from tests.fakes_selftest.wire import Wire, wired

NEED_A_QUEUE = ("updateQueue edit", "updateQueue remove", "updateQueue steer")
STREAMS = ("workspace/follow first", "follow unknown")
KNOWN = {
    "attachment": "the image was sent in another session",
    "commands/execute unknown agent": "recorded without its request",
}


def _transcript(generation: Generation) -> dict[str, Obj]:
    value = recorded(generation, "rpc-transcript")
    assert isinstance(value, dict)
    return {name: entry for name, entry in value.items() if isinstance(entry, dict)}


def _request(generation: Generation, name: str, entry: Obj) -> tuple[str, object]:
    if generation is Generation.MODERN:
        return str(entry["endpoint"] if "endpoint" in entry else entry["method"]), (
            {"args": entry["args"]} if "args" in entry else entry["payload"]
        )
    return str(entry.get("method", name.partition(" ")[0])), entry["payload"]


def _learn(real: object, fake: object, ids: dict[str, str]) -> None:
    """Remember which id of the fake stands for which recorded one."""
    if isinstance(real, dict) and isinstance(fake, dict):
        for key in real.keys() & fake.keys():
            if key in ("sessionId", "workspaceId") and isinstance(real[key], str):
                ids.setdefault(real[key], fake[key])
            _learn(real[key], fake[key], ids)


async def _post(wire: Wire, method: str, payload: object) -> tuple[int, object]:
    body: Obj = {"type": "client-request", "rpcId": "r", "method": method, "payload": payload}
    async with wire.http.post(f"{wire.base}/api/{method}", json=body) as response:
        text = await response.text()
        return response.status, json.loads(text) if response.status == 200 else text


@pytest.mark.parametrize("generation", Generation)
async def test_recorded_requests_are_answered_alike(generation: Generation) -> None:
    wrong: list[str] = []
    ids: dict[str, str] = {}
    asked = 0
    host = FakeHarness(generation)
    if generation is Generation.LEGACY:  # the recording begins with a workspace and a session that were there
        host.world.create_workspace("/home/dev/ws/projA")
        host.session("session-before")
    else:
        host.session("session-before")
    async with host, wired(host) as wire:
        for name, entry in _transcript(generation).items():
            if name.startswith("carrier") or name in (*NEED_A_QUEUE, *STREAMS, *KNOWN):
                continue
            method, payload = _request(generation, name, entry)
            encoded = json.dumps(payload)
            for real_id, fake_id in ids.items():
                encoded = encoded.replace(real_id, fake_id)
            status, body = await _post(wire, method, json.loads(encoded))
            await host.settle()
            asked += 1
            wrong += [f"{name}: status {status}"] * (status != entry["status"])
            if status == 200:
                assert isinstance(body, dict)
                real = entry["body"]
                assert isinstance(real, dict)
                _learn(real["result"], body["result"], ids)
                wrong += [f"{name}: {difference}" for difference in differences(real["result"], body["result"])]
                codes = [result.get("error", {}).get("code") for result in (real["result"], body["result"])]
                wrong += [f"{name}: code {codes[1]} instead of {codes[0]}"] * (codes[0] != codes[1])
    assert asked > 70
    assert not wrong, "\n".join(wrong)

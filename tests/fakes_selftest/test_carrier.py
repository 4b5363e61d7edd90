"""The carrier's own answers, as recorded: status, content type, body."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aiohttp
import pytest

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj
from tests.fakes.harness.replay import recorded
from tests.fakes_selftest.wire import wired

LEGACY, MODERN = Generation.LEGACY, Generation.MODERN
JSON = {"Content-Type": "application/json"}
LIST = {LEGACY: "session.list", MODERN: "session/list"}


def _envelope(method: str, payload: object, **more: object) -> Obj:
    return {"type": "client-request", "rpcId": "x1", "method": method, "payload": payload, **more}


def _good(generation: Generation, method: str | None = None) -> bytes:
    payload: Obj = {} if generation is LEGACY else {"args": {"_request": {}}}
    return json.dumps(_envelope(method or LIST[generation], payload)).encode()


def _bodies(generation: Generation) -> dict[str, bytes]:
    """Return the body behind each recorded case; any other case had a good one."""
    good = json.loads(_good(generation))
    described = json.dumps(_envelope("host.describe", {})).encode()
    return {
        "not json": b"{nope",
        "not json body": b"{nope",
        "empty object": b"{}",
        "array body": b"[]",
        "no rpcId": json.dumps({k: v for k, v in good.items() if k != "rpcId"}).encode(),
        "numeric rpcId": json.dumps({**good, "rpcId": 7}).encode(),
        "no payload": json.dumps({**{k: v for k, v in good.items() if k != "payload"}, "rpcId": "x"}).encode(),
        "wrong type": json.dumps({**good, "type": "zzz", "rpcId": "x"}).encode(),
        "method mismatch": _good(generation, "session.create" if generation is LEGACY else "session/create"),
        "payload without args": json.dumps(_envelope(LIST[generation], {})).encode(),
        "payload extra": json.dumps(_envelope(LIST[generation], {"args": {"_request": {}}, "x": 1})).encode(),
        "respond garbage": b'{"type":"zzz"}',
        **(dict.fromkeys(("same origin", "host localhost"), described) if generation is LEGACY else {}),
    }


def _headers(case: str, port: int) -> Mapping[str, str]:
    return {
        "text/plain": {"Content-Type": "text/plain"},
        "no content type": {},
        "json;charset": {"Content-Type": "application/json; charset=utf-8"},
        "foreign origin": {**JSON, "Origin": "http://evil.example"},
        "null origin": {**JSON, "Origin": "null"},
        "localhost origin other port": {**JSON, "Origin": "http://localhost:1"},
        "same origin": {**JSON, "Origin": f"http://127.0.0.1:{port}"},
        "foreign host": {**JSON, "Host": "evil.example"},
        "host localhost": {**JSON, "Host": f"localhost:{port}"},
        "host localhost (other authority)": {**JSON, "Host": f"localhost:{port}"},
        "sec-fetch cross-site": {**JSON, "Sec-Fetch-Site": "cross-site"},
    }.get(case, JSON)


def _cases(generation: Generation) -> list[str]:
    transcript = recorded(generation, "rpc-transcript")
    assert isinstance(transcript, dict)
    cases = [name.removeprefix("carrier ") for name in transcript if name.startswith("carrier ")]
    other = ("export", "connect", "HEAD", "no cookie", "bearer", "bad token", "token in query")
    return [case for case in cases if not case.startswith(other)]


CASES = [(generation, case) for generation in Generation for case in _cases(generation)]


@pytest.mark.parametrize(("generation", "case"), CASES)
async def test_the_carrier_answers_as_recorded(generation: Generation, case: str) -> None:
    transcript = recorded(generation, "rpc-transcript")
    assert isinstance(transcript, dict)
    real = transcript[f"carrier {case}"]
    async with FakeHarness(generation) as host, wired(host) as wire:
        body = _bodies(generation).get(case, _good(generation)) if real["method"] == "POST" else None
        async with wire.http.request(
            real["method"], host.base + real["url"], data=body, headers=_headers(case, host.port),
            skip_auto_headers=("Content-Type",),
        ) as response:  # fmt: skip
            text = await response.text()
        assert response.status == real["status"]
        recorded_type = real["headers"].get("Content-Type")
        assert response.headers.get("Content-Type") == recorded_type
        assert response.headers.get("Keep-Alive") == real["headers"].get("Keep-Alive")
        if recorded_type == "application/json":
            # the recording is cut after 400 characters
            start = json.loads(text)
            assert "rpcId" not in start or f'"rpcId":"{start["rpcId"]}"' in real["body"]
            assert ('"ok":true' in text) is ('"ok":true' in real["body"])
        elif "html" not in (recorded_type or ""):
            assert text == real["body"]


@pytest.mark.parametrize("url", ["/", "/?token=zzz"])
async def test_a_modern_host_without_login_shows_nothing(url: str) -> None:
    async with FakeHarness() as host, aiohttp.ClientSession() as http, http.get(host.base + url) as response:
        assert response.status == 401
        assert "authentication required" in await response.text()


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer x"}])
async def test_only_the_cookie_opens_the_api(headers: dict[str, str]) -> None:
    async with FakeHarness() as host, aiohttp.ClientSession() as http:
        url = f"{host.base}/api/session/list?token={host.login.token}"
        async with http.post(url, data=_good(MODERN), headers={**JSON, **headers}) as response:
            assert (response.status, await response.text()) == (401, "unauthorized")
        async with http.get(f"{host.base}/api/remote.mux") as response:
            assert response.status == 401
    assert host.calls == []


async def test_a_token_is_worth_a_cookie_that_outlives_a_restart_but_not_its_secret() -> None:
    async with FakeHarness() as host, wired(host) as wire:
        old, port = host.url, host.port
        await host.restart()
        assert host.port == port
        assert host.url != old
        assert await wire.call("session/list") == {"items": []}
        async with wire.http.get(old, allow_redirects=False) as response:
            assert response.status == 401
        host.login.expire()
        async with wire.http.post(f"{host.base}/api/session/list", data=_good(MODERN), headers=JSON) as response:
            assert response.status == 401


async def test_modern_answers_are_gzipped_and_legacy_ones_are_not() -> None:
    for generation, encoding in ((MODERN, "gzip"), (LEGACY, None)):
        async with FakeHarness(generation) as host, wired(host) as wire:
            url = f"{host.base}/api/{LIST[generation]}"
            async with wire.http.post(url, data=_good(generation), headers=JSON) as response:
                assert response.headers.get("Content-Encoding") == encoding
                assert response.headers["Transfer-Encoding"] == "chunked"

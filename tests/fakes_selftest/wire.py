"""A bare client that speaks either protocol and checks nothing: what a test of the fake talks to it with."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from harness_client.types import Generation
from tests.fakes.harness import FakeHarness, Obj

_ids = itertools.count(1)


class Wire:
    """Raw calls to one host; answers are the parsed envelopes."""

    def __init__(self, http: aiohttp.ClientSession, base: str, *, modern: bool) -> None:
        self.http, self.base, self.modern = http, base, modern

    async def login(self, url: str) -> None:
        async with self.http.get(url, allow_redirects=False) as response:
            assert response.status == 303, response.status

    async def envelope(self, method: str, payload: object, rpc_id: str | None = None) -> Obj:
        rpc_id = rpc_id or f"rpc-{next(_ids)}"
        body: Obj = {"type": "client-request", "rpcId": rpc_id, "method": method, "payload": payload}
        async with self.http.post(f"{self.base}/api/{method}", json=body) as response:
            assert response.status == 200, response.status
            answer: Obj = await response.json(content_type=None)
        return answer

    async def call(self, method: str, **fields: object) -> Obj:
        """Call a method, wrapped as the generation wants it; return the value, which must be an object."""
        result = (await self.envelope(method, self.wrap(method, fields)))["result"]
        assert isinstance(result, dict)
        assert result["ok"], result
        value = result["value"]
        assert isinstance(value, dict)
        return value

    async def error(self, method: str, **fields: object) -> Obj:
        """Call a method that must be refused; return the error."""
        result = (await self.envelope(method, self.wrap(method, fields)))["result"]
        assert isinstance(result, dict)
        assert not result["ok"], result
        error = result["error"]
        assert isinstance(error, dict)
        return error

    def wrap(self, method: str, fields: Obj) -> Obj:
        if not self.modern:
            return {"args": fields} if "/" in method else fields
        key = "_request" if method == "session/list" else "request"
        bare = method.startswith(("commands/", "agentPresets/", "$events", "session/modelCatalog"))
        return {"args": fields if bare else {key: fields}}


@asynccontextmanager
async def wired(host: FakeHarness) -> AsyncIterator[Wire]:
    """A logged-in client of the host."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        wire = Wire(http, host.base, modern=host.dialect.generation is Generation.MODERN)
        if wire.modern:
            await wire.login(host.url)
        yield wire

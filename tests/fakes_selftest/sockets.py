"""Reading the sockets of either generation in tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.fakes.harness import FakeHarness, Obj
from tests.fakes_selftest.wire import Wire


class Mux:
    """A modern socket: open streams, read their frames."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def open(self, stream: str, endpoint: str, **args: object) -> None:
        frame = {"type": "open", "streamId": stream, "endpoint": endpoint, "payload": {"args": args}}
        await self.socket.send_json(frame)

    async def follow(self, stream: str, session: str, **more: object) -> Obj:
        """Follow a session; return the snapshot."""
        address = {"kind": "session", "sessionId": session}
        await self.open(stream, "session/follow", request={"address": address, **more})
        return await self.value()

    async def frame(self) -> Obj:
        frame: Obj = await self.socket.receive_json(timeout=5)
        return frame

    async def value(self) -> Obj:
        frame = await self.frame()
        value = frame["value"]
        assert isinstance(value, dict)
        return value

    async def until(self, **wanted: object) -> Obj:
        """Read values until one has these fields; return it."""
        while True:
            value = await self.value()
            if all(value.get(key) == wanted[key] for key in wanted):
                return value


@asynccontextmanager
async def mux(host: FakeHarness, wire: Wire) -> AsyncIterator[Mux]:
    async with wire.http.ws_connect(f"{host.base}/api/remote.mux", max_msg_size=0) as socket:
        yield Mux(socket)


class Down:
    """A legacy socket: read only."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def until(self, kind: str, **wanted: object) -> Obj:
        """Read frames until one of this kind has these fields in its payload; return the whole frame."""
        while True:
            frame: Obj = await self.socket.receive_json(timeout=5)
            payload = frame["payload"]
            assert isinstance(payload, dict)
            assert payload["type"] == frame["method"]
            if frame["method"] == kind and all(payload.get(key) == wanted[key] for key in wanted):
                return frame


@asynccontextmanager
async def downlink(host: FakeHarness, wire: Wire, name: str = "events.mux") -> AsyncIterator[Down]:
    async with wire.http.ws_connect(f"{host.base}/api/{name}", max_msg_size=0) as socket:
        yield Down(socket)

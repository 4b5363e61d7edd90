"""Hosts of which a test writes the sockets itself, frame by frame."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import WSMsgType, web

from harness_client.client import Address

Talk = Callable[["Wire"], Awaitable[None]]


class Wire:
    """The host's end of the socket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket

    async def opened(self) -> str:
        """Wait for the next stream the client opens; return its id."""
        while True:
            frame = json.loads(await self.socket.receive_str())
            if frame["type"] == "open":
                return str(frame["streamId"])

    async def send(self, stream: str, *values: object) -> None:
        """Send items on a stream."""
        for value in values:
            await self.socket.send_str(json.dumps({"type": "item", "streamId": stream, "value": value}))

    async def closed(self) -> None:
        """Wait until the client closes."""
        while (await self.socket.receive()).type not in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED):
            pass


@asynccontextmanager
async def raw_host(talk: Talk, results: list[object] | None = None) -> AsyncIterator[Address]:
    """Serve ``talk`` on ``remote.mux``; what is posted to ``$events/result`` lands in ``results``."""

    async def index(_: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": "./"})
        response.set_cookie("dsh-auth-fake", "v1.fake", path="/")
        return response

    async def post(request: web.Request) -> web.Response:
        if "dsh-auth-fake" not in request.cookies:
            return web.Response(status=401, text="unauthorized")
        body = await request.json()
        if body["method"] == "$events/result" and results is not None:
            results.append(body["payload"]["args"])
        return _done(body)

    app = web.Application()
    app.router.add_get("/", index)
    app.router.add_get("/api/remote.mux", _socket(talk))
    app.router.add_post("/api/{method:.+}", post)
    async with _serve(app) as base:
        yield Address(base, "fake-token")


@asynccontextmanager
async def raw_legacy_host(talks: Mapping[str, Talk]) -> AsyncIterator[Address]:
    """Serve each talk on the legacy socket it is named after."""

    async def post(request: web.Request) -> web.Response:
        return _done(await request.json())

    app = web.Application()
    for name, talk in talks.items():
        app.router.add_get(f"/api/{name}", _socket(talk))
    app.router.add_post("/api/{method:.+}", post)
    async with _serve(app) as base:
        yield Address(base)


def _done(request: dict[str, object]) -> web.Response:
    return web.json_response({"type": "server-response", "rpcId": request["rpcId"], "result": {"ok": True}})


def _socket(talk: Talk) -> Callable[[web.Request], Awaitable[web.WebSocketResponse]]:
    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False, max_msg_size=0)
        await socket.prepare(request)
        await talk(Wire(socket))
        return socket

    return serve


@asynccontextmanager
async def _serve(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()

"""A modern host of which a test writes the socket itself, frame by frame."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
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
        while (await self.socket.receive()).type is not WSMsgType.CLOSE:
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
        return web.json_response({"type": "server-response", "rpcId": body["rpcId"], "result": {"ok": True}})

    async def mux(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False, max_msg_size=0)
        await socket.prepare(request)
        await talk(Wire(socket))
        return socket

    app = web.Application()
    app.router.add_get("/", index)
    app.router.add_get("/api/remote.mux", mux)
    app.router.add_post("/api/{method:.+}", post)
    runner = web.AppRunner(app, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield Address(f"http://127.0.0.1:{runner.addresses[0][1]}", "fake-token")
    finally:
        await runner.cleanup()

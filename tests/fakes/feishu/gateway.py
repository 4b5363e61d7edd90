"""The long connection: discovery, handshake, pings, and events that come again until they are acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections import deque
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.fakes.feishu.frame import CONTROL, DATA, Frame

PING_SECONDS = 120


@dataclass(slots=True)
class Delivery:
    """An event on its way, by the id that its acknowledgement repeats."""

    id: str
    payload: bytes
    parts: int = 1
    code: int | None = None
    """What the client answered: 200 when it took the event; None before it did."""
    acknowledged: asyncio.Event = field(default_factory=asyncio.Event)

    def frames(self) -> list[Frame]:
        size = -(-len(self.payload) // self.parts)
        common = {"type": "event", "message_id": self.id, "sum": str(self.parts), "trace_id": "trace"}
        return [
            Frame(DATA, {**common, "seq": str(number)}, self.payload[number * size : (number + 1) * size])
            for number in range(self.parts)
        ]


class Gateway:
    """All long connections of one app."""

    def __init__(self, violations: list[str]) -> None:
        self.violations = violations
        self.sockets: list[web.WebSocketResponse] = []
        self.tickets: set[str] = set()
        self.handshakes = 0
        self.pings = 0
        self.deaf = False
        """No ping is answered."""
        self.pulse: float | None = None
        """Seconds between pongs to no ping, for a client that keeps another time; none of them as a rule."""
        self.refusals: deque[dict[str, str]] = deque()
        """Headers of the next refused handshakes."""
        self.pong: bytes = json.dumps({"PingInterval": PING_SECONDS}).encode()
        self.pending: dict[str, Delivery] = {}
        self._transports: dict[web.WebSocketResponse, asyncio.Transport] = {}
        self._numbers = itertools.count(1)

    def discovered(self, base: str) -> dict[str, object]:
        """Return where to connect, with a ticket that is good for one connection."""
        number = next(self._numbers)
        ticket = f"ticket-{number}-fake"
        self.tickets.add(ticket)
        url = f"{base.replace('http', 'ws', 1)}/ws?device_id=device-{number}&service_id=1&ticket={ticket}"
        pace = {"ReconnectCount": -1, "ReconnectInterval": 120, "ReconnectNonce": 30, "PingInterval": PING_SECONDS}
        return {"URL": url, "ClientConfig": pace}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.handshakes += 1
        ticket = request.query.get("ticket", "")
        if self.refusals or ticket not in self.tickets:
            failed = {"Handshake-Status": "514", "Handshake-Msg": "ticket", "Handshake-Autherrcode": "1000040343"}
            return web.Response(status=401, headers=self.refusals.popleft() if self.refusals else failed)
        self.tickets.discard(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        assert request.transport is not None
        self._transports[socket] = request.transport
        beating = asyncio.create_task(self._beat(socket))
        try:
            for delivery in list(self.pending.values()):
                await self._push(socket, delivery)
            async for data in socket:
                if data.type is WSMsgType.BINARY:
                    await self._hear(socket, Frame.decode(data.data))
        finally:
            beating.cancel()
            self.sockets.remove(socket)
            del self._transports[socket]
        return socket

    async def deliver(self, payload: bytes, *, parts: int = 1) -> Delivery:
        """Push an event to one connection; without any it comes with the next one."""
        delivery = Delivery(f"push-{next(self._numbers)}", payload, parts)
        self.pending[delivery.id] = delivery
        if self.sockets:
            await self._push(self.sockets[-1], delivery)
        return delivery

    async def again(self) -> None:
        """Push what was not taken once more, as the platform does after 15 seconds."""
        for delivery in list(self.pending.values()):
            delivery.code = None
            delivery.acknowledged.clear()
            await self._push(self.sockets[-1], delivery)

    async def close(self) -> None:
        """Close every connection in order."""
        for socket in list(self.sockets):
            await socket.close()

    def cut(self) -> None:
        """Reset every connection."""
        for transport in self._transports.values():
            transport.abort()

    async def _beat(self, socket: web.WebSocketResponse) -> None:
        while self.pulse is not None and not socket.closed:
            await asyncio.sleep(self.pulse)
            with contextlib.suppress(ConnectionError):
                await socket.send_bytes(Frame(CONTROL, {"type": "pong"}, self.pong).encode())

    async def _push(self, socket: web.WebSocketResponse, delivery: Delivery) -> None:
        for frame in delivery.frames():
            await socket.send_bytes(frame.encode())

    async def _hear(self, socket: web.WebSocketResponse, frame: Frame) -> None:
        if frame.method == CONTROL:
            self.pings += frame.headers["type"] == "ping"
            if not self.deaf:
                await socket.send_bytes(Frame(CONTROL, {"type": "pong"}, self.pong).encode())
            return
        delivery = self.pending.get(frame.headers["message_id"])
        if delivery is None:
            return
        if not frame.headers.get("biz_rt", "").isdecimal():
            self.violations.append("an acknowledgement that does not say how long it took")
        delivery.code = json.loads(frame.payload)["code"]
        if delivery.code == 200:
            del self.pending[delivery.id]
        delivery.acknowledged.set()

"""The stream: tickets that are good once, frames of three kinds, and a note of what was acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from typing import TypeAlias

from aiohttp import WSMsgType, web

Obj: TypeAlias = dict[str, "object"]

TOPIC = "/v1.0/im/bot/messages/get"


class Gateway:
    """Sends frames to the newest connection, or keeps them until there is one."""

    def __init__(self, violations: list[str]) -> None:
        self.connections = 0
        self.acknowledged: list[Obj] = []
        self.statuses: deque[int] = deque()
        """HTTP statuses for the next connections."""
        self.dead = False
        """Whether pings on the WebSocket stay without an answer."""
        self._violations = violations
        self.tickets: set[str] = set()
        self._ids = itertools.count(1)
        self._sent: dict[str, Obj] = {}
        self._waiting: list[Obj] = []
        self._live: web.WebSocketResponse | None = None
        self._changed = asyncio.Condition()
        self._pong = asyncio.Event()

    def ticket(self) -> str:
        """Return a ticket for one connection."""
        ticket = f"5f3c9a20-{next(self._ids)}"
        self.tickets.add(ticket)
        return ticket

    async def callback(self, data: Obj, topic: str = TOPIC) -> str:
        """Send a callback; return the id under which it is acknowledged."""
        return await self._deliver("CALLBACK", topic, data)

    async def again(self) -> None:
        """Send what was not acknowledged once more, as the platform does: the same data in a frame of another id."""
        for old in [frame for id_, frame in self._sent.items() if self.answer(id_) is None]:
            headers = old["headers"]
            assert isinstance(headers, dict)
            del self._sent[_id(old)]
            await self._deliver(str(old["type"]), headers["topic"], json.loads(str(old["data"])))

    async def system(self, topic: str, data: Obj | None = None) -> str:
        """Send a word about the connection itself."""
        return await self._deliver("SYSTEM", topic, data or {})

    async def event(self, topic: str, data: Obj) -> str:
        """Send an event, which nobody subscribed to."""
        return await self._deliver("EVENT", topic, data)

    async def tell(self, text: str) -> None:
        """Send whatever it is."""
        assert self._live is not None
        await self._live.send_str(text)

    async def taken(self, message: str, seconds: float = 10.0) -> Obj:
        """Wait for an acknowledgement and return it."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: self.answer(message) is not None)
        answer = self.answer(message)
        assert answer is not None
        return answer

    def answer(self, message: str) -> Obj | None:
        """Return the acknowledgement of a frame, if it came."""
        return next((each for each in self.acknowledged if _id(each) == message), None)

    async def read(self) -> None:
        """Wait until the newest connection has read everything sent so far."""
        assert self._live is not None
        self._pong.clear()
        await self._live.ping()
        await self._pong.wait()

    async def close(self, code: int = 1000) -> None:
        if self._live is not None:
            await self._live.close(code=code)

    def abort(self) -> None:
        """Reset the newest connection."""
        request = self._live._req if self._live is not None else None  # no public way to a reset
        if request is not None and request.transport is not None:
            request.transport.abort()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.connections += 1
        if self.statuses and (status := self.statuses.popleft()) != 200:
            return web.Response(status=status)
        ticket = request.query.get("ticket", "")
        if ticket not in self.tickets:
            self._violations.append("a ticket that is none, or was used")
            return web.Response(status=401)
        self.tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self._live = socket
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            await socket.send_str(json.dumps(frame))
        async for message in socket:
            if message.type is WSMsgType.PING:
                if not self.dead:
                    await socket.pong(message.data)
            elif message.type is WSMsgType.PONG:
                self._pong.set()
            else:
                await self._hear(json.loads(message.data))
        return socket

    async def _hear(self, frame: Obj) -> None:
        sent = self._sent.get(_id(frame))
        if sent is None:
            self._violations.append("an acknowledgement of nothing")
        elif sent["type"] == "SYSTEM" and json.loads(str(frame["data"])) != json.loads(str(sent["data"])):
            self._violations.append("a ping answered with other data")
        async with self._changed:
            self.acknowledged.append(frame)
            self._changed.notify_all()

    async def _deliver(self, kind: str, topic: str, data: Obj) -> str:
        message = f"frame-{next(self._ids)}"
        headers: Obj = {
            "appId": "app",
            "connectionId": "connection",
            "contentType": "application/json",
            "messageId": message,
            "time": "1790000000000",
            "topic": topic,
        }
        frame: Obj = {"specVersion": "1.0", "type": kind, "headers": headers, "data": json.dumps(data)}
        self._sent[message] = frame
        if self._live is None or self._live.closed:
            self._waiting.append(frame)
        else:
            await self._live.send_str(json.dumps(frame))
        return message


def _id(frame: Obj) -> str:
    headers = frame["headers"]
    assert isinstance(headers, dict)
    return str(headers["messageId"])

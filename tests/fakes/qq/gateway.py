"""The WebSocket gateway: Hello, Identify and Resume, heartbeats, and a log of events that a session can go back to."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import WSCloseCode, web

Obj: TypeAlias = dict[str, "object"]

BOT_ID = "9001"


@dataclass(slots=True)
class _Session:
    log: list[Obj] = field(default_factory=list)
    socket: web.WebSocketResponse | None = None


class Gateway:
    """Accepts ``token`` only. Events go to the newest session, connected or not."""

    def __init__(self) -> None:
        self.interval_ms: float = 41_250
        self.tokens: set[str] = set()
        self.granted = 1 << 25 | 1 << 30 | 1 << 12
        self.identified: list[Obj] = []
        self.resumed: list[Obj] = []
        self.beats: list[object] = []
        self.silent_heart = False
        """Whether heartbeats stay without an answer."""
        self.mute = False
        """Whether Hello is never said."""
        self.unwelcoming = False
        """Whether Identify and Resume stay without an answer."""
        self.connections = 0
        self.refusals: deque[int] = deque()
        """Close codes for the next introductions."""
        self.statuses: deque[int] = deque()
        """HTTP statuses for the next connections."""
        self._sessions: dict[str, _Session] = {}
        self._ids = itertools.count(1)
        self._open: set[web.WebSocketResponse] = set()

    @property
    def newest(self) -> _Session:
        return next(reversed(self._sessions.values()))

    @property
    def ready(self) -> bool:
        """Whether somebody is connected and welcome."""
        return bool(self._sessions) and self.newest.socket is not None and not self.newest.socket.closed

    async def dispatch(self, name: str, data: Obj) -> int:
        """Send an event, or keep it for a resume; return its number."""
        session = self.newest
        number = len(session.log) + 2  # READY was the first
        frame: Obj = {"op": 0, "s": number, "t": name, "d": data, "id": f"{name}:{number}"}
        session.log.append(frame)
        if session.socket is not None and not session.socket.closed:
            await _send(session.socket, frame)
        return number

    async def close(self, code: int) -> None:
        """Close every connection with a code."""
        for socket in list(self._open):
            await socket.close(code=code)

    async def tell(self, frame: Obj) -> None:
        """Send a frame to every connection."""
        for socket in list(self._open):
            await _send(socket, frame)

    async def say(self, data: str) -> None:
        """Send whatever it is to every connection."""
        for socket in list(self._open):
            await socket.send_str(data)

    def abort(self) -> None:
        """Reset every connection."""
        for socket in list(self._open):
            request = socket._req  # no public way to a reset
            if request is not None and request.transport is not None:
                request.transport.abort()

    def expire(self) -> None:
        """Forget every session; a resume is answered with "invalid"."""
        self._sessions = {f"gone-{name}": session for name, session in self._sessions.items()}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.connections += 1
        if self.statuses and (status := self.statuses.popleft()) != 200:
            return web.Response(status=status)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._open.add(socket)
        try:
            if not self.mute:
                await _send(socket, {"op": 10, "d": {"heartbeat_interval": self.interval_ms}})
            async for message in socket:
                await self._hear(socket, json.loads(message.data))
        finally:
            self._open.discard(socket)
            await socket.close(code=WSCloseCode.GOING_AWAY)
        return socket

    async def shut(self) -> None:
        """End every connection, for the end of a test."""
        await asyncio.gather(*(socket.close() for socket in list(self._open)))

    async def _hear(self, socket: web.WebSocketResponse, frame: Obj) -> None:
        body = frame.get("d")
        match frame["op"]:
            case 1:
                self.beats.append(body)
                if not self.silent_heart:
                    await _send(socket, {"op": 11})
            case 2 | 6:
                assert isinstance(body, dict)
                await self._welcome(socket, resume=frame["op"] == 6, body=body)

    async def _welcome(self, socket: web.WebSocketResponse, *, resume: bool, body: Obj) -> None:
        (self.resumed if resume else self.identified).append(body)
        if self.refusals:
            await socket.close(code=self.refusals.popleft())
        elif str(body["token"]).removeprefix("QQBot ") not in self.tokens:
            await socket.close(code=4004)
        elif self.unwelcoming:
            return
        elif resume:
            await self._resume(socket, body)
        elif int(str(body["intents"])) & ~self.granted:
            await socket.close(code=4014)
        else:
            name = f"session-{next(self._ids)}"
            self._sessions[name] = _Session(socket=socket)
            user = {"id": BOT_ID, "username": "bot", "bot": True, "status": 1}
            ready = {"version": 1, "session_id": name, "user": user, "shard": [0, 0]}
            await _send(socket, {"op": 0, "s": 1, "t": "READY", "d": ready})

    async def _resume(self, socket: web.WebSocketResponse, body: Obj) -> None:
        session = self._sessions.get(str(body["session_id"]))
        if session is None:
            await _send(socket, {"op": 9, "d": False})
            return
        session.socket = socket
        for frame in session.log:
            if int(str(frame["s"])) > int(str(body["seq"])):
                await _send(socket, frame)
        await _send(socket, {"op": 0, "s": len(session.log) + 1, "t": "RESUMED", "d": ""})


async def _send(socket: web.WebSocketResponse, frame: Obj) -> None:
    await socket.send_str(json.dumps(frame, ensure_ascii=False))

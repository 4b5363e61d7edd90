"""The gateway: greeting, sessions that can be resumed, heartbeats, and everything that can go wrong with a link."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.fakes.discord.payloads import APPLICATION, GUILD, ME, THREADS_AND_TALK, TOKEN, Obj, guild, user

HEARTBEAT_MS = 41_250
MESSAGE_CONTENT = 1 << 15


@dataclass(slots=True)
class Session:
    """What one client was told; lives on without a link, to be resumed."""

    id: str
    intents: int
    events: list[Obj] = field(default_factory=list)
    heard: int = 0
    """The number of the last event the client said it has."""
    link: web.WebSocketResponse | None = None


class FakeGateway:
    """``ws://…/``. Counts connections, new sessions and resumptions, and breaks links as a test says."""

    def __init__(self) -> None:
        self.url = ""
        self.sessions: dict[str, Session] = {}
        self.links: dict[web.WebSocketResponse, web.Request] = {}
        self.connects = self.identifies = self.resumes = 0
        self.permissions = THREADS_AND_TALK
        self.threads: dict[int, Obj] = {}
        self.newest: dict[int, str] = {}
        """The last message of each channel of the server."""
        self.tells_guild = True
        """Whether a session hears of the server; without it every channel is unknown to the client."""
        self.hold_guild: asyncio.Event | None = None
        """What a new session waits for before it hears of the server."""
        self.content_intent = True
        """Whether the developer portal grants the message content."""
        self.resume_at = "/"
        """The path at which sessions are to be resumed."""
        self.asked_at: list[str] = []
        """The path of each connection."""
        self.hosts: list[str] = []
        """Whom each connection asked for."""
        self.upgrade_status: int | None = None
        """The status that refuses a link, None: links are taken."""
        self.close_after_hello: int | None = None
        """The code that ends every link after its greeting."""
        self.answer_identify: int | None = None
        """The code that ends every link after it asked for a session."""
        self.pulse: float | None = None
        """Seconds between the server's own requests for a heartbeat; it has none of them as a rule."""
        self.silent = False
        """Whether the server takes everything and says nothing, as behind a dead link."""
        self.changed = asyncio.Condition()

    # -- what tests do -----------------------------------------------------------------------------------------------

    async def dispatch(self, kind: str, data: Obj) -> None:
        """Tell all sessions of an event; those without a link hear of it when they resume."""
        for session in self.sessions.values():
            await self._tell(session, kind, self._as_seen(session, kind, data))

    async def taken(self) -> None:
        """Wait until every session with a link has read all it was told before this call."""
        told = [(session, len(session.events)) for session in self.sessions.values() if session.link is not None]
        for session, _ in told:
            await self._send(session.link, {"op": 1, "d": None, "s": None, "t": None})
        await self.until(lambda: all(session.heard >= count or session.link is None for session, count in told))

    async def until(self, condition: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something here has become true."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(condition)

    async def close(self, code: int) -> None:
        """End all links with a code."""
        for link in list(self.links):
            await link.close(code=code)

    async def say(self, op: int, data: object = None) -> None:
        """Send a frame that is no event: 7 asks to reconnect, 9 ends the session."""
        if op == 9 and not data:
            self.sessions.clear()
        for link in list(self.links):
            await self._send(link, {"op": op, "d": data, "s": None, "t": None})

    def cut(self) -> None:
        """Cut all connections."""
        for request in self.links.values():
            if request.transport is not None:
                request.transport.abort()

    def forget(self) -> None:
        """Forget the sessions that nobody can resume any more."""
        self.sessions = {name: session for name, session in self.sessions.items() if session.link is not None}

    async def notify(self) -> None:
        """Let whoever waits look again."""
        async with self.changed:
            self.changed.notify_all()

    # -- the socket --------------------------------------------------------------------------------------------------

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one link."""
        self.connects += 1
        self.asked_at.append(request.path)
        self.hosts.append(request.host)
        await self.notify()
        if self.upgrade_status is not None:
            return web.Response(status=self.upgrade_status)
        link = web.WebSocketResponse(timeout=0.2)
        await link.prepare(request)
        self.links[link] = request
        try:
            await self._send(link, {"op": 10, "d": {"heartbeat_interval": HEARTBEAT_MS}, "s": None, "t": None})
            if self.close_after_hello is not None:
                await link.close(code=self.close_after_hello)
                return link
            beating = asyncio.create_task(self._beat(link))
            try:
                await self._listen(link)
            finally:
                beating.cancel()
        finally:
            del self.links[link]
            for session in self.sessions.values():
                if session.link is link:
                    session.link = None
            await self.notify()
        return link

    async def _beat(self, link: web.WebSocketResponse) -> None:
        while self.pulse is not None:
            await asyncio.sleep(self.pulse)
            if any(session.link is link for session in self.sessions.values()):
                await self._send(link, {"op": 1, "d": None, "s": None, "t": None})

    async def _listen(self, link: web.WebSocketResponse) -> None:
        async for message in link:
            if message.type is not WSMsgType.TEXT or self.silent:
                continue
            frame = json.loads(message.data)
            match frame["op"]:
                case 1:
                    for session in self.sessions.values():
                        if session.link is link:
                            session.heard = frame["d"] or 0
                    await self._send(link, {"op": 11, "d": None, "s": None, "t": None})
                    await self.notify()
                case 2:
                    await self._identify(link, frame["d"])
                case 6:
                    await self._resume(link, frame["d"])
                case _:
                    await link.close(code=4001)

    async def _identify(self, link: web.WebSocketResponse, data: Obj) -> None:
        self.identifies += 1
        intents = int(str(data["intents"]))
        if data["token"] != TOKEN:
            await link.close(code=4004)
        elif intents & MESSAGE_CONTENT and not self.content_intent:
            await link.close(code=4014)
        elif self.answer_identify is not None:
            await link.close(code=self.answer_identify)
        else:
            session = Session(f"session-{self.identifies}", intents, link=link)
            self.sessions[session.id] = session
            guilds: list[Obj] = [{"id": str(GUILD), "unavailable": True}] if self.tells_guild else []
            resume = self.url.rstrip("/") + self.resume_at
            ready: Obj = {
                "v": 10, "user": user(ME), "guilds": guilds, "session_id": session.id, "resume_gateway_url": resume,
                "application": {"id": str(APPLICATION), "flags": 1 << 19}, "shard": [0, 1], "private_channels": [],
            }  # fmt: skip
            await self._tell(session, "READY", ready)
            if self.hold_guild is not None:
                await self.hold_guild.wait()
            if self.tells_guild:
                told = guild(self.permissions, list(self.threads.values()), self.newest)
                await self._tell(session, "GUILD_CREATE", told)
        await self.notify()

    async def _resume(self, link: web.WebSocketResponse, data: Obj) -> None:
        self.resumes += 1
        session = self.sessions.get(str(data["session_id"]))
        if session is None or data["token"] != TOKEN:
            await self._send(link, {"op": 9, "d": False, "s": None, "t": None})
            return
        session.link = link
        for event in session.events[int(str(data["seq"])) :]:
            await self._send(link, event)
        await self._tell(session, "RESUMED", {})
        await self.notify()

    async def _tell(self, session: Session, kind: str, data: Obj) -> None:
        event: Obj = {"op": 0, "t": kind, "s": len(session.events) + 1, "d": data}
        session.events.append(event)
        await self._send(session.link, event)

    async def _send(self, link: web.WebSocketResponse | None, frame: Obj) -> None:
        if link is not None and not self.silent:
            with contextlib.suppress(ConnectionError):
                await link.send_json(frame)

    def _as_seen(self, session: Session, kind: str, data: Obj) -> Obj:
        """Return a message as a client without the message content intent gets it."""
        hidden = kind == "MESSAGE_CREATE" and "guild_id" in data and not session.intents & MESSAGE_CONTENT
        mentions = data.get("mentions")
        named = isinstance(mentions, list) and any(each["id"] == str(ME) for each in mentions)
        return {**data, "content": ""} if hidden and not named else data

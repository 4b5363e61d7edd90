"""The long connection: subscriptions that replace each other, callbacks, bubbles, messages of the bot's own accord."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Self, TypeAlias

from aiohttp import WSMsgType, web

from tests.fakes.wecom.faults import Fault

Obj: TypeAlias = dict[str, "object"]

BOT_ID = "aib-fake"
SECRET = "bot-secret-fake"
LONGEST = 20_480


@dataclass(slots=True)
class Said:
    """One message of the bot as people see it: a bubble with all its states, or a message of its own accord."""

    chat: str
    id: str
    request: str
    states: list[str] = field(default_factory=list)
    finished: bool = False

    @property
    def text(self) -> str:
        return self.states[-1]


class FakeWeCom:
    """Use as a context. Whatever a client does wrong is noted in ``violations``; every test must leave it empty."""

    def __init__(self) -> None:
        self.url = ""
        self.http = ""
        self.said: list[Said] = []
        self.frames: list[Obj] = []
        self.violations: list[str] = []
        self.faults: defaultdict[str, deque[Fault | None]] = defaultdict(deque)
        self.files: dict[str, bytes] = {}
        self.connections = 0
        self.subscribed = 0
        self.pings = 0
        self.secret = SECRET
        self.silent_heart = False
        """Whether pings stay without an answer."""
        self.mute = False
        """Whether subscriptions stay without an answer."""
        self.leaves_open = False
        """Whether a replaced connection is told so and left open."""
        self.eager = False
        """Whether callbacks that wait are delivered before the subscription is confirmed."""
        self.statuses: deque[int] = deque()
        """HTTP statuses for the next connections."""
        self.no_bubbles: set[str] = set()
        """Chats that take no stream replies."""
        self.slow = 0.0
        """Seconds before an acknowledgement."""
        self._requests: dict[str, str] = {}
        self._known: set[str] = set()
        self._waiting: list[Obj] = []
        self._in_flight: set[str] = set()
        self._ids = itertools.count(1)
        self._live: web.WebSocketResponse | None = None
        self._open: set[web.WebSocketResponse] = set()
        self._work: set[asyncio.Task[None]] = set()
        self._pong = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/", self._serve)
        app.router.add_get("/files/{name}", self._file)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url, self.http = f"ws://{host}:{port}", f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await asyncio.gather(*(socket.close() for socket in list(self._open)))
        for task in list(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._runner.cleanup()

    # -- what a test does -------------------------------------------------------------------------------------------

    def callback(self, body: Obj, *, sender: str = "alice", group: str | None = None) -> Obj:
        """Return the frame of a person's message; it may be replied to from now on."""
        number = next(self._ids)
        request = f"callback-{number}"
        where: Obj = {"chattype": "group", "chatid": group} if group else {"chattype": "single"}
        head: Obj = {"msgid": f"msg-{number}", "aibotid": BOT_ID, "from": {"userid": sender}, "create_time": 1_790_000}
        self._requests[request] = group or sender
        self._known.add(group or sender)
        return {"cmd": "aibot_msg_callback", "headers": {"req_id": request}, "body": head | where | body}

    async def deliver(self, frame: Obj) -> None:
        """Send a frame, or keep it until somebody subscribes."""
        if self._live is None or self._live.closed:
            self._waiting.append(frame)
        else:
            await _send(self._live, frame)

    async def read(self) -> None:
        """Wait until the one that is subscribed has read everything sent so far."""
        assert self._live is not None
        self._pong.clear()
        await self._live.ping()
        await self._pong.wait()

    async def says(self, text: str, *, sender: str = "alice", group: str | None = None) -> Obj:
        """Let a person write; return the frame."""
        frame = self.callback({"msgtype": "text", "text": {"content": text}}, sender=sender, group=group)
        await self.deliver(frame)
        return frame

    def again(self, frame: Obj) -> Obj:
        """Return the same message under a new request."""
        request = f"callback-{next(self._ids)}"
        body = frame["body"]
        assert isinstance(body, dict)
        self._requests[request] = str(body.get("chatid") or body["from"]["userid"])
        return frame | {"headers": {"req_id": request}}

    async def event(self, kind: str) -> None:
        """Deliver an event to the one that is subscribed."""
        body: Obj = {"msgid": "event", "msgtype": "event", "from": {"userid": "alice"}, "event": {"eventtype": kind}}
        await self.deliver({"cmd": "aibot_event_callback", "headers": {"req_id": "event"}, "body": body})

    async def tell(self, data: str) -> None:
        """Send whatever it is to every connection."""
        for socket in list(self._open):
            await socket.send_str(data)

    def fail(self, command: str, *faults: Fault | None) -> None:
        """Let the next frames of a command meet these faults; None lets one pass."""
        self.faults[command].extend(faults)

    async def close(self, code: int = 1000) -> None:
        """Close every connection."""
        for socket in list(self._open):
            await socket.close(code=code)

    def abort(self) -> None:
        """Reset every connection."""
        for socket in list(self._open):
            _reset(socket)

    def stall(self) -> None:
        """Read nothing more from any connection, as behind a link that died without a word."""
        for socket in list(self._open):
            request = socket._req  # no public way to stop reading
            assert request is not None
            assert isinstance(request.transport, asyncio.ReadTransport)
            request.transport.pause_reading()

    def expire(self) -> None:
        """Let every request be over."""
        self._requests.clear()

    def forget(self, chat: str) -> None:
        """Let a chat never have written to the bot."""
        self._known.discard(chat)

    def texts(self, chat: str = "alice") -> list[str]:
        return [said.text for said in self.said if said.chat == chat]

    @property
    def hanging(self) -> list[Said]:
        """Bubbles that nobody ended."""
        return [said for said in self.said if not said.finished]

    # -- the connection ---------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.connections += 1
        if self.statuses and (status := self.statuses.popleft()) != 200:
            return web.Response(status=status)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self._open.add(socket)
        try:
            async for message in socket:
                if message.type is WSMsgType.PONG:
                    self._pong.set()
                    continue
                if message.type is WSMsgType.PING:
                    await socket.pong(message.data)
                    continue
                task = asyncio.create_task(self._hear(socket, json.loads(message.data)))
                self._work.add(task)
                task.add_done_callback(self._work.discard)
        finally:
            self._open.discard(socket)
            await socket.close()
        return socket

    async def _hear(self, socket: web.WebSocketResponse, frame: Obj) -> None:
        command, headers, body = str(frame["cmd"]), frame["headers"], frame.get("body") or {}
        assert isinstance(headers, dict)
        assert isinstance(body, dict)
        request = str(headers["req_id"])
        self.frames.append(frame)
        if request in self._in_flight:
            self.violations.append(f"{command}: a second frame of {request} in flight")
        self._in_flight.add(request)
        await asyncio.sleep(self.slow)
        self._in_flight.discard(request)
        fault = self.faults[command].popleft() if self.faults[command] else None
        code = fault.code if fault else 0
        if fault is None or fault.accepted:
            code = await self._take(socket, command, request, body) or code
        if fault is not None and fault.reset:
            _reset(socket)
        elif not (fault is not None and fault.silent) and not self._unheard(command):
            await _send(socket, {"headers": {"req_id": request}, "errcode": code, "errmsg": "no" if code else "ok"})
        if command == "aibot_subscribe" and not code and not self._unheard(command):
            await self._flush()

    def _unheard(self, command: str) -> bool:
        return (command == "ping" and self.silent_heart) or (command == "aibot_subscribe" and self.mute)

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            await self.deliver(frame)

    async def _take(self, socket: web.WebSocketResponse, command: str, request: str, body: Obj) -> int:
        match command:
            case "aibot_subscribe":
                return await self._subscribe(socket, body)
            case "ping":
                self.pings += 1
                return 0
            case _ if socket is not self._live:
                return 846609
            case "aibot_respond_msg":
                return self._respond(request, body)
            case "aibot_send_msg":
                return self._send(request, body)
        self.violations.append(f"unknown command {command}")
        return 40058

    async def _subscribe(self, socket: web.WebSocketResponse, body: Obj) -> int:
        if (body["bot_id"], body["secret"]) != (BOT_ID, self.secret):
            return 40001
        self.subscribed += 1
        old, self._live = self._live, socket
        if old is not None and not old.closed and old is not socket:
            event: Obj = {"event": {"eventtype": "disconnected_event"}, "msgtype": "event"}
            await _send(old, {"cmd": "aibot_event_callback", "headers": {"req_id": "gone"}, "body": event})
            if not self.leaves_open:
                await old.close()
        if self.eager:
            await self._flush()
        return 0

    def _respond(self, request: str, body: Obj) -> int:
        chat = self._requests.get(request)
        if chat is None:
            return 846605
        stream = body.get("stream")
        if body["msgtype"] == "markdown":
            return self._say(chat, request, body)
        assert isinstance(stream, dict)
        bubble, finish, content = str(stream["id"]), stream["finish"], str(stream["content"])
        if chat in self.no_bubbles:
            return 600039
        said = next((said for said in self.said if said.id == bubble), None)
        if said is not None and said.finished:
            self.violations.append(f"bubble {bubble} goes on after its end")
            return 846608
        if len(content.encode()) > LONGEST:
            self.violations.append("too many bytes")
            return 40058
        if said is None:
            said = Said(chat, bubble, request)
            self.said.append(said)
        elif said.request != request:
            self.violations.append(f"bubble {bubble} belongs to another request")
        said.states.append(content)
        said.finished = bool(finish)
        return 0

    def _send(self, request: str, body: Obj) -> int:
        chat = str(body["chatid"])
        return self._say(chat, request, body) if chat in self._known else 93006

    def _say(self, chat: str, request: str, body: Obj) -> int:
        markdown = body["markdown"]
        assert isinstance(markdown, dict)
        if len(str(markdown["content"]).encode()) > LONGEST:
            self.violations.append("too many bytes")
            return 40058
        self.said.append(Said(chat, f"markdown-{next(self._ids)}", request, [str(markdown["content"])], finished=True))
        return 0

    async def _file(self, request: web.Request) -> web.StreamResponse:
        data = self.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)


def _reset(socket: web.WebSocketResponse) -> None:
    request = socket._req  # no public way to a reset
    if request is not None and request.transport is not None:
        request.transport.abort()


async def _send(socket: web.WebSocketResponse, frame: Obj) -> None:
    if not socket.closed:
        await socket.send_str(json.dumps(frame, ensure_ascii=False))

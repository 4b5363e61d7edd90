"""The bot API: tokens, where the gateway is, and messages with their numbers and limits."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Self, TypeAlias

from aiohttp import web

from tests.fakes.qq.faults import Fault
from tests.fakes.qq.gateway import Gateway

Obj: TypeAlias = dict[str, "object"]

APP_ID = "102000001"
SECRET = "client-secret-fake"
LONGEST = 2000
_ADDRESS = re.compile(r"https?://|\b[\w-]+\.(com|net|org|cn|md|py)\b")
_LIMITS = {"users": 5, "groups": 5, "channels": 5, "dms": 5}
_EVENTS = {
    "users": "C2C_MESSAGE_CREATE",
    "groups": "GROUP_AT_MESSAGE_CREATE",
    "channels": "AT_MESSAGE_CREATE",
    "dms": "DIRECT_MESSAGE_CREATE",
}


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of the bot that the platform took. ``kind`` is users, groups, channels or dms."""

    kind: str
    chat: str
    text: str
    message: str
    seq: object
    id: str


@dataclass(slots=True)
class _Asked:
    """A message the bot may reply to."""

    kind: str
    chat: str
    replies: int
    seqs: set[object]


class FakeQQ:
    """Use as a context. Whatever a client does wrong is noted in ``violations``; every test must leave it empty."""

    def __init__(self) -> None:
        self.url = ""
        self.gateway = Gateway()
        self.life = "7200"
        """Seconds a token lives, as the platform says it."""
        self.sent: list[Sent] = []
        self.tokens: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.violations: list[str] = []
        self.faults: defaultdict[str, deque[Fault | None]] = defaultdict(deque)
        self.files: dict[str, bytes] = {}
        self.sessions_left = 999
        self.allows_addresses = True
        self.gateway_url: str | None = None
        self.valid: set[str] = set()
        self._asked: dict[str, _Asked] = {}
        self._ids = itertools.count(1)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/app/getAppAccessToken", self._token)
        app.router.add_get("/gateway", self._address)
        app.router.add_get("/gateway/bot", self._address)
        app.router.add_get("/users/@me", self._me)
        app.router.add_get("/ws", self.gateway.serve)
        app.router.add_get("/files/{name}", self._file)
        for kind in ("users", "groups"):
            app.router.add_post(f"/v2/{{kind:{kind}}}/{{chat}}/messages", self._post)
        for kind in ("channels", "dms"):
            app.router.add_post(f"/{{kind:{kind}}}/{{chat}}/messages", self._post)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self.gateway.shut()
        await self._runner.cleanup()

    # -- what a test does -------------------------------------------------------------------------------------------

    def message(self, text: str, *, kind: str = "users", chat: str = "alice-openid", sender: str | None = None) -> Obj:
        """Return the event of a person's message; it may be replied to from now on."""
        number = next(self._ids)
        name = f"ROBOT1.0_{number}"
        author: Obj = {"id": sender or chat}
        where: Obj = {}
        match kind:
            case "users":
                author |= {"user_openid": sender or chat, "union_openid": ""}
            case "groups":
                author |= {"member_openid": sender or chat}
                where = {"group_openid": chat, "group_id": chat}
            case "channels":
                where = {"channel_id": chat, "guild_id": "guild-1"}
            case "dms":
                where = {"guild_id": chat, "channel_id": f"{chat}-channel", "direct_message": True}
        self._asked[name] = _Asked(kind, chat, _LIMITS[kind], set())
        return {"id": name, "author": author, "content": text, "timestamp": "2026-11-30T00:00:00+08:00", **where}

    async def deliver(self, event: Obj) -> int:
        """Dispatch an event of :meth:`message`."""
        return await self.gateway.dispatch(_EVENTS[self._asked[str(event["id"])].kind], event)

    async def says(
        self, text: str, *, kind: str = "users", chat: str = "alice-openid", sender: str | None = None
    ) -> Obj:
        """Let a person write; return the event."""
        event = self.message(text, kind=kind, chat=chat, sender=sender)
        await self.deliver(event)
        return event

    def fail(self, name: str, *faults: Fault | None) -> None:
        """Let the next calls of ``token``, ``gateway`` or ``messages`` meet these faults; None lets one pass."""
        self.faults[name].extend(faults)

    def revoke(self) -> None:
        """Let every token given so far be over."""
        self.valid.clear()
        self.gateway.tokens.clear()

    def texts(self, chat: str = "alice-openid") -> list[str]:
        return [sent.text for sent in self.sent if sent.chat == chat]

    # -- the calls --------------------------------------------------------------------------------------------------

    async def _token(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append(("token", ""))
        if fault := self._fault("token"):
            return await fault.response(request)
        if body != {"appId": APP_ID, "clientSecret": SECRET}:
            return _json({"code": 100016, "message": "invalid appid or secret"})
        token = f"access-token-{len(self.tokens) + 1}-fake"
        self.tokens.append(token)
        self.valid.add(token)
        self.gateway.tokens.add(token)
        return _json({"access_token": token, "expires_in": self.life})

    async def _address(self, request: web.Request) -> web.StreamResponse:
        if fault := self._fault("gateway"):
            return await fault.response(request)
        if refusal := self._refused(request, "gateway"):
            return refusal
        address = self.gateway_url or self.url.replace("http", "ws") + "/ws"
        limit = {"total": 1000, "remaining": self.sessions_left, "reset_after": 90_000, "max_concurrency": 1}
        return _json({"url": address, "shards": 1, "session_start_limit": limit})

    async def _me(self, request: web.Request) -> web.StreamResponse:
        return self._refused(request, "me") or _json({"id": "9001", "username": "bot", "avatar": ""})

    async def _post(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        kind, chat = request.match_info["kind"], request.match_info["chat"]
        if fault := self._fault("messages"):
            self.calls.append(("messages", request.path))
            if fault.accepted:
                self._take(kind, chat, body)
            return await fault.response(request)
        if refusal := self._refused(request, "messages"):
            return refusal
        status, answer = self._take(kind, chat, body)
        return _json(answer, status=status)

    def _fault(self, name: str) -> Fault | None:
        return self.faults[name].popleft() if self.faults[name] else None

    def _refused(self, request: web.Request, name: str) -> web.StreamResponse | None:
        self.calls.append((name, request.path))
        if request.headers.get("X-Union-Appid") != APP_ID:
            self.violations.append(f"{name}: no X-Union-Appid")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "QQBot":
            self.violations.append(f"{name}: not a QQBot token")
        if token not in self.valid:
            return _json({"code": 11244, "message": "token not exist or expire"}, status=401)
        return None

    def _take(self, kind: str, chat: str, body: Obj) -> tuple[int, Obj]:
        asked = self._asked.get(str(body.get("msg_id")))
        text = str(body.get("content"))
        seq = body.get("msg_seq", 1)
        numbered = kind in {"users", "groups"}
        if numbered and body.get("msg_type", 0) != 0:
            self.violations.append("messages: not a text")
        code = 0
        if asked is None or (asked.kind, asked.chat) != (kind, chat):
            code = 40034024
        elif numbered and seq in asked.seqs:
            code = 40054005
        elif not asked.replies:
            code = 22009
        elif len(text) > LONGEST:
            code = 40034006
        elif not self.allows_addresses and _ADDRESS.search(text):
            code = 40054010
        if code or asked is None:
            return 400, {"code": code, "err_code": code, "message": "no", "trace_id": "trace"}
        asked.seqs.add(seq)
        asked.replies -= 1
        sent = Sent(kind, chat, text, str(body["msg_id"]), seq, f"sent-{next(self._ids)}")
        self.sent.append(sent)
        return 200, {"id": sent.id, "timestamp": "2026-11-30T00:00:01+08:00"}

    async def _file(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" in request.headers:
            self.violations.append("files: a token")
        data = self.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)


def _json(answer: Obj, *, status: int = 200) -> web.Response:
    """Answer as the platform does: the type has no charset, which its own client depends on."""
    headers = {"Content-Type": "application/json"}
    return web.Response(body=json.dumps(answer).encode(), status=status, headers=headers)

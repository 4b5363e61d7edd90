"""The API: where the gateway is, tokens, webhooks of conversations, messages of the bot's own accord, cards, files."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Self, TypeAlias

from aiohttp import web

from tests.fakes.dingtalk.cards import Card, Cards, Said
from tests.fakes.dingtalk.faults import Fault
from tests.fakes.dingtalk.gateway import Gateway

Obj: TypeAlias = dict[str, "object"]

CLIENT_ID = "ding-client-fake"
SECRET = "client-secret-fake"
LONGEST_WEBHOOK = 20_000
LONGEST_PARAM = 15_000

_CALLS = {
    "/v1.0/gateway/connections/open": "open",
    "/v1.0/oauth2/accessToken": "token",
    "/robot/sendBySession": "webhook",
    "/v1.0/robot/oToMessages/batchSend": "private",
    "/v1.0/robot/groupMessages/send": "group",
    "/v1.0/card/instances": "card",
    "/v1.0/card/instances/deliver": "deliver",
    "/v1.0/card/streaming": "streaming",
    "/v1.0/robot/messageFiles/download": "download",
}


class FakeDingTalk:
    """Use as a context. Whatever a client does wrong is noted in ``violations``; every test must leave it empty."""

    def __init__(self) -> None:
        self.url = ""
        self.violations: list[str] = []
        self.gateway = Gateway(self.violations)
        self.said: list[Said] = []
        self._shown: list[Said | Card] = []
        self.cards = Cards(self._shown, self.violations)
        self.opened: list[Obj] = []
        self.calls: list[str] = []
        self.tokens: list[str] = []
        self.faults: defaultdict[str, deque[Fault | None]] = defaultdict(deque)
        self.files: dict[str, bytes] = {}
        self.secret = SECRET
        self.life = 7200
        """Seconds a token lives, as the platform says it."""
        self.lasts = 5_400.0
        """Seconds a webhook lasts."""
        self.blocked: set[str] = set()
        self.hasty: set[str] = set()
        """People to whom too much was sent."""
        self.endpoint: str | None = None
        self.download_url: str | None = None
        self._valid: set[str] = set()
        self._sessions: dict[str, str] = {}
        self._chats: dict[str, str] = {}
        self._ids = itertools.count(1)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/connect", self.gateway.serve)
        app.router.add_get("/files/{name}", self._file)
        for path in _CALLS:
            app.router.add_route("*", path, self._call)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self.gateway.close()
        await self._runner.cleanup()

    # -- what a test does -------------------------------------------------------------------------------------------

    def message(
        self,
        text: str = "hi",
        *,
        sender: str = "alice",
        group: str | None = None,
        now: float = 1_000_000.0,
        **more: object,
    ) -> Obj:
        """Return the data of a person's message; ``now`` is the client's time."""
        number = next(self._ids)
        chat = group or f"cid-{sender}"
        session = f"session-{number}-fake"
        self._sessions[session] = chat
        self._chats[sender] = f"cid-{sender}"
        return {
            "msgId": f"msg-{number}",
            "msgtype": "text",
            "text": {"content": f" {text}" if group else text},
            "conversationType": "2" if group else "1",
            "conversationId": chat,
            "senderId": f"$:LWCP_v1:${sender}",
            "senderStaffId": sender,
            "senderNick": sender,
            "chatbotUserId": "$:LWCP_v1:$bot",
            "robotCode": CLIENT_ID,
            "createAt": 1_790_000_000_000,
            "isInAtList": bool(group),
            "atUsers": [{"dingtalkId": "$:LWCP_v1:$bot"}] if group else [],
            "sessionWebhook": f"{self.url}/robot/sendBySession?session={session}",
            "sessionWebhookExpiredTime": int((now + self.lasts) * 1000),
            **more,
        }

    async def says(self, text: str = "hi", *, sender: str = "alice", group: str | None = None) -> str:
        """Let a person write; return the id under which the frame is acknowledged."""
        return await self.gateway.callback(self.message(text, sender=sender, group=group))

    def fail(self, call: str, *faults: Fault | None) -> None:
        """Let the next calls meet these faults (names in ``_CALLS``); None lets one pass."""
        self.faults[call].extend(faults)

    def revoke(self) -> None:
        """Let every token given so far be over."""
        self._valid.clear()

    @property
    def given(self) -> set[str]:
        """What opens a connection, or a conversation, to anybody who knows it."""
        return set(self._sessions) | self.gateway.tickets

    def forget(self) -> None:
        """Forget what was said."""
        for seen in (self.said, self._shown, self.cards.all):
            seen.clear()

    def texts(self, chat: str = "cid-alice") -> list[str]:
        """Return what a chat shows of the bot, oldest first: messages, and cards as they read now."""
        return [each.text for each in self._shown if each.chat == chat]

    # -- the calls --------------------------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        name = _CALLS[request.path]
        self.calls.append(name)
        body = await request.json()
        fault = self.faults[name].popleft() if self.faults[name] else None
        if fault is not None:
            if fault.accepted:
                await self._take(name, request, body)
            return await fault.response(request)
        token = request.headers.get("x-acs-dingtalk-access-token")
        if name not in {"open", "token", "webhook"} and token not in self._valid:
            return _refusal(401, "InvalidAuthentication")
        return await self._take(name, request, body)

    async def _take(self, name: str, request: web.Request, body: Obj) -> web.StreamResponse:
        takers: dict[str, Callable[[web.Request, Obj], web.StreamResponse]] = {
            "open": self._open,
            "token": self._token,
            "webhook": self._webhook,
            "private": self._private,
            "group": self._group,
            "download": self._download,
            "card": lambda _, body: _outcome(*self.cards.create(body)),
            "deliver": lambda _, body: web.json_response(self.cards.deliver(body)),
            "streaming": lambda _, body: _outcome(*self.cards.fill(body)),
        }
        return takers[name](request, body)

    def _open(self, request: web.Request, body: Obj) -> web.StreamResponse:
        self.opened.append(body)
        if (body["clientId"], body["clientSecret"]) != (CLIENT_ID, self.secret):
            return _refusal(401, "authFailed")
        address = self.endpoint or self.url.replace("http", "ws") + "/connect"
        return web.json_response({"endpoint": address, "ticket": self.gateway.ticket()})

    def _token(self, request: web.Request, body: Obj) -> web.StreamResponse:
        if body != {"appKey": CLIENT_ID, "appSecret": self.secret}:
            return _refusal(400, "invalidClientIdOrSecret")
        token = f"access-token-{len(self.tokens) + 1}-fake"
        self.tokens.append(token)
        self._valid.add(token)
        return web.json_response({"accessToken": token, "expireIn": self.life})

    def _webhook(self, request: web.Request, body: Obj) -> web.StreamResponse:
        chat = self._sessions.get(request.query["session"])
        if chat is None:
            return web.json_response({"errcode": 300001, "errmsg": "session not found"})
        if len(json.dumps(body, ensure_ascii=False).encode()) > LONGEST_WEBHOOK:
            self.violations.append("too many bytes")
        if body["msgtype"] == "text":
            text = body["text"]
            assert isinstance(text, dict)
            self._say(Said("webhook", chat, str(text["content"])))
        else:
            markdown = body["markdown"]
            assert isinstance(markdown, dict)
            self._say(Said("webhook", chat, str(markdown["text"])))
        return web.json_response({"errcode": 0, "errmsg": "ok"})

    def _say(self, said: Said) -> None:
        self.said.append(said)
        self._shown.append(said)

    def _private(self, request: web.Request, body: Obj) -> web.StreamResponse:
        users = body["userIds"]
        assert isinstance(users, list)
        invalid = [user for user in users if user in self.blocked]
        controlled = [user for user in users if user in self.hasty]
        for user in users:
            if user not in invalid + controlled:
                self._say(Said("private", self._chats[user], self._param(body)))
        lists = {"invalidStaffIdList": invalid, "flowControlledStaffIdList": controlled}
        return web.json_response({"processQueryKey": f"query-{next(self._ids)}", **lists})

    def _group(self, request: web.Request, body: Obj) -> web.StreamResponse:
        self._say(Said("group", str(body["openConversationId"]), self._param(body)))
        return web.json_response({"processQueryKey": f"query-{next(self._ids)}"})

    def _param(self, body: Obj) -> str:
        if (body["robotCode"], body["msgKey"]) != (CLIENT_ID, "sampleText"):
            self.violations.append("another robot, or no text")
        if len(str(body["msgParam"]).encode()) > LONGEST_PARAM:
            self.violations.append("too many bytes")
        return str(json.loads(str(body["msgParam"]))["content"])

    def _download(self, request: web.Request, body: Obj) -> web.StreamResponse:
        address = self.download_url or f"{self.url}/files/{body['downloadCode']}"
        return web.json_response({"downloadUrl": address})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        data = self.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)


def _refusal(status: int, code: str) -> web.Response:
    return web.json_response({"code": code, "message": "no", "requestid": "r"}, status=status)


def _outcome(status: int, code: str) -> web.Response:
    return _refusal(status, code) if code else web.json_response({"success": True, "result": True})

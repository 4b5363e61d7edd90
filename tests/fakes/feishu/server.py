"""The simulated Feishu: the API on one port, with the long connection beside it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from tests.fakes.feishu.cards import FakeCard
from tests.fakes.feishu.events import ALICE, BOT, message, private
from tests.fakes.feishu.faults import Fault
from tests.fakes.feishu.gateway import Delivery, Gateway

Obj = dict[str, object]

APP_ID = "cli_0123456789abcdef"
SECRET = "feishu-app-secret-fake"
LARGEST_TEXT = 150_000
"""Bytes of a message's content."""


@dataclass(slots=True)
class Shown:
    """A message of the bot. ``topic`` is the message it replies to in a topic."""

    id: str
    chat: str
    kind: str
    content: Obj
    topic: str | None = None
    card: FakeCard | None = None

    @property
    def text(self) -> str:
        """How it reads now."""
        return self.card.texts[-1] if self.card else str(self.content["text"])


class FakeFeishu:
    """One app on the platform."""

    def __init__(self) -> None:
        self.url = ""
        self.violations: list[str] = []
        self.gateway = Gateway(self.violations)
        self.app: Obj = {"app_id": APP_ID, "app_secret": SECRET}
        self.is_bot = True
        self.state = 2
        """2: switched on in the organisation."""
        self.granted = [
            "im:message.p2p_msg:readonly", "im:message.group_at_msg:readonly", "im:message:send_as_bot", "im:resource",
            "cardkit:card:write",
        ]  # fmt: skip
        self.life = 7200
        self.tokens: list[str] = []
        self.valid: set[str] = set()
        self.shown: list[Shown] = []
        self.said = asyncio.Event()
        """Set with every message of the bot."""
        self.withdrawn: list[Shown] = []
        self.cards: dict[str, FakeCard] = {}
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, deque[Fault | None]] = defaultdict(deque)
        self.calls: list[str] = []
        self._chats: dict[str, str] = {}
        self._uuids: dict[str, Shown] = {}
        self._ids = itertools.count(1)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        api = "/open-apis"
        im, cards = f"{api}/im/v1/messages", f"{api}/cardkit/v1/cards"
        app.router.add_post("/callback/ws/endpoint", self._discover)
        app.router.add_get("/ws", self.gateway.serve)
        app.router.add_post(f"{api}/auth/v3/tenant_access_token/internal", self._token)
        app.router.add_get(f"{api}/bot/v3/info", self._call("info", self._info))
        app.router.add_get(f"{api}/application/v6/scopes", self._call("scopes", self._scopes))
        app.router.add_post(im, self._call("messages", self._new))
        app.router.add_post(f"{im}/{{message}}/reply", self._call("messages", self._reply))
        app.router.add_delete(f"{im}/{{message}}", self._call("delete", self._delete))
        app.router.add_get(f"{im}/{{message}}/resources/{{key}}", self._resource)
        app.router.add_post(cards, self._call("cards", self._new_card))
        app.router.add_put(f"{cards}/{{card}}", self._call("card", self._change("card")))
        app.router.add_patch(f"{cards}/{{card}}/settings", self._call("settings", self._change("settings")))
        app.router.add_put(f"{cards}/{{card}}/elements/answer/content", self._call("content", self._change("content")))
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

    async def deliver(self, event: Obj, *, parts: int = 1) -> Delivery:
        """Push an event; its chat may be sent to from now on, its message replied to."""
        found = event.get("event")
        if isinstance(found, dict) and "message" in found:
            self._chats[found["message"]["message_id"]] = found["message"]["chat_id"]
        return await self.gateway.deliver(json.dumps(event, ensure_ascii=False).encode(), parts=parts)

    async def says(self, text: str, *, sender: str = ALICE) -> Delivery:
        """Let a person write to the bot."""
        return await self.deliver(message({"text": text}, sender=sender))

    def fail(self, name: str, *faults: Fault | None) -> None:
        """Let the next calls of that name meet these faults; None lets one pass.

        Names: discover, token, info, messages, delete, resource, cards, card, settings, content.
        """
        self.faults[name].extend(faults)

    def rotate(self) -> None:
        """Let the secret be another one and every token over."""
        self.app["app_secret"] = "another-secret-fake"
        self.valid.clear()

    def texts(self, chat: str = private(ALICE)) -> list[str]:
        """Return the bot's messages in a chat as they read now."""
        return [shown.text for shown in self.shown if shown.chat == chat]

    # -- the calls --------------------------------------------------------------------------------------------------

    async def _discover(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append("discover")
        if fault := self._fault("discover"):
            return await fault.response(request)
        if body != {"AppID": self.app["app_id"], "AppSecret": self.app["app_secret"]}:
            return web.json_response({"code": 10014, "msg": "app secret invalid"})
        return web.json_response({"code": 0, "msg": "", "data": self.gateway.discovered(self.url)})

    async def _token(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append("token")
        if fault := self._fault("token"):
            return await fault.response(request)
        if body != self.app:
            return web.json_response({"code": 10014, "msg": "app secret invalid"})
        token = f"t-tenant-token-{len(self.tokens) + 1}-fake"
        self.tokens.append(token)
        self.valid.add(token)
        return web.json_response({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": self.life})

    def _call(
        self, name: str, work: Callable[[web.Request, Obj], Obj | int]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler of a call that needs a token; ``work`` returns the answer, or the code of a refusal."""

        async def handle(request: web.Request) -> web.StreamResponse:
            body = json.loads(await request.read() or b"{}")
            self.calls.append(name)
            fault = self._fault(name)
            if fault is not None and not fault.accepted:
                return await fault.response(request)
            if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.valid:
                return web.json_response({"code": 99991663, "msg": "Invalid access token"}, status=400)
            answer = work(request, body)
            if fault is not None:
                return await fault.response(request)
            if isinstance(answer, int):
                return web.json_response({"code": answer, "msg": "no"}, status=400 if answer else 200)
            return web.json_response({"code": 0, "msg": "ok", **answer})

        return handle

    def _fault(self, name: str) -> Fault | None:
        return self.faults[name].popleft() if self.faults[name] else None

    def _info(self, request: web.Request, body: Obj) -> Obj:
        return {"bot": {"open_id": BOT, "app_name": "bot", "activate_status": self.state}} if self.is_bot else {}

    def _scopes(self, request: web.Request, body: Obj) -> Obj:
        told = [{"scope_name": name, "grant_status": 1, "scope_type": "tenant"} for name in self.granted]
        return {"data": {"scopes": [*told, {"scope_name": "im:chat", "grant_status": 2, "scope_type": "tenant"}]}}

    def _new(self, request: web.Request, body: Obj) -> Obj | int:
        if request.query.get("receive_id_type") != "chat_id":
            return 230001
        chat = str(body["receive_id"])
        return self._show(chat, body) if chat in self._chats.values() else 230002

    def _reply(self, request: web.Request, body: Obj) -> Obj | int:
        asked = request.match_info["message"]
        if asked not in self._chats:
            return 230011
        return self._show(self._chats[asked], body, topic=asked if body.get("reply_in_thread") else None)

    def _show(self, chat: str, body: Obj, topic: str | None = None) -> Obj | int:
        uuid, kind, content = str(body.get("uuid") or ""), str(body["msg_type"]), str(body["content"])
        if not 0 < len(uuid) <= 50:
            self.violations.append("a message without an id of its own")
        if uuid in self._uuids:
            return _posted(self._uuids[uuid])
        if len(content.encode()) > LARGEST_TEXT:
            return 230025
        shown = Shown(f"om_sent_{next(self._ids)}", chat, kind, json.loads(content), topic)
        if kind == "interactive":
            data = shown.content["data"]
            shown.card = self.cards.get(data["card_id"]) if isinstance(data, dict) else None
            if shown.card is None:
                return 230099
        self.shown.append(shown)
        self.said.set()
        self._uuids[uuid] = shown
        return _posted(shown)

    def _delete(self, request: web.Request, body: Obj) -> Obj | int:
        for shown in self.shown:
            if shown.id == request.match_info["message"]:
                self.shown.remove(shown)
                self.withdrawn.append(shown)
                return {"data": {}}
        return 230011

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        data = self.files.get(request.match_info["key"])
        self.calls.append(f"resource {request.query.get('type')}")
        if fault := self._fault("resource"):
            return await fault.response(request)
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.valid:
            return web.json_response({"code": 99991663, "msg": "Invalid access token"}, status=400)
        if data is None or request.match_info["message"] not in self._chats:
            return web.json_response({"code": 234003, "msg": "no such file"}, status=400)
        return web.Response(body=data)

    def _new_card(self, request: web.Request, body: Obj) -> Obj | int:
        card = FakeCard.of(f"card-{next(self._ids)}", body)
        if isinstance(card, int):
            return card
        self.cards[card.id] = card
        return {"data": {"card_id": card.id}}

    def _change(self, what: str) -> Callable[[web.Request, Obj], int]:
        def change(request: web.Request, body: Obj) -> int:
            card = self.cards.get(request.match_info["card"])
            return card.change(what, body) if card else 200740

        return change


def _posted(shown: Shown) -> Obj:
    return {"data": {"message_id": shown.id, "chat_id": shown.chat, "msg_type": shown.kind}}

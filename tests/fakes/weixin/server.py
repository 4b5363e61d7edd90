"""The iLink API as far as a bot sees it: login, long poll, sending with its limits, the typing sign, files."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

from aiohttp import web

from tests.fakes.weixin.faults import Fault

Obj: TypeAlias = dict[str, "object"]

TOKEN = "bot-token-fake"
ACCOUNT = "bot-1@im.bot"
REPLIES = 10
"""The platform's own limit to one message."""
LONGEST_TEXT = 5000
FIRST_ID = 2**63 + 11
"""Message ids do not fit a signed number, nor a double."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of the bot that the platform took, and when on the loop's clock."""

    user: str
    text: str
    token: str
    id: str
    at: float


class FakeWeixin:
    """Use as a context. Whatever a client does wrong is noted in ``violations``; every test must leave it empty."""

    def __init__(self, *, hold: float = 20.0) -> None:
        self.hold = hold
        self.url = ""
        self.token = TOKEN
        self.sent: list[Sent] = []
        self.calls: list[tuple[str, Obj]] = []
        self.typing: list[tuple[str, int]] = []
        self.violations: list[str] = []
        self.files: dict[str, bytes] = {}
        self.faults: defaultdict[str, deque[Fault | None]] = defaultdict(deque)
        self.logins: deque[Obj] = deque()
        """Answers of ``get_qrcode_status``; the last one is given for ever."""
        self.qr_address: str | None = None
        self.longpolling_timeout_ms: float | None = None
        self.enforce_replies = True
        self.answered_cursors: list[str] = []
        self._log: list[Obj] = []
        self._left: dict[str, int] = {}
        self._ids = itertools.count(FIRST_ID)
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 20)
        app.router.add_post("/ilink/bot/{call:.+}", self._post)
        app.router.add_get("/ilink/bot/get_qrcode_status", self._qr_status)
        app.router.add_get("/c2c/download", self._download)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # -- what a test does -------------------------------------------------------------------------------------------

    def says(self, user: str, text: str | None = None, *, items: list[Obj] | None = None, **fields: object) -> str:
        """Let a person write; return the message's id."""
        number = next(self._ids)
        message: Obj = {
            "seq": len(self._log),
            "message_id": number,
            "from_user_id": user,
            "to_user_id": ACCOUNT,
            "message_type": 1,
            "message_state": 2,
            "create_time_ms": 1_700_000_000_000 + (number - FIRST_ID),
            "item_list": items if items is not None else [{"type": 1, "text_item": {"text": text}}],
            "context_token": f"context-{number}",
            **fields,
        }
        self.deliver(message)
        return str(number)

    def deliver(self, message: Obj) -> None:
        """Put a message, whatever it is, in front of the next poll."""
        self._log.append(message)
        if message.get("message_type") == 1:
            self._left[str(message.get("from_user_id"))] = REPLIES
        self._news.set()

    def again(self, message_id: str) -> None:
        """Deliver a message once more, at a new place."""
        self._log.append(next(m for m in self._log if str(m.get("message_id")) == message_id))
        self._news.set()

    def fail(self, call: str, *faults: Fault | None) -> None:
        """Let the next calls of one name meet these faults, in order; None lets one pass."""
        self.faults[call].extend(faults)

    def count(self, call: str) -> int:
        """Return how often a call was made."""
        return sum(name == call for name, _ in self.calls)

    @property
    def context_tokens(self) -> set[str]:
        """The tokens that came with what people wrote."""
        return {str(message["context_token"]) for message in self._log if "context_token" in message}

    @property
    def through(self) -> bool:
        """Whether the client came back with the cursor of everything there is."""
        return bool(self.answered_cursors) and self.answered_cursors[-1] == f"cursor-{len(self._log)}"

    # -- the calls --------------------------------------------------------------------------------------------------

    async def _post(self, request: web.Request) -> web.StreamResponse:
        call = request.match_info["call"]
        body = await request.json()
        self.calls.append((call, body))
        self._inspect(call, request, body)
        handlers: dict[str, Callable[[Obj], Awaitable[Obj]]] = {
            "get_bot_qrcode": self._qr_code,
            "getupdates": self._updates,
            "sendmessage": self._send,
            "getconfig": self._config,
            "sendtyping": self._type,
            "msg/notifystart": self._fine,
            "msg/notifystop": self._fine,
        }
        fault = self.faults[call].popleft() if self.faults[call] else None
        if fault is not None:
            if fault.accepted:
                await handlers[call](body)
            return await fault.response(request)
        if call != "get_bot_qrcode" and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _json({"errcode": -14, "errmsg": "session timeout"})
        return _json(await handlers[call](body))

    def _inspect(self, call: str, request: web.Request, body: Obj) -> None:
        """Note what the platform's own client would never do."""
        wanted = {"AuthorizationType": "ilink_bot_token", "iLink-App-Id": "bot"}
        wrong = [name for name, value in wanted.items() if request.headers.get(name) != value]
        try:
            uin = int(base64.b64decode(request.headers["X-WECHAT-UIN"], validate=True))
            int(request.headers["iLink-App-ClientVersion"])
        except (KeyError, ValueError):
            wrong.append("X-WECHAT-UIN or iLink-App-ClientVersion")
        else:
            wrong += [] if 0 <= uin < 2**32 else ["uin"]
        info = body.get("base_info")
        if call != "get_bot_qrcode" and not (
            isinstance(info, dict) and info.get("channel_version") and info.get("bot_agent")
        ):
            wrong.append("base_info")
        self.violations += [f"{call}: {name}" for name in wrong]

    async def _fine(self, body: Obj) -> Obj:
        return {"ret": 0}

    async def _updates(self, body: Obj) -> Obj:
        cursor = str(body.get("get_updates_buf") or "")
        self.answered_cursors.append(cursor)
        seen = int(cursor.removeprefix("cursor-") or 0)
        if seen >= len(self._log):
            self._news.clear()
            try:
                async with asyncio.timeout(self.hold):
                    await self._news.wait()
            except TimeoutError:
                pass
        answer: Obj = {"ret": 0, "msgs": self._log[seen:], "get_updates_buf": f"cursor-{len(self._log)}"}
        if self.longpolling_timeout_ms is not None:
            answer["longpolling_timeout_ms"] = self.longpolling_timeout_ms
        return answer

    async def _send(self, body: Obj) -> Obj:
        message = body["msg"]
        assert isinstance(message, dict)
        (item,) = message["item_list"]
        text = item["text_item"]["text"]
        user = message["to_user_id"]
        if (message["message_type"], message["message_state"], message["from_user_id"]) != (2, 2, ""):
            self.violations.append("sendmessage: not a finished message of a bot")
        if not message.get("client_id"):
            self.violations.append("sendmessage: no client_id")
        left = self._left.get(user, 0)
        if self.enforce_replies and (left <= 0 or len(text) > LONGEST_TEXT):
            return {"ret": -2, "errmsg": "prepare failed"}
        self._left[user] = left - 1
        number = next(self._ids)
        now = asyncio.get_running_loop().time()
        self.sent.append(Sent(user, text, str(message.get("context_token") or ""), str(number), now))
        return {"ret": 0, "message_id": number}

    async def _config(self, body: Obj) -> Obj:
        return {"ret": 0, "typing_ticket": f"ticket-{body['ilink_user_id']}"}

    async def _type(self, body: Obj) -> Obj:
        user, status = str(body["ilink_user_id"]), body["status"]
        assert isinstance(status, int)
        if body.get("typing_ticket") != f"ticket-{user}":
            return {"ret": -1}
        self.typing.append((user, status))
        return {"ret": 0}

    # -- login and files --------------------------------------------------------------------------------------------

    async def _qr_code(self, body: Obj) -> Obj:
        if not isinstance(body.get("local_token_list"), list):
            self.violations.append("get_bot_qrcode: no local_token_list")
        number = self.count("get_bot_qrcode")
        return {
            "ret": 0,
            "qrcode": f"login-{number}",
            "qrcode_img_content": self.qr_address or f"https://login.weixin.qq.com/fake/{number}",
        }

    async def _qr_status(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(("get_qrcode_status", {**request.query, "host": request.host}))
        if "Authorization" in request.headers:
            self.violations.append("get_qrcode_status: a token")
        fault = self.faults["get_qrcode_status"].popleft() if self.faults["get_qrcode_status"] else None
        if fault is not None:
            return await fault.response(request)
        answer = self.logins.popleft() if len(self.logins) > 1 else self.logins[0]
        return _json(answer)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" in request.headers:
            self.violations.append("download: a token")
        data = self.files.get(request.query["encrypted_query_param"])
        return web.Response(status=404) if data is None else web.Response(body=data)


def _json(answer: Obj) -> web.Response:
    return web.Response(body=json.dumps(answer).encode(), content_type="application/json")

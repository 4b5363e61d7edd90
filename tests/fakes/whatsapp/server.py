"""The Graph API as far as a number sees it, and the other end of its webhook."""

from __future__ import annotations

import hashlib
import hmac
import io
import itertools
import json
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Self

import aiohttp
from aiohttp import web

from tests.fakes.whatsapp.faults import Fault, refusal
from tests.fakes.whatsapp.posts import NUMBER, Obj

ACCESS_TOKEN = "access-token-fake"
APP_SECRET = "app-secret-fake"
VERIFY_TOKEN = "verify-token-fake"
VERSION = "v25.0"
ACCOUNT, APP = "200200200200200", "400400400400400"
LONGEST_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of the bot that the platform took."""

    to: str
    text: str
    id: str
    body: Obj


def health(status: str = "AVAILABLE") -> Obj:
    """Return what the platform says of everything that a message goes through."""
    ids = {"PHONE_NUMBER": NUMBER, "WABA": ACCOUNT, "BUSINESS": "3000", "APP": APP}
    entities = [{"entity_type": kind, "id": id_, "can_send_message": status} for kind, id_ in ids.items()]
    return {"can_send_message": status, "entities": entities}


class FakeWhatsApp:
    """Use as a context. Whatever a client does wrong is noted in ``violations``; every test must leave it empty."""

    def __init__(self) -> None:
        self.url = ""
        self.token = ACCESS_TOKEN
        self.sent: list[Sent] = []
        self.read: list[str] = []
        self.typed: list[str] = []
        self.calls: list[str] = []
        self.violations: list[str] = []
        self.number: Obj = {
            "display_phone_number": "+1 555-078-3881",
            "verified_name": "Fake Inc",
            "health_status": health(),
        }
        self.subscribed = [APP]
        """Apps that get what is sent to the account."""
        self.files: dict[str, bytes] = {}
        self.file_url: str | None = None
        """Another address for every file."""
        self.faults: defaultdict[str, deque[Fault | None]] = defaultdict(deque)
        """By call: number, send, read, media, file."""
        self._ids = itertools.count(1)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get(f"/{VERSION}/{NUMBER}", self._number)
        app.router.add_post(f"/{VERSION}/{NUMBER}/messages", self._messages)
        app.router.add_get(f"/{VERSION}/{ACCOUNT}/subscribed_apps", self._subscribed)
        app.router.add_get(f"/{VERSION}/{{id}}", self._media)
        app.router.add_get("/files/{id}", self._file)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def api(self) -> str:
        """The base of the Graph API."""
        return f"{self.url}/{VERSION}"

    # -- what a test does -------------------------------------------------------------------------------------------

    def fail(self, call: str, *faults: Fault | None) -> None:
        """Let the next calls of one name meet these faults, in order; None lets one pass."""
        self.faults[call].extend(faults)

    def texts(self, to: str) -> list[str]:
        """Return what the bot sent somewhere, oldest first."""
        return [sent.text for sent in self.sent if sent.to == to]

    async def verify(self, webhook: str, **query: str) -> tuple[int, str]:
        """Ask the question that is asked when a webhook is entered; return status and text."""
        asked = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": VERIFY_TOKEN} | query
        async with aiohttp.ClientSession() as session, session.get(webhook, params=asked) as answer:
            return answer.status, await answer.text()

    async def deliver(self, webhook: str, body: Obj | bytes, *, signature: str | None = None) -> int:
        """Post once, signed over the bytes that go out, escaped as WhatsApp escapes them; return the status."""
        raw = body if isinstance(body, bytes) else json.dumps(body).replace("/", "\\/").encode()
        signed = "sha256=" + hmac.new(APP_SECRET.encode(), raw, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-Hub-Signature-256": signed if signature is None else signature,
        }
        async with (
            aiohttp.ClientSession() as session,
            session.post(webhook, data=io.BytesIO(raw), headers=headers) as answer,
        ):
            return answer.status

    # -- the calls --------------------------------------------------------------------------------------------------

    async def _number(self, request: web.Request) -> web.Response:
        met = await self._met("number", request)
        if met is not None:
            return met
        proof = request.query.get("appsecret_proof")
        if (
            proof is not None
            and proof != hmac.new(APP_SECRET.encode(), self.token.encode(), hashlib.sha256).hexdigest()
        ):
            return web.Response(status=400, body=refusal(100), content_type="application/json")
        fields = request.query.get("fields", "").split(",")
        return _json({"id": NUMBER, **{name: value for name, value in self.number.items() if name in fields}})

    async def _subscribed(self, request: web.Request) -> web.Response:
        apps = [{"whatsapp_business_api_data": {"id": app, "name": "an app"}} for app in self.subscribed]
        return await self._met("apps", request) or _json({"data": apps})

    async def _messages(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body.get("messaging_product") != "whatsapp":
            self.violations.append("messages: no messaging_product")
        call, take = ("read", self._mark) if "status" in body else ("send", self._take)
        if self.faults[call] and (fault := self.faults[call][0]) is not None and fault.accepted:
            take(body)
        return await self._met(call, request) or take(body)

    async def _media(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if (met := await self._met("media", request)) is not None:
            return met
        if name not in self.files:
            return web.Response(status=400, body=refusal(100))
        url = f"{self.url}/files/{name}?ext=1" if self.file_url is None else self.file_url
        return _json({"id": name, "url": url, "mime_type": "image/jpeg", "file_size": len(self.files[name])})

    async def _file(self, request: web.Request) -> web.Response:
        return await self._met("file", request) or web.Response(body=self.files[request.match_info["id"]])

    async def _met(self, call: str, request: web.Request) -> web.Response | None:
        """Note a call; return what it meets in the place of its answer."""
        self.calls.append(call)
        if "access_token" in request.query or self.token in str(request.url):
            self.violations.append(f"{call}: the token in the address")
        fault = self.faults[call].popleft() if self.faults[call] else None
        if fault is not None:
            return await fault.response(request)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401, body=refusal(190))
        return None

    def _mark(self, body: Obj) -> web.Response:
        name = body["message_id"]
        assert isinstance(name, str)
        if body["status"] != "read" or body.get("typing_indicator", {"type": "text"}) != {"type": "text"}:
            self.violations.append("read: not a read mark")
        (self.typed if "typing_indicator" in body else self.read).append(name)
        return _json({"success": True})

    def _take(self, body: Obj) -> web.Response:
        text = body["text"]
        assert isinstance(text, dict)
        to = body.get("to") or body.get("recipient")
        if body["type"] != "text" or body.get("recipient_type") not in {"individual", "group"} or not to:
            self.violations.append("send: neither to a person nor to a group, or no text")
        if text.get("preview_url") is not False:
            self.violations.append("send: a link preview")
        if not 0 < len(text["body"]) <= LONGEST_TEXT:
            return web.Response(status=400, body=refusal(100))
        sent = Sent(str(to), text["body"], f"wamid.OUT{next(self._ids):08}", body)
        self.sent.append(sent)
        contact = {"input": to, "wa_id": to} if "to" in body else {"input": to, "user_id": to}
        return _json({"messaging_product": "whatsapp", "contacts": [contact], "messages": [{"id": sent.id}]})


def _json(answer: Obj) -> web.Response:
    return web.Response(body=json.dumps(answer).encode(), content_type="application/json")

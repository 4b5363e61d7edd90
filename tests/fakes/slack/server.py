"""Slack's Web API over HTTP, with its Socket Mode, its response addresses and its files."""

from __future__ import annotations

import asyncio
import html
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self, Unpack

from aiohttp import web

from tests.fakes.slack.faults import Fault, How
from tests.fakes.slack.payloads import BOT_ID, BOT_USER, CHANNEL, TEAM, TELLER, Obj, Writer, direct
from tests.fakes.slack.socket import Envelope, Sockets

LONGEST = 40_000
LONGEST_EDIT = 4_000
HOOK_USES = 5
BOT_TOKEN = "xoxb-fake-bot-token"
APP_TOKEN = "xapp-fake-app-token"


class Refusal(Exception):
    """A call that Slack refuses with a word."""


@dataclass(slots=True)
class Said:
    """One message of the bot: every text it had, as sent; the last one is what reads now."""

    channel: str
    ts: str
    texts: list[str]
    params: Obj
    thread: str | None = None
    only_for: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it arrived."""

    method: str
    params: Obj = field(default_factory=dict)


@dataclass(slots=True)
class Hook:
    """The address of one slash command."""

    channel: str
    user: str
    left: int = HOOK_USES


class FakeSlack:
    """``async with FakeSlack() as platform``: point a client at :attr:`api` with both tokens.

    Let people act with :meth:`deliver` and :meth:`pick`, look at :attr:`said` and :attr:`calls`, break calls with
    :meth:`fail` and links with :attr:`sockets`.
    """

    def __init__(self) -> None:
        self.bot_token = BOT_TOKEN
        self.app_token = APP_TOKEN
        self.api = ""
        self.write = Writer()
        self.sockets = Sockets(self._tell)
        self.calls: list[Call] = []
        self.said: list[Said] = []
        self.files: dict[str, tuple[str, bytes]] = {}
        self.blocked: set[str] = set()
        self.scopes: list[str] | None = [
            "app_mentions:read", "channels:history", "chat:write", "commands", "files:read", "groups:history",
            "im:history", "im:read", "mpim:history",
        ]  # fmt: skip
        """What the bot token may do, as every answer says; None: no answer says it."""
        self.hooks: dict[str, Hook] = {}
        self.strangers_chats: set[str] = set()
        """Private conversations the bot is not in."""
        self._numbers = itertools.count(1)
        self._faults: list[Fault] = []
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._methods: dict[str, Callable[[Obj], Obj]] = {
            "auth.test": self._auth_test,
            "apps.connections.open": self._open,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "conversations.info": self._info,
        }

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link/", self.sockets.serve)
        app.router.add_post("/commands/{hook}", self._respond)
        app.router.add_get("/files/{name}", self._download)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.api = f"http://{self.address}/api/"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        self.sockets.cut()
        await self._runner.cleanup()

    @property
    def address(self) -> str:
        """Return host and port."""
        assert self._runner is not None
        host, port = self._runner.addresses[0][:2]
        return f"{host}:{port}"

    # -- what tests do ----------------------------------------------------------------------------------------------

    async def deliver(self, event: Obj) -> Envelope:
        """Send an event."""
        return await self.sockets.deliver(self.write.event(event), "events_api")

    async def say(self, text: str, **more: object) -> Envelope:
        """Let a person write to the bot in private, and wait until the bot has taken it."""
        envelope = await self.deliver(self.write.message(text) | more)
        await self.taken(envelope)
        return envelope

    async def pick(
        self,
        command: str,
        text: str = "",
        *,
        sender: str = TELLER,
        channel: str | None = None,
        name: str = "directmessage",
    ) -> Envelope:
        """Let a person pick a slash command."""
        where = channel or direct(sender)
        hook = f"hook-{next(self._numbers)}"
        self.hooks[hook] = Hook(where, sender)
        address = f"http://{self.address}/commands/{hook}"
        body = self.write.slash(command, text, address, sender=sender, channel=where, channel_name=name)
        return await self.sockets.deliver(body, "slash_commands")

    async def taken(self, envelope: Envelope) -> None:
        """Wait until the bot has acknowledged an envelope."""
        await self.until(lambda: envelope.acknowledged)

    async def until(self, condition: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something here has become true."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(condition)

    def fail(self, method: str, **how: Unpack[How]) -> Fault:
        """Let calls of a method go wrong; see :class:`Fault`. Response addresses are the method "respond"."""
        made = Fault(method, **how)
        self._faults.append(made)
        return made

    def forgive(self) -> None:
        """Let everything go well from now on."""
        self._faults.clear()

    def count(self, method: str) -> int:
        """Count the calls of a method."""
        return sum(call.method == method for call in self.calls)

    def texts(self, channel: str) -> list[str]:
        """Return how the bot's messages in a conversation read now, as a person sees them."""
        return [html.unescape(said.texts[-1]) for said in self.said if said.channel == channel]

    # -- the socket -------------------------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        params = await _params(request)
        self.calls.append(Call(method, params))
        await self._tell()
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or params.get("token")
        wanted = self.app_token if method == "apps.connections.open" else self.bot_token
        if token != wanted:
            return web.json_response({"ok": False, "error": "invalid_auth"})
        return await self._spoil(request, method, lambda: self._answer(method, params))

    async def _spoil(self, request: web.Request, method: str, answer: Callable[[], web.Response]) -> web.StreamResponse:
        fault = next((fault for fault in self._faults if fault.hits(method)), None)
        try:
            if fault is None:
                return answer()
            if fault.effect:
                answer()
            if fault.hold is not None:
                await fault.hold.wait()
        finally:
            await self._tell()
        if fault.drop:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault.error:
            body = {"ok": False, "error": fault.error}
            return web.json_response(body, status=fault.status, headers=fault.headers)
        if fault.page is not None:
            kind = "text/html" if fault.page.startswith("<") else "application/json"
            return web.Response(status=fault.status, text=fault.page, content_type=kind, headers=fault.headers)
        if fault.status != 200:
            page = "<html><h1>Something went wrong</h1></html>"
            return web.Response(status=fault.status, text=page, content_type="text/html", headers=fault.headers)
        return answer()

    def _answer(self, method: str, params: Obj) -> web.Response:
        handler = self._methods.get(method)
        try:
            if handler is None:
                raise Refusal("unknown_method")
            headers = {"X-OAuth-Scopes": ",".join(self.scopes)} if self.scopes is not None else {}
            return web.json_response({"ok": True, **handler(params)}, headers=headers)
        except Refusal as refusal:
            return web.json_response({"ok": False, "error": str(refusal)})

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        hook = self.hooks[request.match_info["hook"]]
        body: Obj = await request.json()
        self.calls.append(Call("respond", body))

        def answer() -> web.Response:
            if not hook.left:
                return web.Response(status=404, text="used_url")
            hook.left -= 1
            only_for = None if body.get("response_type") == "in_channel" else hook.user
            self.said.append(Said(hook.channel, self.write.ts(), [str(body["text"])], body, only_for=only_for))
            return web.Response(text="ok")

        return await self._spoil(request, "respond", answer)

    async def _download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        kind, data = self.files[request.match_info["name"]]
        return web.Response(body=data, content_type=kind)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # -- the methods ------------------------------------------------------------------------------------------------

    def _auth_test(self, params: Obj) -> Obj:
        who: Obj = {"user": "thisbot", "user_id": BOT_USER, "bot_id": BOT_ID, "is_enterprise_install": False}
        return {"url": "https://fake.slack.com/", "team": "Fake", "team_id": TEAM, **who}

    def _open(self, params: Obj) -> Obj:
        return {"url": f"ws://{self.address}/link/?ticket={self.sockets.ticket()}&app_id=fake"}

    def _post(self, params: Obj) -> Obj:
        channel, text = self._writable(params)
        thread = str(params["thread_ts"]) if params.get("thread_ts") else None
        said = Said(channel, self.write.ts(), [text[:LONGEST]], params, thread)
        self.said.append(said)
        return {"channel": channel, "ts": said.ts, "message": {"type": "message", "text": text, "bot_id": BOT_ID}}

    def _update(self, params: Obj) -> Obj:
        channel, text = self._writable(params)
        said = next((each for each in self.said if (each.channel, each.ts) == (channel, params["ts"])), None)
        if said is None:
            raise Refusal("message_not_found")
        if len(text) > LONGEST_EDIT:
            raise Refusal("msg_too_long")
        said.texts.append(text)
        return {"channel": channel, "ts": said.ts, "text": text}

    def _info(self, params: Obj) -> Obj:
        channel = str(params["channel"])
        if channel in self.strangers_chats:
            raise Refusal("channel_not_found")
        return {"channel": {"id": channel, "is_im": channel.startswith("D"), "is_channel": channel == CHANNEL}}

    def _writable(self, params: Obj) -> tuple[str, str]:
        channel, text = str(params["channel"]), str(params.get("text", ""))
        if channel in self.blocked | self.strangers_chats:
            raise Refusal("channel_not_found")
        if not text.strip():
            raise Refusal("no_text")
        return channel, text


async def _params(request: web.Request) -> Obj:
    if request.content_type == "application/json":
        return dict(json.loads(await request.text()))
    return {**request.query, **{key: str(value) for key, value in (await request.post()).items()}}

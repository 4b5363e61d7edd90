"""Discord's REST API version 10, as far as a bot that talks needs it, beside its gateway."""

from __future__ import annotations

import json
import re
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self, Unpack

from aiohttp import web

from tests.fakes.discord.faults import Fault, How
from tests.fakes.discord.gateway import FakeGateway
from tests.fakes.discord.limits import Limits
from tests.fakes.discord.payloads import (
    GENERAL,
    ME,
    TOKEN,
    VOICE,
    Obj,
    Writer,
    application,
    channel,
    direct,
    is_direct,
    thread,
    user,
)

LONGEST = 2_000


class Refusal(Exception):
    """A call the API refuses."""

    def __init__(self, status: int, code: int, **body: object) -> None:
        super().__init__(str(code))
        self.status = status
        self.body: Obj = {"message": "refused", "code": code, **body}


@dataclass(slots=True)
class Said:
    """One message of the bot: every text it had, the last one is what reads now. ``command`` is what it answers."""

    channel: int
    id: int
    texts: list[str]
    params: Obj
    command: int | None = None


@dataclass(slots=True)
class Asked:
    """One slash command. ``deferred``: the person sees that the bot is thinking."""

    id: int
    channel: int
    deferred: bool = False
    said: Said | None = None
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it arrived."""

    name: str
    params: Obj = field(default_factory=dict)


_Handler = Callable[[dict[str, str], Obj], Awaitable[object]]


class FakeDiscord:
    """``async with FakeDiscord() as platform``: point a client at :attr:`api` and :attr:`gateway` with :attr:`token`.

    Let people write with :meth:`deliver` and pick commands with :meth:`pick`, look at :attr:`said`, :attr:`threads`,
    :attr:`asked` and :attr:`calls`, break calls with :meth:`fail` and links through :attr:`gateway`.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.token = TOKEN
        self._tls = tls
        self.api = self.files = ""
        self.port = 0
        self.write = Writer()
        self.gateway = FakeGateway()
        self.calls: list[Call] = []
        self.said: list[Said] = []
        self.asked: dict[int, Asked] = {}
        self.commands: list[Obj] = []
        self.flags = 1 << 19
        """The application's: by default it may read messages."""
        self.sessions_left = 999
        self.blocked: set[int] = set()
        """Channels that take nothing from the bot."""
        self.unreadable: set[int] = set()
        """Channels that show nothing to the bot."""
        self.messages: defaultdict[int, list[Obj]] = defaultdict(list)
        """What stands in each channel, oldest first."""
        self.attachments: dict[str, bytes] = {}
        self.limits = Limits()
        self._newest: dict[int, object] = {}
        self._faults: list[Fault] = []
        self._nonces: dict[tuple[int, str], Said] = {}
        self._runner: web.AppRunner | None = None
        self._routes: list[tuple[re.Pattern[str], _Handler]] = [
            (re.compile(f"{pattern}$"), handler)
            for pattern, handler in (
                (r"GET /users/@me", self._me),
                (r"GET /(oauth2/)?applications/@me", self._application),
                (r"GET /gateway(/bot)?", self._gateway),
                (r"POST /channels/(?P<channel>\d+)/messages", self._create_message),
                (r"PATCH /channels/(?P<channel>\d+)/messages/(?P<message>\d+)", self._edit_message),
                (r"POST /channels/(?P<channel>\d+)/messages/(?P<message>\d+)/threads", self._open_thread),
                (r"POST /channels/(?P<channel>\d+)/typing", self._typing),
                (r"GET /channels/(?P<channel>\d+)", self._get_channel),
                (r"GET /channels/(?P<channel>\d+)/messages", self._get_messages),
                (r"PUT /applications/(?P<application>\d+)/commands", self._put_commands),
                (r"POST /interactions/(?P<number>\d+)/(?P<token>[^/]+)/callback", self._callback),
                (r"POST /webhooks/(?P<application>\d+)/(?P<token>[^/]+)", self._follow_up),
                (r"PATCH /webhooks/(?P<application>\d+)/(?P<token>[^/]+)/messages/@original", self._replace),
            )
        ]

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/", self.gateway.serve)
        app.router.add_get("/elsewhere", self.gateway.serve)
        app.router.add_get("/attachments/{name}", self._download)
        app.router.add_route("*", "/api/v10/{path:.+}", self._call)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        host, self.port = self._runner.addresses[0][:2]
        port = self.port
        self.api, self.files = f"http://{host}:{port}/api/v10", f"http://{host}:{port}/attachments/"
        self.gateway.url = f"ws://{host}:{port}/"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # -- what tests do -----------------------------------------------------------------------------------------------

    async def deliver(self, *messages: Obj) -> None:
        """Let messages be written."""
        for message in messages:
            self._note(message)
            await self.gateway.dispatch("MESSAGE_CREATE", message)

    async def pick(self, interaction: Obj) -> Asked:
        """Let a slash command be picked."""
        asked = Asked(int(str(interaction["id"])), int(str(interaction["channel_id"])))
        self.asked[asked.id] = asked
        await self.gateway.dispatch("INTERACTION_CREATE", interaction)
        return asked

    async def until(self, condition: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something here has become true."""
        await self.gateway.until(condition, seconds)

    def fail(self, call: str, **how: Unpack[How]) -> None:
        """Let calls whose "METHOD /path" contains a match of ``call`` go wrong; see :class:`Fault`."""
        self._faults.append(Fault(re.compile(call), **how))

    def forgive(self) -> None:
        """Let everything go well from now on."""
        self._faults.clear()

    def count(self, call: str) -> int:
        """Count the calls whose "METHOD /path" contains a match of ``call``."""
        return sum(bool(re.search(call, each.name)) for each in self.calls)

    def texts(self, channel: int) -> list[str]:
        """Return how the bot's messages in a channel read now."""
        return [said.texts[-1] for said in self.said if said.channel == channel]

    @property
    def threads(self) -> dict[int, Obj]:
        """The threads there are."""
        return self.gateway.threads

    # -- the socket --------------------------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        name = f"{request.method} /{request.match_info['path']}"
        body = await request.read()
        params = json.loads(body) if body else dict(request.query)
        call = Call(name, params if isinstance(params, dict) else {"all": params})
        self.calls.append(call)
        await self.gateway.notify()
        by_its_own_token = re.match(r"[A-Z]+ /(interactions|webhooks)/", name)
        if not by_its_own_token and request.headers.get("Authorization") != f"Bot {self.token}":
            return _json({"message": "401: Unauthorized", "code": 0}, 401)
        if (wait := self.limits.seconds(name)) is not None:
            told: Obj = {"message": "limited", "retry_after": wait, "global": False}
            return _json(told, 429, {"Via": "1.1 google"})
        fault = next((fault for fault in self._faults if fault.hits(name)), None)
        return await self._answer(call) if fault is None else await self._spoilt(request, call, fault)

    async def _answer(self, call: Call) -> web.Response:
        for pattern, handler in self._routes:
            if match := pattern.match(call.name):
                try:
                    result = await handler(match.groupdict(), call.params)
                except Refusal as refusal:
                    return _json(refusal.body, refusal.status)
                finally:
                    await self.gateway.notify()
                return _json(result, 204 if result is None else 200, self.limits.stated(call.name))
        return _json({"message": "404: Not Found", "code": 0}, 404)

    async def _spoilt(self, request: web.Request, call: Call, fault: Fault) -> web.StreamResponse:
        if fault.effect:
            await self._answer(call)
        if fault.hold is not None:
            await fault.hold.wait()
        if fault.drop:
            assert request.transport is not None
            request.transport.abort()
        if fault.status == 200 and not fault.drop:
            return await self._answer(call)
        if fault.html:
            return web.Response(text=fault.html, status=fault.status, headers=fault.headers, content_type="text/html")
        return _json(fault.refusal, fault.status, fault.headers)

    async def _download(self, request: web.Request) -> web.Response:
        found = self.attachments.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        return web.Response(body=found)

    # -- the calls ---------------------------------------------------------------------------------------------------

    async def _me(self, path: dict[str, str], params: Obj) -> object:
        return user(ME)

    async def _application(self, path: dict[str, str], params: Obj) -> object:
        return application() | {"flags": self.flags}

    async def _gateway(self, path: dict[str, str], params: Obj) -> object:
        limit = {"total": 1_000, "remaining": self.sessions_left, "reset_after": 90_000, "max_concurrency": 1}
        return {"url": self.gateway.url, "shards": 1, "session_start_limit": limit}

    async def _create_message(self, path: dict[str, str], params: Obj) -> object:
        channel, nonce = self._writable(path), str(params.get("nonce"))
        known = self._nonces.get((channel, nonce)) if params.get("enforce_nonce") else None
        if known is not None:
            return self._shown(known)
        return await self._said(Said(channel, self.write.id(), [_text(params)], params))

    async def _said(self, said: Said) -> Obj:
        """Show a new message to everybody, its author too."""
        self.said.append(said)
        self._nonces[said.channel, str(said.params.get("nonce"))] = said
        shown = self._shown(said)
        self._note(shown)
        await self.gateway.dispatch("MESSAGE_CREATE", shown)
        return shown

    async def _edit_message(self, path: dict[str, str], params: Obj) -> object:
        channel, number = self._writable(path), int(path["message"])
        said = next((said for said in self.said if (said.channel, said.id) == (channel, number)), None)
        if said is None:
            raise Refusal(404, 10008)
        said.texts.append(_text(params))
        await self.gateway.dispatch("MESSAGE_UPDATE", self._shown(said))
        return self._shown(said)

    async def _open_thread(self, path: dict[str, str], params: Obj) -> object:
        parent, number = self._writable(path), int(path["message"])
        if number in self.threads:
            raise Refusal(400, 160004)
        if not 1 <= len(str(params["name"])) <= 100:
            raise Refusal(400, 50035)
        opened = thread(number, parent=parent, name=str(params["name"]))
        self.threads[number] = opened
        await self.gateway.dispatch("THREAD_CREATE", {**opened, "newly_created": True})
        return opened

    async def _typing(self, path: dict[str, str], params: Obj) -> object:
        self._writable(path)
        return None

    async def _get_channel(self, path: dict[str, str], params: Obj) -> object:
        number = self._readable(path)
        if is_direct(number):
            return direct(number, self._newest.get(number))
        if number in {GENERAL, VOICE}:
            return channel(number, kind=2 if number == VOICE else 0)
        if number not in self.threads:
            raise Refusal(404, 10003)
        return self.threads[number]

    async def _get_messages(self, path: dict[str, str], params: Obj) -> object:
        number, after = self._readable(path), int(str(params.get("after", 0)))
        found = [each for each in self.messages[number] if int(str(each["id"])) > after]
        limit = int(str(params["limit"]))
        return [_stored(each) for each in reversed(found[:limit] if "after" in params else found[-limit:])]

    async def _put_commands(self, path: dict[str, str], params: Obj) -> object:
        commands = params["all"]
        assert isinstance(commands, list)
        self.commands = commands
        return [{**each, "id": str(self.write.id()), "application_id": path["application"], "version": "1"}
                for each in commands]  # fmt: skip

    async def _callback(self, path: dict[str, str], params: Obj) -> object:
        asked = self._asked(path["token"])
        if asked.deferred or asked.said:
            raise Refusal(400, 40060)
        said: Said | None = None
        if params["type"] == 5:
            asked.deferred = True
        else:
            data = params["data"]
            assert isinstance(data, dict)
            said = asked.said = Said(asked.channel, self.write.id(), [_text(data)], data, asked.id)
            await self._said(said)
        number = str(said.id if said else self.write.id())
        about: Obj = {"id": str(asked.id), "type": 2, "response_message_id": number}
        shown = self._shown(said or Said(asked.channel, int(number), [""], {}))
        return {"interaction": about, "resource": {"type": params["type"], "message": shown}}

    async def _follow_up(self, path: dict[str, str], params: Obj) -> object:
        asked = self._asked(path["token"])
        said = Said(asked.channel, self.write.id(), [_text(params)], params, asked.id)
        asked.deferred, asked.said = False, asked.said or said
        return await self._said(said)

    async def _replace(self, path: dict[str, str], params: Obj) -> object:
        asked = self._asked(path["token"])
        if asked.said is None and not asked.deferred:
            raise Refusal(404, 10008)
        if asked.said is None:
            asked.deferred, asked.said = False, Said(asked.channel, self.write.id(), [_text(params)], params, asked.id)
            return await self._said(asked.said)
        asked.said.texts.append(_text(params))
        return self._shown(asked.said)

    def _asked(self, token: str) -> Asked:
        asked = self.asked[int(token.rpartition("-")[2])]
        if asked.expired:
            raise Refusal(404, 10062)
        return asked

    def _note(self, message: Obj) -> None:
        number = int(str(message["channel_id"]))
        self.messages[number].append(message)
        self._newest[number] = message["id"]
        if number in self.threads:
            self.threads[number]["last_message_id"] = message["id"]
        elif not is_direct(number):
            self.gateway.newest[number] = str(message["id"])

    def _readable(self, path: dict[str, str]) -> int:
        number = int(path["channel"])
        if number in self.unreadable:
            raise Refusal(403, 50001)
        return number

    def _writable(self, path: dict[str, str]) -> int:
        channel = int(path["channel"])
        if channel in self.blocked:
            raise Refusal(403, 50007)
        return channel

    def _shown(self, said: Said) -> Obj:
        shown = self.write.message(said.texts[-1], sender=ME, where=said.channel)
        return shown | {"id": str(said.id), "flags": said.params.get("flags", 0), "nonce": said.params.get("nonce")}


def _stored(message: Obj) -> Obj:
    """Return a message as it is read later: the server and the kind of channel are said only when it is new."""
    return {key: value for key, value in message.items() if key not in {"guild_id", "member", "channel_type"}}


def _text(params: Obj) -> str:
    text = str(params.get("content") or "")
    if not text.strip():
        raise Refusal(400, 50006)
    if len(text) > LONGEST:
        reason = {"code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer in length."}
        raise Refusal(400, 50035, errors={"content": {"_errors": [reason]}})
    return text


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Answer with exactly the content type that clients look for."""
    if status == 204:
        return web.Response(status=status, headers=headers)
    data = json.dumps(body).encode()
    return web.Response(body=data, status=status, headers={**(headers or {}), "Content-Type": "application/json"})

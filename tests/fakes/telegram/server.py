"""The Bot API: methods over HTTP, long polls that confirm by offset, one poller per token."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self, Unpack

from aiohttp import web

from commands.budget import utf16_length
from tests.fakes.telegram.faults import Fault, How
from tests.fakes.telegram.updates import ME, Obj, Writer

LONGEST = 4_096
TOKEN = "700700:fake-token-of-a-fake-bot"


class Refusal(Exception):
    """A call the server refuses."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.body = {"ok": False, "error_code": status, "description": description}


@dataclass(slots=True)
class Said:
    """One message of the bot: every text it had, the last one is what reads now."""

    chat: int
    id: int
    texts: list[str]
    params: Obj
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it arrived."""

    method: str
    params: Obj = field(default_factory=dict)


class FakeTelegram:
    """``async with FakeTelegram() as platform``: point a client at :attr:`api` with :attr:`token`.

    Let people speak with :meth:`deliver`, look at :attr:`said`, :attr:`drafts`, :attr:`menus` and :attr:`calls`, break
    calls with :meth:`fail`, forbid a chat with :attr:`blocked`.
    """

    def __init__(self) -> None:
        self.token = TOKEN
        self.api = ""
        self.write = Writer()
        self.calls: list[Call] = []
        self.said: list[Said] = []
        self.drafts: list[tuple[int, int, str]] = []
        self.offers_drafts = True
        self.draftless: set[int] = set()
        """Chats that take no drafts."""
        self.menus: dict[str | None, list[Obj]] = {}
        self.files: dict[str, tuple[str, bytes]] = {}
        self.blocked: set[int] = set()
        self.webhook: str | None = None
        self.me: Obj = {}
        """What getMe says otherwise than usual."""
        self.pending: list[Obj] = []
        self.longest_poll = 60.0
        """Seconds after which a poll is answered, however long it would like to be held."""
        self.shuffle = False
        """Whether a poll hands its updates out in the wrong order."""
        self._faults: list[Fault] = []
        self._polls = 0
        self._handed_out: set[int] = set()
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._methods: dict[str, Callable[[Obj], Awaitable[object]]] = {
            "getme": self._get_me,
            "deletewebhook": self._delete_webhook,
            "setwebhook": self._set_webhook,
            "getwebhookinfo": self._get_webhook_info,
            "getupdates": self._get_updates,
            "sendmessage": self._send_message,
            "editmessagetext": self._edit_message_text,
            "sendmessagedraft": self._send_message_draft,
            "sendchataction": self._nothing_to_say,
            "setmycommands": self._set_my_commands,
            "getfile": self._get_file,
        }

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.api = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # -- what tests do ----------------------------------------------------------------------------------------------

    async def deliver(self, *updates: Obj) -> None:
        """Put updates up for the next poll."""
        self.pending += updates
        await self._tell()

    async def taken(self, update: Obj) -> None:
        """Wait until the bot has confirmed an update."""
        await self.until(lambda: not any(waiting is update for waiting in self.pending))

    async def until(self, condition: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something here has become true."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(condition)

    def fail(self, method: str, **how: Unpack[How]) -> None:
        """Let calls of a method go wrong; see :class:`Fault`."""
        self._faults.append(Fault(method.lower(), **how))

    def forgive(self) -> None:
        """Let everything go well from now on."""
        self._faults.clear()

    def count(self, method: str) -> int:
        """Count the calls of a method."""
        return sum(call.method == method.lower() for call in self.calls)

    def texts(self, chat: int) -> list[str]:
        """Return how the bot's messages in a chat read now."""
        return [said.texts[-1] for said in self.said if said.chat == chat]

    # -- the socket -------------------------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"].lower()
        call = Call(method, await _params(request))
        self.calls.append(call)
        await self._tell()
        if request.match_info["token"] != self.token:
            return _json({"ok": False, "error_code": 401, "description": "Unauthorized"})
        fault = next((fault for fault in self._faults if fault.hits(method)), None)
        if fault is not None:
            return await self._spoilt(request, call, fault)
        return await self._answer(call)

    async def _answer(self, call: Call) -> web.Response:
        handler = self._methods.get(call.method)
        if handler is None:
            return _json({"ok": False, "error_code": 404, "description": "Not Found"})
        try:
            result = await handler(call.params)
        except Refusal as refusal:
            return _json(refusal.body)
        finally:
            await self._tell()
        return _json({"ok": True, "result": result})

    async def _spoilt(self, request: web.Request, call: Call, fault: Fault) -> web.StreamResponse:
        if fault.effect:
            await self._answer(call)
        if fault.hold is not None:
            await fault.hold.wait()
        if fault.drop:
            assert request.transport is not None
            request.transport.abort()
        page = "<html><h1>502 Bad Gateway</h1></html>" if fault.status == 502 else fault.page
        if page is not None:
            return web.Response(status=fault.status, text=page, content_type="text/html")
        return await self._answer(call) if fault.status == 200 and not fault.drop else _json(fault.body)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _download(self, request: web.Request) -> web.Response:
        found = dict(self.files.values()).get(request.match_info["path"])
        if found is None or request.match_info["token"] != self.token:
            raise web.HTTPNotFound
        return web.Response(body=found)

    # -- the methods ------------------------------------------------------------------------------------------------

    async def _get_me(self, params: Obj) -> object:
        return ME | self.me

    async def _delete_webhook(self, params: Obj) -> object:
        self.webhook = None
        if params.get("drop_pending_updates") in (True, "true"):
            self.pending.clear()
        return True

    async def _set_webhook(self, params: Obj) -> object:
        self.webhook = str(params["url"])
        return True

    async def _get_webhook_info(self, params: Obj) -> object:
        return {"url": self.webhook or "", "has_custom_certificate": False, "pending_update_count": len(self.pending)}

    async def _get_updates(self, params: Obj) -> object:
        if self.webhook:
            raise Refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook")
        offset, timeout = int(str(params.get("offset") or 0)), float(str(params.get("timeout") or 0))
        if offset > 0:
            self.pending = [
                update
                for update in self.pending
                if int(str(update["update_id"])) >= offset or id(update) not in self._handed_out
            ]
        self._polls += 1
        poll = self._polls
        await self._tell()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(timeout, self.longest_poll)), self._changed:
                await self._changed.wait_for(lambda: self.pending or self._polls != poll)
        if self._polls != poll:
            raise Refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot runs")
        updates = sorted(self.pending, key=lambda update: int(str(update["update_id"])))
        updates = updates[: int(str(params.get("limit") or 100))]
        self._handed_out |= {id(update) for update in updates}
        return updates[::-1] if self.shuffle else updates

    async def _send_message(self, params: Obj) -> object:
        chat, text = self._writable(params)
        if not text.strip():
            raise Refusal(400, "Bad Request: message text is empty")
        thread = int(str(params["message_thread_id"])) if params.get("message_thread_id") else None
        said = Said(chat, self.write.message_id(), [text], params, thread)
        self.said.append(said)
        return self._shown(said)

    async def _edit_message_text(self, params: Obj) -> object:
        chat, text = self._writable(params)
        number = int(str(params["message_id"]))
        said = next((said for said in self.said if (said.chat, said.id) == (chat, number)), None)
        if said is None:
            raise Refusal(400, "Bad Request: message to edit not found")
        if said.texts[-1] == text:
            raise Refusal(400, "Bad Request: message is not modified: specified new message content is the same")
        said.texts.append(text)
        return self._shown(said)

    async def _send_message_draft(self, params: Obj) -> object:
        chat, text = self._writable(params)
        draft = int(str(params["draft_id"]))
        if not self.offers_drafts or chat < 0 or draft == 0:
            raise Refusal(404, "Not Found") if not self.offers_drafts else Refusal(400, "Bad Request: draft refused")
        if chat in self.draftless:
            raise Refusal(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
        self.drafts.append((chat, draft, text))
        return True

    async def _nothing_to_say(self, params: Obj) -> object:
        return True

    async def _set_my_commands(self, params: Obj) -> object:
        commands = params["commands"]
        language = params.get("language_code")
        listed = json.loads(commands) if isinstance(commands, str) else commands
        assert isinstance(listed, list)
        self.menus[str(language) if language else None] = listed
        return True

    async def _get_file(self, params: Obj) -> object:
        found = self.files.get(str(params["file_id"]))
        if found is None:
            raise Refusal(400, "Bad Request: invalid file_id")
        path, data = found
        return {"file_id": params["file_id"], "file_unique_id": "u", "file_size": len(data), "file_path": path}

    def _writable(self, params: Obj) -> tuple[int, str]:
        chat, text = int(str(params["chat_id"])), str(params.get("text", ""))
        if chat in self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        if utf16_length(text) > LONGEST:
            raise Refusal(400, "Bad Request: message is too long")
        return chat, text

    def _shown(self, said: Said) -> Obj:
        chat: Obj = {"id": said.chat, "type": "private" if said.chat > 0 else "supergroup"}
        return {"message_id": said.id, "date": 1_790_000_000, "from": ME, "chat": chat, "text": said.texts[-1]}


async def _params(request: web.Request) -> Obj:
    if request.content_type == "application/json":
        return dict(await request.json())
    return {**request.query, **{key: str(value) for key, value in (await request.post()).items()}}


def _json(body: Obj) -> web.Response:
    return web.json_response(body, status=int(str(body.get("error_code", 200))))

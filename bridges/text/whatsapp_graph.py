"""The calls one number makes to the Graph API. Nothing is repeated here: no call has a key that would make it safe."""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec
import structlog

from bridges.checkup import refused, unanswered
from bridges.http import CallFailed, Reply, Request, Unanswered, Unreached, exchange, new_session
from bridges.message import ChannelStopped, Clock, Noticed, NotSent, RetryAfter, SendOutcome, Sent, SentId, Sign, Stop
from bridges.text.whatsapp_codes import Slower, meaning
from bridges.text.whatsapp_parse import Route
from bridges.trusted import TrustedHosts, UntrustedHost

GRAPH: Final = "https://graph.facebook.com/v25.0"

UNREACHED_SECONDS: Final = 2.0
"""When to try again what never left this machine."""

DOWNLOAD_SECONDS: Final = 60.0

_FIELDS: Final = "display_phone_number,verified_name,health_status"
_BAD_PARAMETER: Final = 100
"""Also said of an id that is nobody's, and of a proof made with another app's secret."""

CHATS_REMEMBERED: Final = 1_024
"""Chats whose refusals in a row are counted."""

_FILES: Final = ("fbsbx.com", "facebook.com", "whatsapp.net")
"""Where files lie."""


class Refused(Exception):
    """WhatsApp said no. ``code`` is its own, None where it gave none; ``wait`` is how many seconds it asks to wait."""

    def __init__(self, call: str, status: int, code: int | None, wait: float | None) -> None:
        super().__init__(f"{call}: HTTP {status}, code {code}")
        self.status = status
        self.code = code
        self.wait = wait


class _Error(msgspec.Struct):
    code: int | None = None


class _Answer(msgspec.Struct):
    error: _Error | None = None


class _Named(msgspec.Struct):
    id: str | None = None


class _Entity(msgspec.Struct):
    entity_type: str = ""
    id: str = ""


class _Health(msgspec.Struct):
    can_send_message: str = ""
    entities: list[_Entity] = msgspec.field(default_factory=list)


class _Number(_Answer, kw_only=True):
    id: str | None = None
    display_phone_number: str = ""
    verified_name: str = ""
    health_status: _Health = msgspec.field(default_factory=_Health)


class _Subscription(msgspec.Struct):
    whatsapp_business_api_data: _Entity = msgspec.field(default_factory=_Entity)


class _Apps(_Answer):
    data: list[_Subscription] = msgspec.field(default_factory=list)


class _Posted(_Answer):
    messages: list[_Named] = msgspec.field(default_factory=list)


class _Media(_Answer):
    url: str = ""
    file_size: int | None = None


A = TypeVar("A", bound=_Answer)


class Graph:
    """Calls of one number. Must be made inside a running event loop.

    ``stop`` is told when the link cannot go on; ``api`` is another base, version included, in place of the public one.
    """

    def __init__(
        self, number_id: str, token: str, api: str | None, clock: Clock, stop: Callable[[ChannelStopped], None]
    ) -> None:
        self._base = (api or GRAPH).rstrip("/")
        self._number = f"/{quote(number_id, safe='')}"
        self._token = token
        self._files = TrustedHosts(_FILES, api)
        self._clock = clock
        self._stop = stop
        self._refusals: OrderedDict[str, int] = OrderedDict()
        self._http = new_session()
        self._log = structlog.get_logger(__name__)

    async def close(self) -> None:
        """Close every connection; again is no error."""
        await self._http.close()

    async def check(self) -> None:
        """Find out whether the token is good. Raises ChannelStopped; what says nothing about it is only logged."""
        try:
            await self._call("number", "GET", f"{self._number}?fields=id", _Answer)
        except Refused as error:
            if (stopped := meaning(error.code, error.status).stopped(error.code or 0)) is not None:
                raise stopped from None
            self._log.warning("number not checked", error=str(error))
        except CallFailed as error:
            self._log.warning("number not checked", error=str(error))

    async def look(self, app_secret: str) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`; registers and subscribes nothing."""
        try:
            number = await self._call("number", "GET", f"{self._number}?fields={_FIELDS}", _Number)
        except (Refused, CallFailed) as error:
            return (_unseen(error, "phone_number_id"),)
        if number.id is None:
            return (Noticed(Sign.UNREADABLE, "number: no id"),)
        who = " ".join(filter(None, (number.display_phone_number, number.verified_name))) or self._number[1:]
        health = number.health_status
        restricted = (Noticed(Sign.RESTRICTED),) if health.can_send_message == "BLOCKED" else ()
        return (
            Noticed(Sign.ACCEPTED, who),
            *restricted,
            *await self._proven(app_secret),
            *await self._subscribed(health),
        )

    async def _proven(self, app_secret: str) -> tuple[Noticed, ...]:
        """Look whether token and secret are of the same app: Meta checks this proof wherever it is given."""
        proof = hmac.new(app_secret.encode(), self._token.encode(), hashlib.sha256).hexdigest()
        try:
            await self._call("proof", "GET", f"{self._number}?fields=id&appsecret_proof={proof}", _Answer)
        except (Refused, CallFailed) as error:
            return (_unseen(error, "app_secret"),)
        return ()

    async def _subscribed(self, health: _Health) -> tuple[Noticed, ...]:
        """Look whether the number's account sends its messages to the token's app."""
        ids = {entity.entity_type: entity.id for entity in health.entities}
        if not ids.get("WABA"):
            return (Noticed(Sign.NOT_TOLD),)
        try:
            told = await self._call("apps", "GET", f"/{quote(ids['WABA'], safe='')}/subscribed_apps", _Apps)
        except Refused:
            return (Noticed(Sign.NOT_TOLD),)
        except CallFailed as error:
            return (unanswered(error),)
        apps = {each.whatsapp_business_api_data.id for each in told.data}
        ours = ids.get("APP")
        return () if (ours in apps if ours else apps) else (Noticed(Sign.NOT_SUBSCRIBED),)

    async def send(self, route: Route, text: str) -> SendOutcome:
        """Send one message. Where a person's user id and phone number are both known, WhatsApp goes by the number."""
        if route.group is not None:
            to = {"recipient_type": "group", "to": route.group}
        else:
            known = {"to": route.phone, "recipient": route.user}
            to = {"recipient_type": "individual", **{name: value for name, value in known.items() if value}}
        chat = route.group or route.user or route.phone or ""
        body = {**to, "type": "text", "text": {"body": text, "preview_url": False}}
        try:
            posted = await self._post("message", body, _Posted)
        except Refused as error:
            return self._refused(error, chat)
        except Unreached as error:
            self._log.warning("not sent", error=str(error))
            return RetryAfter(UNREACHED_SECONDS)
        except CallFailed as error:
            self._log.warning("perhaps not sent", error=str(error))
            return NotSent.UNKNOWN
        self._refusals.pop(chat, None)
        name = posted.messages[0].id if posted.messages else None
        return Sent(SentId(name) if name else None)

    async def read(self, message: str, *, typing: bool) -> None:
        """Mark a message as read, and show that the bot is typing if so; best effort, never raises."""
        body: dict[str, object] = {"status": "read", "message_id": message}
        if typing:
            body["typing_indicator"] = {"type": "text"}
        try:
            await self._post("read mark", body, _Answer)
        except (Refused, CallFailed) as error:
            self._log.info("not marked as read", error=str(error))

    async def fetch(self, media: str, limit: int) -> bytes:
        """Fetch a file of at most ``limit`` bytes. Raises OSError."""
        try:
            found = await self._call("file", "GET", f"/{quote(media, safe='')}", _Media)
            if (found.file_size or 0) > limit:
                raise OSError("the file is too large")
            request = self._request("GET", self._files.check(found.url))
            reply = await exchange(self._http, self._clock, "file", request, seconds=DOWNLOAD_SECONDS, limit=limit)
        except UntrustedHost:
            raise OSError("the file is not on a host of WhatsApp") from None
        except (Refused, CallFailed) as error:
            raise OSError(str(error)) from None
        if reply.status != 200:
            raise OSError(f"file: HTTP {reply.status}")
        return reply.body

    def report(self, code: int) -> None:
        """Act on a message that was taken and then not delivered, as its code says."""
        told = meaning(code, 200)
        self._log.error("a message was not delivered", code=code, advice=told.advice)
        if (stopped := told.stopped(code)) is not None:
            self._stop(stopped)

    def _refused(self, error: Refused, chat: str) -> SendOutcome:
        told = meaning(error.code, error.status)
        self._log.warning("not sent", error=str(error), advice=told.advice)
        if (stopped := told.stopped(error.code or 0)) is not None:
            self._stop(stopped)
        if not isinstance(told.outcome, Slower):
            self._refusals.pop(chat, None)
            return told.outcome
        refusals = self._refusals.pop(chat, 0) + 1
        self._refusals[chat] = refusals
        while len(self._refusals) > CHATS_REMEMBERED:
            self._refusals.popitem(last=False)
        return RetryAfter(max(error.wait or 0.0, told.outcome.wait(refusals)))

    async def _post(self, call: str, body: Mapping[str, object], answer: type[A]) -> A:
        return await self._call(
            call, "POST", f"{self._number}/messages", answer, {"messaging_product": "whatsapp", **body}
        )

    async def _call(
        self, call: str, method: str, path: str, answer: type[A], body: Mapping[str, object] | None = None
    ) -> A:
        """Make one call. Raises Refused, CallFailed."""
        request = self._request(method, f"{self._base}{path}")
        if body is not None:
            request["headers"] = {**request.get("headers", {}), "Content-Type": "application/json"}
            request["data"] = msgspec.json.encode(body)
        return _read(call, await exchange(self._http, self._clock, call, request), answer)

    def _request(self, method: str, url: str) -> Request:
        return Request(method=method, url=url, headers={"Authorization": f"Bearer {self._token}"})


def _unseen(error: Refused | CallFailed, credential: str) -> Noticed:
    """Return what a call shows that was not answered; ``credential`` is what it cannot be made with."""
    if isinstance(error, CallFailed):
        return unanswered(error)
    told = meaning(error.code, error.status)
    if told.stop is Stop.NEEDS_LOGIN:
        return Noticed(Sign.BAD_CREDENTIAL, "access_token")
    if told.stop is not None:
        return Noticed(Sign.RESTRICTED)
    if error.code == _BAD_PARAMETER:
        return Noticed(Sign.BAD_CREDENTIAL, credential)
    return refused(429 if isinstance(told.outcome, Slower) else error.status, error.code or "")


def _read(call: str, reply: Reply, answer: type[A]) -> A:
    """Decode an answer and look for a refusal in it. Raises Refused, Unanswered."""
    try:
        found = msgspec.json.decode(reply.body, type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if reply.status >= 400:
            raise Refused(call, reply.status, None, _wait(reply)) from None
        raise Unanswered(f"{call}: HTTP {reply.status} with no answer to read") from None
    if found.error is not None or reply.status != 200:
        raise Refused(call, reply.status, found.error.code if found.error else None, _wait(reply))
    return found


def _wait(reply: Reply) -> float | None:
    text = reply.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None

"""Feishu's HTTP API: the tenant's token, calls with it, and what the answers say.

Refusals come with any status, also with 200: the code decides, and the status only where there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from bridges.bearer import Bearer, Grant
from bridges.http import BODY_LIMIT, CALL_SECONDS, Reply, Request, Unanswered, exchange, new_session
from harness_client.clock import Clock

FEISHU: Final = "https://open.feishu.cn"
_TOKEN: Final = "/auth/v3/tenant_access_token/internal"  # noqa: S105 - a path

RENEW_SECONDS: Final = 300.0
"""Before its end a token is renewed; in its last half hour the platform gives a new one."""

DOWNLOAD_SECONDS: Final = 60.0

_BAD_SECRET: Final = frozenset({10003, 10014})
_TOKEN_CODES: Final = frozenset({99991661, 99991663, 99991664, 99991665, 99991668})
"""The token is missing, wrong or over."""


class Refused(Exception):
    """The platform said no. ``code`` is its own, 0 where it gave none; ``seconds`` is how long it asks to wait."""

    def __init__(self, call: str, status: int, code: int, seconds: float | None = None) -> None:
        super().__init__(f"{call}: HTTP {status}, code {code}")
        self.status = status
        self.code = code
        self.seconds = seconds

    @property
    def unauthorized(self) -> bool:
        """Whether a new token may help."""
        return self.code in _TOKEN_CODES or (self.status == 401 and not self.code)


class BadSecret(Exception):
    """The app's id or its secret is wrong: no token will ever come of them."""


class Answer(msgspec.Struct):
    """What every answer holds."""

    code: int | None = None


class TenantToken(Answer):
    """A token and its life in seconds."""

    tenant_access_token: str = ""
    expire: float = 0


class _Bot(msgspec.Struct):
    open_id: str
    app_name: str = ""
    activate_status: int | None = None


class BotInfo(Answer):
    """Who we are; None where the app is no bot."""

    bot: _Bot | None = None


class _Scope(msgspec.Struct):
    scope_name: str = ""
    grant_status: int = 0


class _ScopeList(msgspec.Struct):
    scopes: list[_Scope] = msgspec.field(default_factory=list)


class Scopes(Answer):
    """What the app was granted in its tenant, and what it asked for and was not."""

    data: _ScopeList = msgspec.field(default_factory=_ScopeList)


class _Posted(msgspec.Struct):
    message_id: str


class Posted(Answer):
    """The platform's id of our message."""

    data: _Posted | None = None


class _NewCard(msgspec.Struct):
    card_id: str


class NewCard(Answer):
    """The platform's id of our card."""

    data: _NewCard | None = None


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Application:
    """A bot's app; ``domain`` is where its tenant lives: Feishu, Lark, or another address in their place."""

    id: str
    secret: str = field(repr=False)
    domain: str = FEISHU


class Rest:
    """Calls of one app. Must be made inside a running event loop."""

    def __init__(self, application: Application, clock: Clock, hide: Callable[[str], None]) -> None:
        """Open no connection yet; ``hide`` keeps tokens out of the log."""
        self._application = application
        self._api = f"{application.domain.rstrip('/')}/open-apis"
        self._clock = clock
        self._http = new_session()
        self._bearer = Bearer(self._granted, clock, hide, early=RENEW_SECONDS)
        self.locked_out = asyncio.Event()
        """Set once the app's secret is not accepted any more."""

    async def close(self) -> None:
        """Close every connection; again is no error."""
        await self._http.close()

    async def call(
        self,
        method: str,
        path: str,
        answer: type[A],
        *ids: str,
        body: Mapping[str, object] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> A:
        """Make one call; ``ids`` fill the gaps of ``path``, which names the call in errors.

        A refused token is replaced once. Raises CallFailed, Refused, BadSecret.
        """
        request = Request(method=method, url=self._url(path, ids), params=params)
        if body is not None:
            request["data"] = msgspec.json.encode(body)
        return _read(path, await self._authorized(path, request), answer)

    async def download(self, path: str, *ids: str, params: Mapping[str, str], limit: int) -> bytes:
        """Fetch at most ``limit`` bytes. Raises as :meth:`call`."""
        request = Request(method="GET", url=self._url(path, ids), params=params)
        return (await self._authorized(path, request, limit=limit)).body

    def _url(self, path: str, ids: tuple[str, ...]) -> str:
        return self._api + path.format(*(quote(each, safe="") for each in ids))

    async def _authorized(self, path: str, request: Request, limit: int | None = None) -> Reply:
        token = await self._bearer.get()
        try:
            return await self._exchange(path, request, token, limit)
        except Refused as error:
            if not error.unauthorized:
                raise
        self._bearer.forget(token)
        return await self._exchange(path, request, await self._bearer.get(), limit)

    async def _exchange(self, path: str, request: Request, token: str | None, limit: int | None = None) -> Reply:
        """Make one request, with ``limit`` for a file, and look for a refusal in the answer."""
        request["headers"] = {"Content-Type": "application/json; charset=utf-8"}
        if token is not None:
            request["headers"] = {**request["headers"], "Authorization": f"Bearer {token}"}
        seconds = CALL_SECONDS if limit is None else DOWNLOAD_SECONDS
        reply = await exchange(self._http, self._clock, path, request, seconds=seconds, limit=limit or BODY_LIMIT)
        if limit is None or reply.status >= 300:  # what a person sent may look like a refusal
            _check(path, reply)
        return reply

    async def _granted(self) -> Grant:
        body = {"app_id": self._application.id, "app_secret": self._application.secret}
        request = Request(method="POST", url=self._api + _TOKEN, data=msgspec.json.encode(body))
        try:
            found = _read(_TOKEN, await self._exchange(_TOKEN, request, None), TenantToken)
        except Refused as error:
            if error.code not in _BAD_SECRET:
                raise
            self.locked_out.set()
            raise BadSecret from None
        if not found.tenant_access_token or found.expire <= 0:
            raise Unanswered(f"{_TOKEN}: the answer is not what it should be")
        return Grant(found.tenant_access_token, found.expire)


def _check(call: str, reply: Reply) -> None:
    """Raise what an answer that is none amounts to: Refused or Unanswered."""
    try:
        code = msgspec.json.decode(reply.body or b"{}", type=Answer).code or 0
    except (msgspec.DecodeError, UnicodeDecodeError):
        code = 0
    if reply.status >= 500 and not code:
        raise Unanswered(f"{call}: HTTP {reply.status}")
    if reply.status >= 300 or code:
        raise Refused(call, reply.status, code, _wait(reply))


def _read(call: str, reply: Reply, answer: type[A]) -> A:
    try:
        return msgspec.json.decode(reply.body, type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unanswered(f"{call}: the answer is not what it should be") from None


def _wait(reply: Reply) -> float | None:
    """Return the seconds the platform asks to wait, by the name it uses itself or by the common one."""
    text = reply.headers.get("x-ogw-ratelimit-reset") or reply.headers.get("Retry-After") or ""
    return float(text) if text.isdecimal() else None

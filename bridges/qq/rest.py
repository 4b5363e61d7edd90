"""QQ's HTTP API: the access token, calls with it, and what the answers say.

Business errors come with any status, also with 200; the status decides only where no code is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from bridges.bearer import Bearer, Grant
from bridges.http import Reply, Request, Unanswered, exchange, new_session
from harness_client.clock import Clock

API: Final = "https://api.sgroup.qq.com"
TOKEN: Final = "https://bots.qq.com"  # noqa: S105 - an address
TOKEN_PATH: Final = "/app/getAppAccessToken"  # noqa: S105 - a path

RENEW_SECONDS: Final = 50.0
"""Before its end a token is renewed; in the last 60 seconds a new one is given and the old one still works."""

BAD_SECRET: Final = 100016
DOWNLOAD_SECONDS: Final = 60.0

_TOKEN_CODES: Final = frozenset({11241, 11242, 11243, 11244})
"""The token is missing, wrong or over."""


AUDITED: Final = frozenset({304023, 304024})
"""Taken, and shown once a person of the platform has looked at it."""


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
        return self.status == 401 or self.code in _TOKEN_CODES


class BadSecret(Exception):
    """The application id or its secret is wrong: no token will ever come of them."""


class Answer(msgspec.Struct):
    """What every answer may hold."""

    code: int | None = None
    err_code: int | None = None


class AccessToken(Answer):
    """A token; its life in seconds comes as a string."""

    access_token: str = ""
    expires_in: str | int = 0


class GatewayAddress(Answer):
    """Where to connect."""

    url: str = ""


class Posted(Answer):
    """The platform's id of our message."""

    id: str | None = None


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Application:
    """A bot's application; ``api`` and ``token`` take the place of the public addresses."""

    id: str
    secret: str = field(repr=False)
    api: str | None = None
    token: str | None = None


class Rest:
    """Calls of one application. Must be made inside a running event loop."""

    def __init__(self, application: Application, clock: Clock, hide: Callable[[str], None]) -> None:
        """Open no connection yet; ``hide`` keeps tokens out of the log."""
        self._application = application
        self._api = (application.api or API).rstrip("/")
        self._token_url = _token_url(application.token or TOKEN)
        self._clock = clock
        self._bearer = Bearer(self._granted, clock, hide, early=RENEW_SECONDS)
        self.http = new_session()

    async def close(self) -> None:
        """Close every connection; again is no error."""
        await self.http.close()

    async def token(self) -> str:
        """Return a token that is good for some time. Raises CallFailed, Refused, BadSecret."""
        return await self._bearer.get()

    def forget(self, token: str) -> None:
        """Say that ``token`` was refused: the next call gets another one."""
        self._bearer.forget(token)

    async def call(self, method: str, path: str, answer: type[A], body: Mapping[str, object] | None = None) -> A:
        """Make one call; a refused token is replaced once. Raises CallFailed, Refused, BadSecret."""
        token = await self.token()
        try:
            return await self._call(method, path, answer, body, token)
        except Refused as error:
            if not error.unauthorized:
                raise
        self.forget(token)
        return await self._call(method, path, answer, body, await self.token())

    async def download(self, url: str, limit: int) -> bytes:
        """Fetch at most ``limit`` bytes without a token; the caller has checked the address. Raises as :meth:`call`."""
        request = Request(method="GET", url=url)
        reply = await exchange(self.http, self._clock, "file", request, seconds=DOWNLOAD_SECONDS, limit=limit)
        if reply.status != 200:
            raise Refused("file", reply.status, 0)
        return reply.body

    async def _call(self, method: str, path: str, answer: type[A], body: Mapping[str, object] | None, token: str) -> A:
        headers = {"Authorization": f"QQBot {token}", "X-Union-Appid": self._application.id}
        request = Request(method=method, url=f"{self._api}{path}", headers=headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
            request["data"] = msgspec.json.encode(body)
        name = path.rpartition("/")[2]
        return _read(name, await exchange(self.http, self._clock, name, request), answer)

    async def _granted(self) -> Grant:
        body = msgspec.json.encode({"appId": self._application.id, "clientSecret": self._application.secret})
        headers = {"Content-Type": "application/json"}
        request = Request(method="POST", url=self._token_url, headers=headers, data=body)
        try:
            found = _read("token", await exchange(self.http, self._clock, "token", request), AccessToken)
        except Refused as error:
            if error.code == BAD_SECRET:
                raise BadSecret from None
            raise
        if not found.access_token or not str(found.expires_in).isdecimal():
            raise Unanswered("token: the answer is not what it should be")
        return Grant(found.access_token, float(found.expires_in))


def _token_url(given: str) -> str:
    """Return the whole address of the token call, given it or its base."""
    base = given.rstrip("/")
    return base if base.partition("://")[2].count("/") else base + TOKEN_PATH


def _read(call: str, reply: Reply, answer: type[A]) -> A:
    """Decode an answer and look for a refusal in it."""
    try:
        found = msgspec.json.decode(reply.body or b"{}", type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if 300 <= reply.status < 500:
            raise Refused(call, reply.status, 0, _wait(reply)) from None
        raise Unanswered(f"{call}: HTTP {reply.status} with no answer to read") from None
    code = found.err_code or found.code or 0
    if reply.status >= 500 and not code:
        raise Unanswered(f"{call}: HTTP {reply.status}")
    if reply.status >= 300 or (code and code not in AUDITED):
        raise Refused(call, reply.status, code, _wait(reply))
    return found


def _wait(reply: Reply) -> float | None:
    text = reply.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None

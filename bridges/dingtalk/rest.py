"""DingTalk's HTTP API: where to connect, the access token, calls with it, and the webhook of a conversation.

The webhook says no with HTTP 200 and an ``errcode``; everything else with a status and a code in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import aiohttp
import msgspec

from bridges import shown
from bridges.bearer import Bearer, Grant
from bridges.http import Reply, Request, Unanswered, exchange, new_session
from bridges.trusted import TrustedHosts
from harness_client.clock import Clock

API: Final = "https://api.dingtalk.com"
DOMAINS: Final = ("dingtalk.com",)
FILE_DOMAINS: Final = ("dingtalk.com", "aliyuncs.com", "alicdn.com")
"""Files lie in Alibaba's object storage."""

RENEW_SECONDS: Final = 300.0
"""Before its end a token is renewed."""

DOWNLOAD_SECONDS: Final = 60.0
_TOKEN: Final = "/v1.0/oauth2/accessToken"  # noqa: S105 - a path


class Refused(Exception):
    """The platform said no. ``code`` is its own word or number, empty where it gave none."""

    def __init__(self, call: str, status: int, code: str, seconds: float | None = None) -> None:
        super().__init__(f"{call}: HTTP {status}, code {shown.code(code) or 'none'}")
        self.status = status
        self.code = code
        self.seconds = seconds
        """How long it asks to wait, if it says so."""

    @property
    def unauthorized(self) -> bool:
        """Whether a new token may help."""
        return self.status == 401 or self.code == "InvalidAuthentication"

    @property
    def too_fast(self) -> bool:
        """Whether it was one call too many; the API says so under several statuses."""
        return self.status == 429 or "throttl" in self.code.lower() or "qpslimit" in self.code.lower()


class BadSecret(Exception):
    """The client id or its secret is wrong: nothing will ever come of them."""


class Answer(msgspec.Struct):
    """Nothing of it is of interest but that it came."""


class _Refusal(msgspec.Struct):
    code: str | int | None = None
    errcode: int | None = None
    success: bool | None = None

    @property
    def said(self) -> bool:
        """Whether it is one, whatever the status."""
        return bool(self.errcode) or self.success is False


class Endpoint(Answer):
    """Where to connect, once, within about 90 seconds."""

    endpoint: str = ""
    ticket: str = ""


class AccessToken(Answer, rename="camel"):
    """A token and its life in seconds."""

    access_token: str = ""
    expire_in: float = 0


class Posted(Answer, rename="camel"):
    """The platform's id of our message, and the people it did not go to."""

    process_query_key: str | None = None
    invalid_staff_id_list: list[str] | None = None
    flow_controlled_staff_id_list: list[str] | None = None


class _Webhook(Answer):
    errcode: int


class _Space(msgspec.Struct):
    success: bool = True


class Delivered(Answer):
    """Where a card was put; each place says by itself whether it took it."""

    result: list[_Space] | bool | str | None = None

    @property
    def everywhere(self) -> bool:
        """Whether nobody refused it."""
        return not isinstance(self.result, list) or all(space.success for space in self.result)


class Download(Answer, rename="camel"):
    """Where a file lies for some time."""

    download_url: str = ""


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Application:
    """A bot's application; ``api`` takes the place of the public address."""

    client_id: str
    client_secret: str = field(repr=False)
    api: str | None = None


class Rest:
    """Calls of one application. Must be made inside a running event loop."""

    def __init__(self, application: Application, clock: Clock, hide: Callable[[str], None]) -> None:
        """Open no connection yet; ``hide`` keeps tokens out of the log."""
        self._application = application
        self._api = (application.api or API).rstrip("/")
        self._clock = clock
        self._bearer = Bearer(self._granted, clock, hide, early=RENEW_SECONDS)
        self.hosts = TrustedHosts(DOMAINS, application.api)
        self._files = TrustedHosts(FILE_DOMAINS, application.api)
        self.http: aiohttp.ClientSession = new_session()

    async def close(self) -> None:
        """Close every connection; again is no error."""
        await self.http.close()

    async def endpoint(self, topic: str) -> Endpoint:
        """Ask where callbacks of ``topic`` will come from. Raises CallFailed, Refused, BadSecret."""
        path = "/v1.0/gateway/connections/open"
        body = {
            "clientId": self._application.client_id,
            "clientSecret": self._application.client_secret,
            "subscriptions": [{"type": "CALLBACK", "topic": topic}],
            "ua": "harness-im",
        }
        try:
            return _read(path, await self._exchange("POST", path, body, None), Endpoint)
        except Refused as error:
            if error.status == 401:
                raise BadSecret from None
            raise

    async def token(self) -> str:
        """Return an access token. Raises CallFailed, Refused, BadSecret."""
        return await self._bearer.get()

    async def call(self, method: str, path: str, answer: type[A], body: Mapping[str, object]) -> A:
        """Make one call; a refused token is replaced once. Raises CallFailed, Refused, BadSecret."""
        token = await self._bearer.get()
        try:
            return _read(path, await self._exchange(method, path, body, token), answer)
        except Refused as error:
            if not error.unauthorized:
                raise
        self._bearer.forget(token)
        return _read(path, await self._exchange(method, path, body, await self._bearer.get()), answer)

    async def webhook(self, url: str, body: Mapping[str, object]) -> None:
        """Post to a conversation's webhook. Raises CallFailed, Refused, UntrustedHost."""
        headers = {"Content-Type": "application/json"}
        self.hosts.check(url)
        request = Request(method="POST", url=url, headers=headers, data=msgspec.json.encode(body))
        _read("webhook", await exchange(self.http, self._clock, "webhook", request), _Webhook)

    async def download(self, robot: str, code: str, limit: int) -> bytes:
        """Fetch a file of at most ``limit`` bytes. Raises CallFailed, Refused, BadSecret, UntrustedHost."""
        body = {"robotCode": robot, "downloadCode": code}
        url = (await self.call("POST", "/v1.0/robot/messageFiles/download", Download, body)).download_url
        if self._application.api is None:
            url = url.replace("http://", "https://", 1)  # the platform gives out both
        request = Request(method="GET", url=self._files.check(url))
        reply = await exchange(self.http, self._clock, "file", request, seconds=DOWNLOAD_SECONDS, limit=limit)
        if reply.status != 200:
            raise Refused("file", reply.status, "")
        return reply.body

    async def _exchange(self, method: str, path: str, body: Mapping[str, object], token: str | None) -> Reply:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            headers["x-acs-dingtalk-access-token"] = token
        request = Request(method=method, url=self._api + path, headers=headers, data=msgspec.json.encode(body))
        return await exchange(self.http, self._clock, path, request)

    async def _granted(self) -> Grant:
        body = {"appKey": self._application.client_id, "appSecret": self._application.client_secret}
        try:
            found = _read(_TOKEN, await self._exchange("POST", _TOKEN, body, None), AccessToken)
        except Refused as error:
            if error.status in {400, 401, 403} and not error.too_fast:
                raise BadSecret from None
            raise
        if not found.access_token or found.expire_in <= 0:
            raise Unanswered(f"{_TOKEN}: the answer is not what it should be")
        return Grant(found.access_token, found.expire_in)


def _read(call: str, reply: Reply, answer: type[A]) -> A:
    """Decode an answer and look for a refusal in it."""
    try:
        refusal = msgspec.json.decode(reply.body or b"{}", type=_Refusal)
        if reply.status < 300 and not refusal.said:
            return msgspec.json.decode(reply.body or b"{}", type=answer, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if not 300 <= reply.status < 500:
            raise Unanswered(f"{call}: HTTP {reply.status} with no answer to read") from None
        refusal = _Refusal()
    code = str(refusal.errcode or refusal.code or "")
    if reply.status >= 500 and not code:
        raise Unanswered(f"{call}: HTTP {reply.status}")
    wait = reply.headers.get("Retry-After", "")
    raise Refused(call, reply.status, code, float(wait) if wait.isdecimal() else None)

"""The iLink API: headers, bodies, and what its answers say.

A refusal comes as HTTP 200 with ``ret`` or ``errcode``.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from importlib import metadata
from typing import Final, Self, TypeVar

import msgspec

from bridges.http import CALL_SECONDS, CallFailed, Reply, Request, Unanswered, exchange, new_session
from harness_client.clock import Clock

VERSION: Final = (2, 4, 9)
"""The version of the protocol we speak, as the platform counts it."""

DOWNLOAD_SECONDS: Final = 60.0

LOGIN_GONE: Final = -14
"""The account was bound elsewhere or logged out: only a person with the phone can help."""

HELD_BACK: Final = -2
"""One code for a closed window, too many replies, too fast, too long: a later message opens it again."""


class Refused(CallFailed):
    """The platform said no. ``code`` is its ``errcode`` or ``ret``, or an HTTP status from 300 to 499."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: {code}")
        self.code = code


class Answer(msgspec.Struct):
    """What every answer may hold."""

    ret: int | None = None
    errcode: int | None = None


class Updates(Answer):
    """A batch. Messages are decoded one by one, so that an odd one does not hold up the others."""

    msgs: list[msgspec.Raw] | None = None
    get_updates_buf: str | None = None
    longpolling_timeout_ms: float | None = None


class SendResult(Answer):
    """The platform's id of our message; a uint64, sometimes quoted."""

    message_id: int | str | None = None


class ChatConfig(Answer):
    """What the typing sign needs."""

    typing_ticket: str | None = None


class QrCode(Answer, kw_only=True):
    """A login: ``qrcode`` names it, ``qrcode_img_content`` is the address to show as a QR code."""

    qrcode: str
    qrcode_img_content: str


class QrStatus(Answer, kw_only=True):
    """How far a login came."""

    status: str
    bot_token: str | None = None
    ilink_bot_id: str | None = None
    ilink_user_id: str | None = None
    baseurl: str | None = None
    redirect_host: str | None = None


A = TypeVar("A", bound=Answer)

_APP_HEADERS: Final = {
    "iLink-App-Id": "bot",
    "iLink-App-ClientVersion": str(VERSION[0] << 16 | VERSION[1] << 8 | VERSION[2]),
}


class Wire:
    """Calls to one base address with one token. Use it as a context, or :meth:`close` it. Retries nothing."""

    def __init__(self, base: str, token: str, clock: Clock) -> None:
        """Open no connection yet; must be made inside a running event loop."""
        self._base = base
        self._token = token
        self._clock = clock
        self._base_info = {
            "channel_version": ".".join(map(str, VERSION)),
            "bot_agent": f"harness-im/{metadata.version('harness-im')}",
        }
        self._http = new_session()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; again is no error."""
        await self._http.close()

    async def post(
        self,
        call: str,
        body: Mapping[str, object],
        answer: type[A],
        *,
        params: Mapping[str, str] | None = None,
        seconds: float = CALL_SECONDS,
    ) -> A:
        """Make one call with the token. Raises CallFailed."""
        headers = _APP_HEADERS | {
            "Content-Type": "application/json",
            "AuthorizationType": "ilink_bot_token",
            "X-WECHAT-UIN": base64.b64encode(str(secrets.randbits(32)).encode()).decode(),
        }
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = msgspec.json.encode({**body, "base_info": self._base_info})
        request = Request(method="POST", url=_url(self._base, call), headers=headers, params=params, data=data)
        return _read(call, await exchange(self._http, self._clock, call, request, seconds=seconds), answer)

    async def get(
        self, call: str, params: Mapping[str, str], answer: type[A], *, base: str, seconds: float = CALL_SECONDS
    ) -> A:
        """Make one call without a token, where ``base`` says. Raises CallFailed."""
        request = Request(method="GET", url=_url(base, call), headers=_APP_HEADERS, params=params)
        return _read(call, await exchange(self._http, self._clock, call, request, seconds=seconds), answer)

    async def download(self, url: str, limit: int, *, seconds: float = DOWNLOAD_SECONDS) -> bytes:
        """Fetch at most ``limit`` bytes without a token; the caller has checked the address. Raises CallFailed."""
        request = Request(method="GET", url=url)
        return _body("media", await exchange(self._http, self._clock, "media", request, seconds=seconds, limit=limit))


def _url(base: str, call: str) -> str:
    return f"{base}/ilink/bot/{call}"


def _body(call: str, reply: Reply) -> bytes:
    """Return the body of a 200."""
    if reply.status >= 500:
        raise Unanswered(f"{call}: HTTP {reply.status}")
    if reply.status != 200:
        raise Refused(call, reply.status)
    return reply.body


def _read(call: str, reply: Reply, answer: type[A]) -> A:
    """Decode an answer; an empty one says yes."""
    try:
        found = msgspec.json.decode(_body(call, reply) or b"{}", type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unanswered(f"{call}: the answer is not what it should be") from None
    if code := found.errcode or found.ret:
        raise Refused(call, code)
    return found

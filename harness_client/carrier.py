"""The HTTP carrier both generations share: one envelope, bounded bodies, every lower exception mapped.

``POST /api/<method>`` with a ``client-request``, answered by a ``server-response``; business errors are HTTP 200,
a status speaks of the carrier only (facts HARNESS 3.1 and 4.2).
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, TypeVar

import aiohttp
import msgspec
from aiohttp.http_exceptions import ContentEncodingError

from harness_client.address import Address
from harness_client.clock import SYSTEM_CLOCK, Clock
from harness_client.decode import JsonText, off_loop
from harness_client.errors import (
    Forbidden,
    HarnessError,
    HostFault,
    Malformed,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unreachable,
    Unsupported,
    refusal,
)

BODY_LIMIT: Final = 32 * 1024 * 1024
"""Bytes of one answer or one socket message, after content decoding (spec HISTORY 3)."""
KEEPALIVE_SECONDS: Final = 3.0
"""The host drops an idle connection after 5 s: ours must be gone first, or a prompt goes out on a dead one."""
CONNECTIONS: Final = 64
HEARTBEAT_SECONDS: Final = 10.0
"""Between our pings; a link without an answer for half of it is dead. Legacy hosts take a ping, though no message."""
CLOSE_SECONDS: Final = 0.5
"""How long a socket we close may take to say so too."""
_CHUNK: Final = 64 * 1024
_STEPS: Final = 4
"""Levels read piece by piece: envelope, result, value, list; what is left is one row or one event."""

READS: Final = frozenset({
    "host.describe", "session.history", "session.list",
    "session/list", "session/page", "session/projections",
})  # fmt: skip
"""The calls beside the login that ``/history`` may make: none changes or wakes anything (spec HISTORY 3)."""

T = TypeVar("T")

Observe = Callable[[str, str, float], None]
"""Told of each request: its method, its end and the seconds it took.

The end is ``ok``, the :class:`Code` of the error, or ``interrupted`` by the deadline or the end of its caller. Both are
of closed sets: no id is ever among them. A refusal inside a page, which is read elsewhere, counts as ``ok``.
"""


def unobserved(method: str, end: str, seconds: float) -> None:
    """Tell nobody."""


class WireError(msgspec.Struct):
    """The host's refusal; ``message`` may quote content and is never logged."""

    code: str
    message: str = ""


class _Result(msgspec.Struct):
    ok: bool
    value: object = None
    error: WireError | None = None


class _Response(msgspec.Struct):
    type: str
    result: _Result


class HostRefused(Exception):
    """A refusal with the host's own words, for a dialect that must read them."""

    def __init__(self, error: WireError) -> None:
        super().__init__()
        self.error = error


class Carrier:
    """HTTP to one host. Retries nothing: a POST here may take effect twice."""

    def __init__(
        self,
        address: Address,
        *,
        clock: Clock = SYSTEM_CLOCK,
        observe: Observe = unobserved,
        only_reads: bool = False,
    ) -> None:
        """Open no connection yet; must be made inside a running event loop.

        ``only_reads``: whatever is not in :data:`READS` raises Forbidden, and nothing of it leaves.
        """
        self.address = address
        self._clock = clock
        self._observe = observe
        self._only_reads = only_reads
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(keepalive_timeout=KEEPALIVE_SECONDS, limit=CONNECTIONS),
            cookie_jar=aiohttp.CookieJar(unsafe=True),  # the host is an IP address; its cookie is bound to it
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),  # the caller's clock bounds every call
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def call(self, method: str, payload: object, *, request: str | None = None) -> object:
        """Call ``method`` and return its value (None when absent); raise HarnessError.

        ``request`` becomes the envelope's ``rpcId``.
        """
        with self._observed(method):
            try:
                return unwrap(await parse(await self._fetch(method, payload, request)), method)
            except HostRefused as refused:
                raise refusal(refused.error.code, method) from None

    async def fetch(self, method: str, payload: object) -> bytes:
        """Call ``method`` and return the whole body of its answer, not decoded."""
        with self._observed(method):
            return await self._fetch(method, payload, None)

    async def post(self, path: str, body: object) -> bytes:
        """POST JSON to ``/api/<path>`` and return the JSON body of a 200."""
        with self._observed(path):
            return await self._post(path, body)

    async def _fetch(self, method: str, payload: object, request: str | None) -> bytes:
        rpc = request or str(uuid.uuid4())
        return await self._post(method, {"type": "client-request", "rpcId": rpc, "method": method, "payload": payload})

    @contextmanager
    def _observed(self, method: str) -> Iterator[None]:
        began, end = self._clock.monotonic(), "interrupted"
        try:
            yield
            end = "ok"
        except HarnessError as error:
            end = error.code
            raise
        finally:
            self._observe(method, end, self._clock.monotonic() - began)

    async def _post(self, path: str, body: object) -> bytes:
        self._permit(path)
        url = f"{self.address.base}/api/{path}"
        headers = {"Content-Type": "application/json"}
        with mapped(path):
            async with self._http.post(url, data=json.dumps(body), headers=headers, allow_redirects=False) as response:
                check_status(response.status, path)
                if response.content_type != "application/json":
                    raise Malformed(f"{path}: the answer is no JSON")
                return await _read(response, path)

    def _permit(self, path: str) -> None:
        if self._only_reads and path not in READS:
            raise Forbidden(f"{path}: not sent, for this client only reads")

    async def index(self, params: Mapping[str, str]) -> tuple[int, str]:
        """GET the host's root, follow no redirect, keep the cookies it sets; return status and page."""
        # A cause would quote the URL, and with it the token.
        with self._observed("login" if params else "index"), mapped("login", quiet=True):
            async with self._http.get(f"{self.address.base}/", params=params, allow_redirects=False) as response:
                return response.status, (await _read(response, "login")).decode(errors="replace")

    def logged_in(self) -> bool:
        """Whether the jar holds a cookie of this host."""
        return len(self._http.cookie_jar) > 0

    def forget_login(self) -> None:
        """Drop the cookies."""
        self._http.cookie_jar.clear()

    async def connect(self, path: str) -> aiohttp.ClientWebSocketResponse:
        """Open the WebSocket ``/api/<path>``; pings are sent and answered while it is read."""
        self._permit(path)
        with mapped(path):
            try:
                return await self._http.ws_connect(
                    f"{self.address.base}/api/{path}",
                    max_msg_size=BODY_LIMIT,
                    heartbeat=HEARTBEAT_SECONDS,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                )
            except aiohttp.WSServerHandshakeError as error:
                check_status(error.status, path)
                raise Malformed(f"{path}: the host did not open a socket") from error


async def _read(response: aiohttp.ClientResponse, what: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > BODY_LIMIT:
            raise TooLarge(f"{what}: the answer is over {BODY_LIMIT} bytes")
    return bytes(body)


def check_status(status: int, what: str) -> None:
    """Raise the error of an HTTP status other than 200."""
    match status:
        case HTTPStatus.OK:
            return
        case HTTPStatus.UNAUTHORIZED:
            raise Unauthorized(f"{what}: HTTP 401")
        case HTTPStatus.FORBIDDEN:
            raise Forbidden(f"{what}: HTTP 403")
        case HTTPStatus.NOT_FOUND:
            raise Unsupported(f"{what}: HTTP 404")
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise TooLarge(f"{what}: HTTP 413")
        case HTTPStatus.BAD_GATEWAY | HTTPStatus.SERVICE_UNAVAILABLE | HTTPStatus.GATEWAY_TIMEOUT:
            raise Unreachable(f"{what}: HTTP {status}")
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise HostFault(f"{what}: HTTP {status}")
        case _:
            raise Malformed(f"{what}: HTTP {status}")


@contextmanager
def mapped(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Turn every exception of aiohttp and the OS into ours; ``quiet`` drops the cause from the traceback."""
    try:
        yield
    except HarnessError:
        raise
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError, asyncio.IncompleteReadError) as error:
        raise _translate(error, what) from (None if quiet else error)


def _translate(error: Exception, what: str) -> HarnessError:
    name = type(error).__name__
    match error:
        case TimeoutError():
            return TimedOut(f"{what}: {name}")
        case aiohttp.ClientPayloadError() if isinstance(error.__cause__, ContentEncodingError):
            return Malformed(f"{what}: {name}")
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError() | OSError():
            return Unreachable(f"{what}: {name}")
        case _:
            return Malformed(f"{what}: {name}")


def unwrap(answer: object, what: str) -> object:
    """Open the envelope of an answer; raise HostRefused for a business error, Malformed for a broken envelope."""
    response = decode(answer, _Response, what)
    if response.type != "server-response":
        raise Malformed(f"{what}: the answer is no server-response")
    if response.result.ok:
        return response.result.value
    if response.result.error is None:
        raise Malformed(f"{what}: a refusal without an error")
    raise HostRefused(response.result.error)


async def parse(body: bytes) -> object:
    """Read JSON of any size without holding the event loop; raise Malformed.

    Not msgspec's own decoder: hosts cut strings between the halves of a surrogate pair, and it refuses them.
    """
    return await off_loop(lambda text: _stepwise(text, _STEPS), body)


def _stepwise(text: JsonText, steps: int) -> object:
    """Read the outer levels piece by piece, what is deeper in one go each."""
    if steps and text.opens("{"):
        return {key: _stepwise(text, steps - 1) for key in text.members()}
    if steps and text.opens("["):
        return [_stepwise(text, steps - 1) for _ in text.items()]
    value, _ = text.value()
    return value


def decode(value: object, into: type[T], what: str) -> T:
    """Read a JSON value strictly as a wire type; raise Malformed with the path, never the content."""
    try:
        return msgspec.convert(value, into)
    except msgspec.ValidationError as error:
        # The text names a path and types; wire types hold no enums it could quote.
        raise Malformed(f"{what}: {error}") from None

"""HTTP of channels that speak it themselves: bounded in time and size, no redirects, every lower exception mapped.

No error carries an address, a header or a body: they hold tokens and what people write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Required, TypedDict

import aiohttp

from harness_client.clock import Clock

CALL_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 10.0
BODY_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of one answer."""


class CallFailed(Exception):
    """There is no answer to work with; the text names the call and the kind of failure and nothing else."""


class Unreached(CallFailed):
    """No connection was made: nothing was sent."""


class Unanswered(CallFailed):
    """The answer was lost or is no answer: the call may or may not have taken effect."""


class TimedOut(Unanswered):
    """No answer in time."""


class Request(TypedDict, total=False):
    """The part of a request that aiohttp is handed as it is."""

    method: Required[str]
    url: Required[str]
    headers: Mapping[str, str]
    params: Mapping[str, str] | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer, whatever it says. ``headers`` are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def new_session() -> aiohttp.ClientSession:
    """Return a session without cookies, whose calls :func:`exchange` bounds; its sockets follow no redirect either."""
    watch = aiohttp.TraceConfig()
    watch.on_request_redirect.append(_refuse)
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[watch],
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
    )


async def _refuse(_: aiohttp.ClientSession, __: object, redirect: aiohttp.TraceRequestRedirectParams) -> None:
    raise aiohttp.TooManyRedirects(redirect.response.request_info, ())


async def exchange(
    http: aiohttp.ClientSession,
    clock: Clock,
    call: str,
    request: Request,
    *,
    seconds: float = CALL_SECONDS,
    limit: int = BODY_LIMIT,
) -> Reply:
    """Make one request; ``call`` names it in errors. Raises CallFailed."""
    if http.closed:
        raise Unreached(f"{call}: the channel is closed")
    try:
        async with clock.timeout(seconds), http.request(**request, allow_redirects=False) as response:
            return Reply(response.status, response.headers, await _bounded(call, response, limit))
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise Unreached(f"{call}: {type(error).__name__}") from None
    except TimeoutError:
        raise TimedOut(f"{call}: no answer in {seconds:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unanswered(f"{call}: {type(error).__name__}") from None


async def _bounded(call: str, response: aiohttp.ClientResponse, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            raise Unanswered(f"{call}: more than {limit} bytes")
    return bytes(body)

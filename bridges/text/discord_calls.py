"""How a call to Discord's API can end: the SDK's errors -> our outcomes, in one table. Imports the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bridges.message import ChannelStopped, Clock, NotSent, RetryAfter, Stop

T = TypeVar("T")

Failed = NotSent | RetryAfter

ATTEMPT_SECONDS: Final = 20.0
"""How long one attempt may take; the SDK has no limit of its own, and waits in here for its rate limits."""

ATTEMPTS: Final = 2
"""All attempts end before the caller gives up, after 60 s."""

PAUSE_SECONDS: Final = 1.0
"""Between two attempts."""

LOGIN_SECONDS: Final = 60.0

LONGEST_LIMIT: Final = 30.0
"""A rate limit the SDK may wait out itself; a longer one is reported. It accepts no less."""

UNREACHED_SECONDS: Final = 2.0
"""When to try again what never left this machine."""

BANNED_SECONDS: Final = 60.0
"""When to try again after a refusal by the network in front of Discord, which does not say until when."""

_OUTCOMES: Final = {
    **dict.fromkeys(
        (
            10003,  # unknown channel
            10004,  # unknown server
            50001,  # missing access
            50007,  # this person takes no messages from us
            50013,  # missing permission
            50083,  # the thread is archived
            50278,  # no server in common with this person
            160005,  # the thread is locked
        ),
        NotSent.BLOCKED,
    ),
    40001: NotSent.REAUTHENTICATE,
    40005: NotSent.TOO_LONG,
    50035: NotSent.TOO_LONG,  # something in the request is out of bounds, and all that varies is the text
}
"""Discord's code -> our outcome; a code that is not here is a refusal that repeating would not change."""


async def call(
    client: discord.Client, work: Callable[[], Awaitable[T]], clock: Clock, *, attempts: int = ATTEMPTS
) -> T | Failed:
    """Let ``client`` do ``work``, and again when its answer was lost: only what may be done twice, or one attempt."""
    for attempt in range(attempts):
        if attempt:
            await clock.sleep(PAUSE_SECONDS)
        try:
            async with clock.timeout(ATTEMPT_SECONDS):
                return await _released(client, work)
        except aiohttp.ClientConnectorError:
            return RetryAfter(UNREACHED_SECONDS)
        except discord.DiscordServerError:
            continue
        except discord.DiscordException as error:
            return refused(error)
        except (aiohttp.ClientError, TimeoutError, OSError):
            continue
        except (AttributeError, LookupError, TypeError, ValueError):  # an answer that the SDK cannot read
            continue
    return NotSent.UNKNOWN


async def _released(client: discord.Client, work: Callable[[], Awaitable[T]]) -> T:
    """Do ``work``; a cancelled one leaves nothing locked.

    The SDK holds every call back while one waits out a global rate limit, and for ever when that one is cancelled.
    """
    try:
        return await work()
    except asyncio.CancelledError:
        client.http._global_over.set()  # noqa: SLF001 - there is no public way
        raise


def refused(error: discord.DiscordException) -> Failed:
    """Return what a refusal means."""
    match error:
        case discord.RateLimited():
            return RetryAfter(error.retry_after)
        case discord.HTTPException(status=429):
            return RetryAfter(BANNED_SECONDS)
        case discord.HTTPException(status=401):
            return NotSent.REAUTHENTICATE
        case discord.HTTPException(code=code) if code in _OUTCOMES:
            return _OUTCOMES[code]
        case discord.Forbidden():
            return NotSent.BLOCKED
        case _:
            return NotSent.REJECTED


def point_to(api: str, gateway: str) -> None:
    """Set where Discord is. The SDK keeps both addresses for the whole process."""
    Route.BASE = api
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)


async def log_in(client: discord.Client, token: str, clock: Clock) -> None:
    """Log a client in, within LOGIN_SECONDS. Raises ChannelStopped, ConnectionError."""
    try:
        async with clock.timeout(LOGIN_SECONDS):
            await client.login(token)
    except discord.LoginFailure:
        raise dead_token() from None
    except (discord.DiscordException, aiohttp.ClientError, TimeoutError) as error:
        raise ConnectionError(f"Discord cannot be reached: {type(error).__name__}") from None


def dead_token() -> ChannelStopped:
    """Return what a refused token means."""
    return ChannelStopped(Stop.NEEDS_LOGIN, "Discord refuses the token; reset it in the developer portal, page Bot")

"""The way in from Discord: one gateway client for one run, and what keeps it from harm. Imports the SDK.

The SDK reconnects and resumes by itself, without loss, but it knows no back-off when the server closes right after its
greeting, dies of an unreachable gateway, and after an invalidated session delivers nothing of what came meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

import aiohttp
import discord
import structlog
from discord.gateway import KeepAliveHandler

from bridges.message import ChannelStopped, Clock, Stop
from bridges.text.discord_calls import dead_token, log_in

LOOK_SECONDS: Final = 5.0
DEAF_SECONDS: Final = 50.0
"""Silence after which the link is cut, to be resumed. A live server is heard every 41 s at least."""

LOST_SECONDS: Final = 110.0
"""Silence after which the run ends."""

FREE_CONNECTS: Final = 5
CONNECT_WINDOW: Final = 60.0
"""So many connections in so many seconds cost no wait; each further one waits twice as long as the one before."""

LONGEST_WAIT: Final = 30.0

IDENTIFIES: Final = 800
DAY_SECONDS: Final = 86_400.0
"""New sessions in a day. Discord takes 1,000, and then resets the bot's token."""

IDENTIFY_GAP: Final = 5.0
"""Seconds between two of them on one connection."""

LEAVE_SECONDS: Final = 3.0

SETTLED_SECONDS: Final = 0.5
"""Silence about servers after which a new session has told of all of them."""

_SOCKETS: Final = frozenset({"ws", "wss"})

_log = structlog.get_logger(__name__)


class TooManySessions(Exception):
    """IDENTIFIES in DAY_SECONDS are reached. No OSError: the SDK would take it for a link to be tried again."""


class Pace:
    """How fast one bot may come back, over all its runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connects: deque[float] = deque()
        self._identifies: deque[float] = deque()

    async def connect(self) -> None:
        """Wait before one more connection."""
        extra = len(self._recent(self._connects, CONNECT_WINDOW)) - FREE_CONNECTS
        self._connects.append(self._clock.monotonic())
        if extra >= 0:
            await self._clock.sleep(min(LONGEST_WAIT, 2.0**extra))

    def identify(self) -> None:
        """Note a new session. Raises TooManySessions."""
        if len(self._recent(self._identifies, DAY_SECONDS)) >= IDENTIFIES:
            raise TooManySessions
        self._identifies.append(self._clock.monotonic())

    async def ready(self) -> None:
        """Wait until a new session may be asked for."""
        today = self._recent(self._identifies, DAY_SECONDS)
        if len(today) >= IDENTIFIES:
            await self._clock.sleep(today[0] + DAY_SECONDS - self._clock.monotonic())

    def _recent(self, times: deque[float], window: float) -> deque[float]:
        """Forget what was before the window that ends now."""
        while times and times[0] <= self._clock.monotonic() - window:
            times.popleft()
        return times


class Gateway(discord.Client):
    """Listens for one run. What it hears goes to ``message`` and ``command``, in its order and at once."""

    def __init__(
        self,
        *,
        connected: Callable[[], None],
        message: Callable[[discord.Message], None],
        command: Callable[[discord.Interaction], None],
        pace: Pace,
        clock: Clock,
    ) -> None:
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True),
            allowed_mentions=discord.AllowedMentions.none(),
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_messages=None,
            http_trace=self._trace(),
            guild_ready_timeout=SETTLED_SECONDS,
            enable_debug_events=True,  # the only public sign of a server that is alive and has nothing to tell
        )
        self._told_connected = connected
        self._told_message = message
        self._told_command = command
        self._pace = pace
        self._clock = clock
        self._heard = clock.monotonic()
        self._link: aiohttp.ClientResponse | None = None
        self._linked = self._heard
        self.told = asyncio.Event()
        """Set once the present session has told of its servers."""

    def dispatch(self, event: str, /, *args: object, **kwargs: object) -> None:
        """See the SDK, whose own tasks go on telling of events when the client is closed, and fail."""
        if not self.is_closed():
            super().dispatch(event, *args, **kwargs)

    # -- what the SDK calls ------------------------------------------------------------------------------------------

    async def on_connect(self) -> None:
        """Tell that a new session has begun."""
        self.told.clear()
        self._told_connected()

    async def on_ready(self) -> None:
        """Note that the session has told of its servers."""
        self.told.set()

    async def on_message(self, message: discord.Message) -> None:
        """Tell what somebody wrote, perhaps we."""
        self._told_message(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Tell that somebody picked a slash command."""
        self._told_command(interaction)

    async def on_socket_raw_receive(self, _: str) -> None:
        """Note that anything at all arrived."""
        self._heard = self._clock.monotonic()

    async def on_error(self, event_method: str, /, *args: object, **kwargs: object) -> None:
        """Log a fault in one of the above, without what was said."""
        fault = sys.exception()
        _log.error("event not understood", handler=event_method, error=type(fault).__name__)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Keep the distance between two new sessions, and their number."""
        self._pace.identify()
        if not initial:
            await self._clock.sleep(IDENTIFY_GAP)

    # -- one run -----------------------------------------------------------------------------------------------------

    async def listen(self, token: str) -> None:
        """Listen until the link is lost for good. Raises ChannelStopped, ConnectionError."""
        await log_in(self, token, self._clock)
        try:
            await self.connect()
        except discord.PrivilegedIntentsRequired:
            raise ChannelStopped(Stop.MISCONFIGURED, _INTENTS) from None
        except discord.ConnectionClosed as error:
            raise _closed(error.code) from None
        except (discord.DiscordException, aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionError(f"Discord's gateway failed: {type(error).__name__}") from None
        except TooManySessions:
            raise ConnectionError("too many new sessions in a day; the next one has to wait") from None
        except (AttributeError, KeyError) as error:
            # How the SDK dies of a gateway it cannot reach at first, and of an event without a field it expects.
            raise ConnectionError(f"Discord's gateway cannot be reached or understood: {error}") from error

    async def watch(self) -> None:
        """Cut a link that has gone silent. Raises ConnectionError when that does not help."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            silence = self._clock.monotonic() - self._heard
            if silence >= LOST_SECONDS:
                raise ConnectionError(f"nothing heard from Discord for {silence:.0f} s")
            if min(silence, self._clock.monotonic() - self._linked) >= DEAF_SECONDS:
                _log.warning("link is silent, cutting it", seconds=round(silence))
                self._cut_off()

    async def leave(self) -> None:
        """Say goodbye and close all connections, a dead one after LEAVE_SECONDS."""
        closing = asyncio.ensure_future(self.close())
        try:
            async with self._clock.timeout(LEAVE_SECONDS):
                await asyncio.wait({closing})
        except TimeoutError:
            self._cut_off()
            await asyncio.wait({closing})
        # The SDK forgets a link that it was still greeting, and the thread that keeps it alive.
        if self._link is not None:
            self._link.close()
        for thread in threading.enumerate():
            if isinstance(thread, KeepAliveHandler) and thread.ws.token == self.http.token:
                thread.stop()
        closing.result()

    # -- the connection under the SDK --------------------------------------------------------------------------------

    def _trace(self) -> aiohttp.TraceConfig:
        """Return what lets us see, and hold back, every connection that the SDK makes."""
        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(self._before_request)
        trace.on_request_end.append(self._after_request)
        return trace

    async def _before_request(
        self, session: aiohttp.ClientSession, context: SimpleNamespace, start: aiohttp.TraceRequestStartParams
    ) -> None:
        if start.url.scheme in _SOCKETS:
            if self._link is not None:
                self._link.close()  # whatever it was, the SDK has given it up
            await self._pace.connect()

    async def _after_request(
        self, session: aiohttp.ClientSession, context: SimpleNamespace, end: aiohttp.TraceRequestEndParams
    ) -> None:
        if end.url.scheme in _SOCKETS:
            self._link, self._linked = end.response, self._clock.monotonic()

    def _cut_off(self) -> None:
        """End the connection, after which the SDK resumes; a proper goodbye would wait for the dead."""
        self._linked = self._clock.monotonic()
        connection = self._link.connection if self._link is not None else None
        if connection is not None and connection.transport is not None:
            connection.transport.abort()


_INTENTS: Final = "Discord's developer portal, page Bot: switch the Message Content Intent on"


def _closed(code: int) -> Exception:
    """Return what the server's last word means (Discord's gateway close codes)."""
    match code:
        case 4004:
            return dead_token()
        case 4013:
            return ChannelStopped(Stop.MISCONFIGURED, _INTENTS)
        case 4010 | 4011 | 4012:
            return ChannelStopped(Stop.MISCONFIGURED, f"Discord does not serve this bot this way (code {code})")
        case _:
            return ConnectionError(f"Discord closed the link with code {code}")

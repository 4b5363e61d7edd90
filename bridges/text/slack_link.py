"""One Socket Mode link, over Bolt: opened, watched, given up. Imports the SDK.

The SDK reconnects by itself but cannot be left alone: a wrong app token makes it try for ever, a
refused connection makes it use the same one-time address again and again, and nothing slows it down when every link is
closed at once. So the first address is asked for beforehand, every further one is paced, and a watchdog looks on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec
import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bridges.message import ChannelStopped, Clock, Stop
from bridges.text.slack_api import ANSWER_SECONDS, DEAD_LOGINS, code_of, lost, wait_of
from bridges.text.slack_parse import SLACK, Me

LOOK_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 3.0
"""How long the SDK may be without a link before its address counts as used up."""

DEAF_SECONDS: Final = 45.0
"""How long there may be no sign of life before everything is made anew."""

FREE_OPENINGS: Final = 3
"""Links that may be opened within OPENINGS_SECONDS without a pause; each further one doubles it."""

OPENINGS_SECONDS: Final = 60.0
LONGEST_PAUSE: Final = 30.0
LONGEST_WAIT: Final = 300.0
"""The longest time Slack may tell us to wait before the first link."""

FAREWELL_SECONDS: Final = 1.0
"""How long Slack may take to say goodbye, so that it sends nothing more down a dead link."""

TOKEN: Final = "app token (xapp-…)"  # noqa: S105 - what it is called, not what it is


class Owner(Protocol):
    """Whom the link works for."""

    def connected(self) -> None:
        """Hear that the link is up; may be told again."""

    async def receive(self, body: Mapping[str, object]) -> None:
        """Take a payload; Slack hears that it arrived once this returned, and never if it raises OSError."""

    async def check(self) -> None:
        """Be asked at every look of the watchdog; what it raises ends the link."""


class Guests:
    """Tasks of the SDK that are in our code; it keeps no list of them, and they must not outlive the link."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[object] | None] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count the present task in."""
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            yield
        finally:
            self.tasks.discard(task)


class Door(AsyncWebClient):
    """The Web API client through which links are opened, at our pace. ``refused``: the app token is no good."""

    def __init__(self, base: str, clock: Clock, guests: Guests, hide: Callable[[str], None]) -> None:
        super().__init__(base_url=base, timeout=ANSWER_SECONDS, retry_handlers=[])
        self._clock = clock
        self._hide = hide
        self._guests = guests
        self._openings: deque[float] = deque()
        self.refused: Exception | None = None

    async def apps_connections_open(self, *, app_token: str, **kwargs: object) -> AsyncSlackResponse:
        """Ask for the address of a link, when it is time to."""
        with self._guests.entered():
            await self._clock.sleep(self._pause())
            self._openings.append(self._clock.monotonic())
            try:
                answer = await super().apps_connections_open(app_token=app_token, **kwargs)
            except SlackApiError as error:
                if code_of(error) in DEAD_LOGINS:
                    self.refused = lost(error, TOKEN)
                raise
        self._hide(urlsplit(str(answer["url"])).query)  # the SDK logs the address when it fails
        return answer

    def _pause(self) -> float:
        since = self._clock.monotonic() - OPENINGS_SECONDS
        while self._openings and self._openings[0] < since:
            self._openings.popleft()
        extra = len(self._openings) - FREE_OPENINGS
        return min(LONGEST_PAUSE, 2.0**extra) if extra >= 0 else 0.0


class _Control(msgspec.Struct):
    """What Slack says about the link itself."""

    type: str = ""
    reason: str = ""


class SlackLink:
    """Delivers payloads to its owner, one after the other, from :meth:`run` until it ends."""

    def __init__(
        self,
        owner: Owner,
        *,
        app_token: str,
        api: str | None,
        me: Me,
        clock: Clock,
        hide: Callable[[str], None],
        ping: float,
    ) -> None:
        base = api or SLACK
        self._app_token = app_token
        self._owner = owner
        self._clock = clock
        self._guests = Guests()
        self._door = Door(base, clock, self._guests, hide)
        self._in_order = asyncio.Lock()
        self._disabled = False
        handler = AsyncSocketModeHandler(
            _app(base, me, self._take), app_token, web_client=self._door, ping_interval=ping
        )
        self._client: SocketModeClient = handler.client
        self._client.on_message_listeners.append(self._hear)

    async def run(self) -> None:
        """Keep the link until it is lost beyond the SDK's means. Raises ConnectionError, ChannelStopped."""
        connecting: asyncio.Task[None] | None = None
        try:
            self._client.wss_uri = await self._first_address()
            connecting = asyncio.create_task(self._client.connect())  # type: ignore[no-untyped-call]  # the SDK gives it no types
            await self._watch()
        finally:
            await self._close(connecting)

    async def _first_address(self) -> str:
        try:
            answer = await self._door.apps_connections_open(app_token=self._app_token)
        except SlackApiError as error:
            wait = wait_of(error)
            if wait is None:
                raise lost(error, TOKEN) from None
            await self._clock.sleep(min(LONGEST_WAIT, wait))
            raise ConnectionError("Slack asked to open links more slowly") from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise lost(error, TOKEN) from None
        return str(answer["url"])

    async def _watch(self) -> None:
        """Return never: raise once the link is to be made anew, or not again."""
        alive = lost_at = self._clock.monotonic()
        pong: float | None = None
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self._owner.check()
            now = self._clock.monotonic()
            if self._door.refused is not None:
                raise self._door.refused
            if self._disabled:
                raise ChannelStopped(Stop.MISCONFIGURED, "Socket Mode is switched off for the app; switch it on")
            if await self._client.is_connected():
                lost_at = now
                if self._client.last_ping_pong_time != pong:
                    alive, pong = now, self._client.last_ping_pong_time
            elif now - lost_at > PATIENCE_SECONDS:
                self._client.wss_uri = None  # the SDK then asks for a new one
            if now - alive > DEAF_SECONDS:
                raise ConnectionError(f"no sign of life from Slack for {now - alive:.0f} s")

    async def _hear(self, message: aiohttp.WSMessage) -> None:
        """Note what Slack says about the link; "hello" comes before any event."""
        try:
            control = msgspec.json.decode(message.data, type=_Control)
        except msgspec.DecodeError:
            return
        if control.type == "hello":
            self._owner.connected()
        elif control.type == "disconnect" and control.reason == "link_disabled":
            self._disabled = True

    async def _take(self, body: Mapping[str, object]) -> BoltResponse:
        """Answer an envelope of whatever kind, after what it carries is safe; 503 sends no acknowledgement.

        Bolt runs this for each envelope in a task of its own; the lock hands them on in the order they came.
        """
        with self._guests.entered():
            try:
                async with self._in_order:
                    await self._owner.receive(body)
            except OSError as error:
                structlog.get_logger(__name__).error("not acknowledged", error=type(error).__name__)
                return BoltResponse(status=503)
        return BoltResponse(status=200)

    async def _close(self, connecting: asyncio.Task[None] | None) -> None:
        """End the link and every task of the SDK; it cancels its own but does not wait for them."""
        client = self._client
        client.closed = True
        tasks = [connecting, client.message_processor, client.current_session_monitor, client.message_receiver]
        running = [task for task in (*tasks, *self._guests.tasks) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with self._clock.timeout(FAREWELL_SECONDS):
                await client.disconnect()  # type: ignore[no-untyped-call]  # the SDK gives it no types
        await client.aiohttp_client_session.close()


def _app(base: str, me: Me, take: Callable[[Mapping[str, object]], Awaitable[BoltResponse]]) -> AsyncApp:
    """Return a Bolt app that hands every payload to ``take``, our own echo included.

    Bolt knows the bot from us: its own log-in at the first event would swallow that event when it fails. As little
    of it as can be looks at a payload before we do: what it fails at is never acknowledged.
    """

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id=None, bot_id=me.bot_id, bot_user_id=me.user_id)

    async def every_payload(body: Mapping[str, object]) -> BoltResponse:
        return await take(body)

    app = AsyncApp(
        client=AsyncWebClient(base_url=base),
        authorize=authorize,
        ignoring_self_events_enabled=False,
        attaching_function_token_enabled=False,
    )
    app.use(every_payload)
    return app

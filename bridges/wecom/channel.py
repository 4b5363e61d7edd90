"""One WeCom bot: callbacks in, bubbles and messages out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection
from typing import Final

import aiohttp
import structlog

from bridges.http import CONNECT_SECONDS, new_session
from bridges.message import (
    AnswerStream,
    ChannelStopped,
    Cursors,
    InboundAttachment,
    InboundMessage,
    Inbox,
    Limits,
    Noticed,
    NotSent,
    ReplyTarget,
    SendOutcome,
    Sign,
    Stop,
)
from bridges.race import first_of, task_group
from bridges.trusted import TrustedHosts
from bridges.unended import Unended
from bridges.wecom.check import look
from bridges.wecom.connection import MAX_MESSAGE, Callback, Connection, Credentials, Ended, Line, Refused
from bridges.wecom.inbound import Malformed, Names, Route, parse
from bridges.wecom.media import DOMAINS, fetch
from bridges.wecom.outbox import MAX_BYTES, Growing, Outbox
from harness_client.clock import Clock

SERVICE: Final = "wss://openws.work.weixin.qq.com"
CLOSE_SECONDS: Final = 1.0
WAITING: Final = 1_000
"""Messages that may wait to be taken on."""

REFUSALS: Final = 3
"""Subscriptions refused in a row, and the bot needs a person: the code for a wrong secret is documented nowhere."""

_OPEN: Final = "open-bubbles"
_BUSY: Final = frozenset({-1, 45009, 45033})
"""Refusals that say nothing about the secret."""


class WeComChannel:
    """See :class:`bridges.message.Channel`. ``display_name`` is what the bot is called in groups."""

    limits = Limits(text=MAX_BYTES, unit="utf-8")

    def __init__(
        self,
        bot: str,
        credentials: Credentials,
        *,
        websocket: str | None,
        display_name: str | None,
        commands: Collection[str],
        cursors: Cursors,
        clock: Clock,
    ) -> None:
        self._bot = bot
        self._credentials = credentials
        self._url = websocket or SERVICE
        self._hosts = TrustedHosts(DOMAINS, websocket)
        self._names = Names(display_name, commands)
        self._unended = Unended(cursors, _OPEN)
        self._clock = clock
        self._waiting: deque[InboundMessage] = deque()
        self._arrival = asyncio.Event()
        self._refusals = 0
        self._link: _Link | None = None
        self._log = structlog.get_logger(__name__).bind(bot=bot)

    async def run(self, inbox: Inbox) -> None:
        """See :meth:`bridges.message.Channel.run`.

        The connection outlives a run that is cancelled, until the channel is closed: replies go out over it.
        """
        link = self._link = self._link or _Link(self._unended, self._clock)
        link.keeping = link.keeping or asyncio.create_task(self._keep(link))
        try:
            async with task_group() as tasks:
                await first_of(link.ended(), self._hand_over(link, inbox, tasks))
        except Refused as error:
            self._judge(error)
            raise

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        if not log_in:
            return (Noticed(Sign.WOULD_REPLACE),)
        return await look(self._credentials, self._url, self._clock, busy=_BUSY)

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        if self._link is None:
            return NotSent.REJECTED
        return await self._link.outbox.send(Route.of(target), text)

    async def begin(self, target: ReplyTarget) -> AnswerStream | None:
        """See :meth:`bridges.message.StreamsAnswers.begin`."""
        return Growing(self._link.outbox, Route.of(target)) if self._link is not None else None

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        if self._link is None:
            raise OSError("not connected")
        return await fetch(self._link.http, self._clock, self._hosts, attachment.handle, limit)

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _keep(self, link: _Link) -> None:
        """Keep one connection until its end, which is raised."""
        async with await self._connect(link.http) as socket:
            connection = Connection(socket, self._clock)

            def subscribed() -> None:
                self._refusals = 0
                link.line.use(connection)

            try:
                await connection.run(self._credentials, subscribed, self._hear)
            finally:
                link.line.use(None)

    async def _connect(self, http: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
        try:
            async with self._clock.timeout(CONNECT_SECONDS):
                return await http.ws_connect(
                    self._url, max_msg_size=MAX_MESSAGE, timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS)
                )
        except aiohttp.WSServerHandshakeError as error:
            raise Ended(f"refused: HTTP {error.status}") from None
        except (aiohttp.ClientError, OSError) as error:  # also the TimeoutError of the clock
            raise Ended(f"no connection: {type(error).__name__}") from None

    def _judge(self, error: Refused) -> None:
        """Stop for good once the subscription was refused too often."""
        self._refusals += error.code not in _BUSY
        if self._refusals >= REFUSALS:
            raise ChannelStopped(
                Stop.MISCONFIGURED, f"WeCom does not accept bot_id and secret (code {error.code}); look them up there"
            ) from None

    def _hear(self, callback: Callback) -> None:
        try:
            message = parse(callback, self._bot, self._names)
        except Malformed as error:
            self._log.warning("a callback that cannot be read was left out", where=str(error))
            return
        if message is None:
            return
        if len(self._waiting) >= WAITING:
            self._log.error("too many messages wait, one is lost")
            return
        self._waiting.append(message)
        self._arrival.set()

    async def _hand_over(self, link: _Link, inbox: Inbox, tasks: asyncio.TaskGroup) -> None:
        """Have message after message accepted; one that could not be stays first in the queue, for the next run.

        The platform does not deliver again.
        """
        await link.line.up.wait()
        inbox.connected()
        tasks.create_task(link.outbox.end_left_over())
        while True:
            while self._waiting:
                await inbox.accept(self._waiting[0])
                self._waiting.popleft()
            self._arrival.clear()
            await self._arrival.wait()


class _Link:
    """What lasts until the channel is closed."""

    __slots__ = ("http", "keeping", "line", "outbox")

    def __init__(self, unended: Unended, clock: Clock) -> None:
        self.http = new_session()
        self.line = Line(clock)
        self.outbox = Outbox(self.line, unended, clock)
        self.keeping: asyncio.Task[None] | None = None

    async def ended(self) -> None:
        """Wait for the end of the connection, and raise it once."""
        if self.keeping is not None:
            await asyncio.wait({self.keeping})
            keeping, self.keeping = self.keeping, None
            keeping.result()

    async def close(self) -> None:
        """End the connection and whatever is sent over it."""
        await self.outbox.close()
        if self.keeping is not None:
            self.keeping.cancel()
            await asyncio.gather(self.keeping, return_exceptions=True)
        await self.http.close()

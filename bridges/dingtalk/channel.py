"""One DingTalk bot: callbacks of the stream in, the webhook, the API and cards out.

The SDK is loaded when the bot first runs.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Final
from urllib.parse import quote_plus

import aiohttp
import msgspec
import structlog

from bridges.dingtalk.card import MOST_TEXT, Cards
from bridges.dingtalk.check import look
from bridges.dingtalk.inbound import File, Malformed, Route, parse
from bridges.dingtalk.outbox import Outbox
from bridges.dingtalk.rest import Application, BadSecret, Refused, Rest
from bridges.http import CONNECT_SECONDS, CallFailed
from bridges.message import (
    AnswerStream,
    ChannelStopped,
    Cursors,
    InboundAttachment,
    Inbox,
    Limits,
    Noticed,
    NotSent,
    ReplyTarget,
    SendOutcome,
    Stop,
)
from bridges.race import task_group
from bridges.trusted import UntrustedHost
from harness_client.clock import Clock

TOPIC: Final = "/v1.0/im/bot/messages/get"
MAX_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes of one frame."""

CLOSE_SECONDS: Final = 1.0


class DingTalkChannel:
    """See :class:`bridges.message.Channel`. Answers grow only with a ``card_template``, the id of an AI card's."""

    limits = Limits(text=MOST_TEXT)
    """A webhook takes 20,000 bytes and the API 15,000, but clients are known to show no more than this for sure."""

    def __init__(
        self,
        bot: str,
        application: Application,
        *,
        card_template: str | None,
        cursors: Cursors,
        clock: Clock,
        hide: Callable[[str], None],
    ) -> None:
        """``hide`` keeps the tokens the application is given out of the log."""
        self._bot = bot
        self._application = application
        self._template = card_template
        self._cursors = cursors
        self._clock = clock
        self._hide = hide
        self._ways: _Ways | None = None
        self._log = structlog.get_logger(__name__).bind(bot=bot)

    async def run(self, inbox: Inbox) -> None:
        """See :meth:`bridges.message.Channel.run`."""
        await asyncio.to_thread(
            importlib.import_module, "dingtalk_stream"
        )  # takes longer than the loop may stand still
        from bridges.dingtalk.link import Link  # noqa: PLC0415 - needs the SDK, which is loaded now

        ways = self._ways = self._ways or self._opened()

        async def accept(data: object) -> None:
            await self._take(data, inbox)

        try:
            async with await self._connect(ways.rest) as socket, task_group() as tasks:
                inbox.connected()
                if ways.cards is not None:
                    tasks.create_task(ways.cards.end_left_over())
                await Link(socket, TOPIC, self._clock).run(accept)
        except BadSecret:
            raise ChannelStopped(
                Stop.MISCONFIGURED, "DingTalk does not accept client_id and client_secret; look them up in its console"
            ) from None

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        return await look(self._application, TOPIC, self._clock, self._hide)

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        if self._ways is None:
            return NotSent.REJECTED
        return await self._ways.outbox.send(Route.of(target), text)

    async def begin(self, target: ReplyTarget) -> AnswerStream | None:
        """See :meth:`bridges.message.StreamsAnswers.begin`."""
        if self._ways is None or self._ways.cards is None:
            return None
        return await self._ways.cards.begin(Route.of(target))

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        if self._ways is None:
            raise OSError("not connected")
        file = msgspec.json.decode(attachment.handle, type=File)
        if not file.code:
            raise OSError("the platform does not hand this out")
        try:
            return await self._ways.rest.download(file.robot, file.code, limit)
        except UntrustedHost:
            raise OSError("the file is not on a host of DingTalk") from None
        except (CallFailed, Refused, BadSecret) as error:
            raise OSError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        ways, self._ways = self._ways, None
        if ways is not None:
            await ways.rest.close()

    def _opened(self) -> _Ways:
        rest = Rest(self._application, self._clock, self._hide)
        cards = Cards(rest, self._template, self._cursors, self._clock) if self._template else None
        return _Ways(rest, Outbox(rest, self._clock), cards)

    async def _connect(self, rest: Rest) -> aiohttp.ClientWebSocketResponse:
        """Connect to where the platform says, with a ticket that is good once. Raises also what discovery raises."""
        found = await rest.endpoint(TOPIC)
        try:
            url = f"{rest.hosts.check(found.endpoint)}?ticket={quote_plus(found.ticket)}"
            async with self._clock.timeout(CONNECT_SECONDS):
                return await rest.http.ws_connect(
                    url,
                    autoping=False,
                    max_msg_size=MAX_MESSAGE,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                )
        except UntrustedHost:
            raise ConnectionError("the gateway is not on a host of DingTalk") from None
        except aiohttp.WSServerHandshakeError as error:
            raise ConnectionError(f"refused by the gateway: HTTP {error.status}") from None
        except (aiohttp.ClientError, OSError) as error:  # also the TimeoutError of the clock
            raise ConnectionError(f"no connection to the gateway: {type(error).__name__}") from None

    async def _take(self, data: object, inbox: Inbox) -> None:
        """Hand one callback in. Raises OSError: then it is not acknowledged and is delivered again."""
        try:
            message = parse(data, self._bot, self._application.client_id)
        except Malformed as error:
            self._log.warning("a callback that cannot be read was left out", where=str(error))
            return
        if message is not None:
            await inbox.accept(message)


class _Ways:
    """The ways out, until the channel is closed."""

    __slots__ = ("cards", "outbox", "rest")

    def __init__(self, rest: Rest, outbox: Outbox, cards: Cards | None) -> None:
        self.rest = rest
        self.outbox = outbox
        self.cards = cards

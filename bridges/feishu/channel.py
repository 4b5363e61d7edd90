"""One Feishu or Lark bot: the long connection in, the API out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from bridges.feishu.card import MOST_TEXT, Cards
from bridges.feishu.check import look
from bridges.feishu.inbound import Malformed, Resource, Route, parse
from bridges.feishu.link import Deaf, Link, LinkEnded, link_of
from bridges.feishu.outbox import Outbox
from bridges.feishu.pipe import Event, Up, Why
from bridges.feishu.rest import Application, BadSecret, BotInfo, Refused, Rest
from bridges.http import CallFailed
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
from bridges.race import first_of, task_group
from harness_client.clock import Clock

CONNECT_SECONDS: Final = 60.0
"""The SDK's process may have to be started, and on a slow machine that takes long."""

DEAF_SECONDS: Final = 150.0
"""How long the platform may say nothing: it is pinged every 60 seconds."""


class FeishuChannel:
    """See :class:`bridges.message.Channel`. A message holds what a card holds: an answer may come as either."""

    limits = Limits(text=MOST_TEXT, gap=0.25)

    def __init__(
        self, bot: str, application: Application, *, cursors: Cursors, clock: Clock, hide: Callable[[str], None]
    ) -> None:
        """``hide`` keeps the tokens the app is given out of the log."""
        self._bot = bot
        self._application = application
        self._cursors = cursors
        self._clock = clock
        self._hide = hide
        self._ends: _Ends | None = None
        self._log = structlog.get_logger(__name__).bind(bot=bot)

    async def run(self, inbox: Inbox) -> None:
        """See :meth:`bridges.message.Channel.run`."""
        if self._ends is None:
            self._ends = _Ends(self._application, self._cursors, self._clock, self._hide)
        ends = self._ends
        try:
            own_id = ends.own_id = ends.own_id or await self._own_id(ends.rest)
            async with link_of(self._application) as link, task_group() as tasks:
                tasks.create_task(ends.cards.end_left_over())
                await first_of(self._listen(link, inbox, own_id), _locked_out(ends.rest))
        except BadSecret:
            raise ChannelStopped(
                Stop.MISCONFIGURED, "Feishu does not accept app_id and app_secret; look them up in the app's console"
            ) from None
        except LinkEnded as ended:
            if ended.why is not Why.REFUSED:
                raise
            raise ChannelStopped(
                Stop.MISCONFIGURED, f"Feishu lets this app not connect ({ended}); is its long connection switched on?"
            ) from None

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        return await look(self._application, self._clock, self._hide)

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        if self._ends is None:
            return NotSent.REJECTED
        return await self._ends.outbox.send(Route.of(target), text)

    async def begin(self, target: ReplyTarget) -> AnswerStream | None:
        """See :meth:`bridges.message.StreamsAnswers.begin`."""
        return await self._ends.cards.begin(Route.of(target)) if self._ends else None

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        if self._ends is None:
            raise OSError("not connected")
        wanted = Resource.of(attachment)
        if not wanted.key:
            raise OSError("the platform does not hand this out")
        try:
            return await self._ends.rest.download(
                "/im/v1/messages/{}/resources/{}", wanted.message, wanted.key, params={"type": wanted.type}, limit=limit
            )
        except (CallFailed, Refused, BadSecret) as error:
            raise OSError(str(error)) from error

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        ends, self._ends = self._ends, None
        if ends is not None:
            await ends.rest.close()

    async def _own_id(self, rest: Rest) -> str:
        """Return the bot's open_id, which is how a mention of it is told from others."""
        info = await rest.call("GET", "/bot/v3/info", BotInfo)
        if info.bot is None or not info.bot.open_id:
            raise ChannelStopped(Stop.MISCONFIGURED, "this Feishu app is no bot; add the bot feature in its console")
        return info.bot.open_id

    async def _listen(self, link: Link, inbox: Inbox, own_id: str) -> None:
        seconds = CONNECT_SECONDS
        while True:
            try:
                async with self._clock.timeout(seconds):
                    report = await link.next()
            except TimeoutError:
                raise Deaf(f"nothing heard for {seconds:g} s") from None
            seconds = DEAF_SECONDS
            if isinstance(report, Up):
                inbox.connected()
            elif isinstance(report, Event):
                link.answer(report, taken=await self._take(report.payload, inbox, own_id))

    async def _take(self, payload: bytes, inbox: Inbox, own_id: str) -> bool:
        """Hand an event in; return whether the platform may forget it."""
        try:
            message = parse(payload, self._bot, own_id)
            if message is not None:
                await inbox.accept(message)
        except Malformed as error:
            self._log.warning("an event that cannot be read was left out", where=str(error))
        except OSError as error:
            self._log.warning("not taken: it will be delivered again", error=type(error).__name__)
            return False
        return True


class _Ends:
    """What outlives a connection, until the channel is closed."""

    __slots__ = ("cards", "outbox", "own_id", "rest")

    def __init__(self, application: Application, cursors: Cursors, clock: Clock, hide: Callable[[str], None]) -> None:
        self.own_id = ""
        """Asked for once: a link that comes and goes must not use up the month's calls."""
        self.rest = Rest(application, clock, hide)
        self.outbox = Outbox(self.rest, clock)
        self.cards = Cards(self.rest, self.outbox, cursors, clock)


async def _locked_out(rest: Rest) -> None:
    """Notice that a secret was changed, which the connection itself would not."""
    await rest.locked_out.wait()
    raise BadSecret

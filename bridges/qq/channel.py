"""One QQ bot: the gateway in, the outbox out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import aiohttp
import msgspec
import structlog

from bridges.http import CONNECT_SECONDS, CallFailed
from bridges.message import (
    Acceptance,
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
from bridges.qq.chats import Chat
from bridges.qq.check import look
from bridges.qq.gateway import GUILDS, MAX_MESSAGE, PRIVATE, After, Connection, Ended, Event, Session
from bridges.qq.inbound import EVENTS, Malformed, Route, parse
from bridges.qq.outbox import Outbox, chat_name
from bridges.qq.rest import Application, BadSecret, GatewayAddress, Refused, Rest
from bridges.race import task_group
from bridges.records import Records
from bridges.trusted import TrustedHosts, UntrustedHost
from harness_client.clock import Clock

SLOW_DOWN_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 1.0
_SESSION: Final = "session"
_DOMAINS: Final = ("qq.com", "qq.com.cn", "qpic.cn")


class QQChannel:
    """See :class:`bridges.message.Channel`."""

    limits = Limits(text=1_900)

    def __init__(
        self, bot: str, application: Application, *, cursors: Cursors, clock: Clock, hide: Callable[[str], None]
    ) -> None:
        """``hide`` keeps the tokens the application is given out of the log."""
        self._bot = bot
        self._application = application
        self._hosts = TrustedHosts(_DOMAINS, application.api)
        self._cursors = cursors
        self._clock = clock
        self._hide = hide
        self._intents = PRIVATE | GUILDS
        self._session: Session | None = None
        self._link: _Link | None = None
        self._log = structlog.get_logger(__name__).bind(bot=bot)

    async def run(self, inbox: Inbox) -> None:
        """See :meth:`bridges.message.Channel.run`."""
        if self._link is None:
            rest = Rest(self._application, self._clock, self._hide)
            self._link = _Link(rest, Records(self._cursors, "chat:", Chat), self._clock)
        if self._session is None:
            self._session = await self._load()
        try:
            async with task_group() as tasks:
                await self._follow(self._link, self._session, inbox, tasks)
        except BadSecret:
            raise ChannelStopped(
                Stop.MISCONFIGURED, "QQ does not accept app_id and client_secret; look them up in its console"
            ) from None

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        return await look(self._application, self._clock, self._hide)

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        return await self._send(target, text)

    async def replies_left(self, target: ReplyTarget) -> int:
        """See :meth:`bridges.message.RationsReplies.replies_left`."""
        return await self._link.outbox.left(Route.of(target)) if self._link is not None else 0

    async def send_aside(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.RationsReplies.send_aside`."""
        return await self._send(target, text, aside=True)

    async def _send(self, target: ReplyTarget, text: str, *, aside: bool = False) -> SendOutcome:
        if self._link is None:
            return NotSent.REJECTED
        return await self._link.outbox.send(Route.of(target), text, aside=aside)

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        if self._link is None:
            raise OSError("not connected")
        try:
            return await self._link.rest.download(self._hosts.check(attachment.handle), limit)
        except UntrustedHost:
            raise OSError("the file is not on a host of QQ") from None
        except (CallFailed, Refused) as error:
            raise OSError(str(error)) from error

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        link, self._link = self._link, None
        if link is not None:
            await link.rest.close()

    async def _follow(self, link: _Link, session: Session, inbox: Inbox, tasks: asyncio.TaskGroup) -> None:
        """Follow one connection to its end, and do what that end asks for before the next one."""
        token = await link.rest.token()
        url = await self._gateway(link.rest)

        async def accept(event: Event) -> None:
            await self._take(event, link, session, inbox, tasks)

        async def save() -> None:
            await self._cursors.save(_SESSION, session.encode())

        try:
            async with await self._connect(link.rest, url) as socket:
                connection = Connection(socket, session, self._clock)
                await connection.run(token, self._intents, inbox.connected, accept, save)
        except Ended as ended:
            await self._act_on(ended, link.rest, token, session)
            await save()
            raise

    async def _gateway(self, rest: Rest) -> str:
        try:
            return self._hosts.check((await rest.call("GET", "/gateway", GatewayAddress)).url)
        except UntrustedHost:
            raise Ended("the gateway is not on a host of QQ", After.RESUME) from None

    async def _connect(self, rest: Rest, url: str) -> aiohttp.ClientWebSocketResponse:
        try:
            async with self._clock.timeout(CONNECT_SECONDS):
                return await rest.http.ws_connect(
                    url, max_msg_size=MAX_MESSAGE, timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS)
                )
        except aiohttp.WSServerHandshakeError as error:
            raise Ended(f"refused by the gateway: HTTP {error.status}", After.RESUME) from None
        except (aiohttp.ClientError, OSError) as error:  # also the TimeoutError of the clock
            raise Ended(f"no connection to the gateway: {type(error).__name__}", After.RESUME) from None

    async def _act_on(self, ended: Ended, rest: Rest, token: str, session: Session) -> None:
        match ended.after:
            case After.IDENTIFY:
                session.forget()
            case After.NEW_TOKEN:
                rest.forget(token)
            case After.SLOW_DOWN:
                await self._clock.sleep(SLOW_DOWN_SECONDS)
            case After.FEWER_INTENTS if self._intents != PRIVATE:
                self._log.warning("no events of guilds: the application has no right to them")
                self._intents = PRIVATE
                session.forget()
            case After.FEWER_INTENTS | After.STOP:
                raise ChannelStopped(Stop.MISCONFIGURED, f"{ended}; see the application's state in QQ's console")

    async def _take(self, event: Event, link: _Link, session: Session, inbox: Inbox, tasks: asyncio.TaskGroup) -> None:
        """Hand one event in. Raises OSError: then it is delivered again when the session is resumed."""
        place = EVENTS.get(event.name)
        if place is None:
            return
        try:
            message = parse(place, event.data, self._bot, session.bot)
        except Malformed as error:
            self._log.warning("an event that cannot be read was left out", event_name=event.name, where=str(error))
            return
        if message is None:
            return
        route = Route.of(message.reply_to)
        chat = await link.chats.get(chat_name(route))
        allows = chat.wrote(route.message, place, self._clock.time())
        acceptance = await inbox.accept(message)
        # A duplicate that is new to the chat was claimed by a process that got no further.
        if acceptance is Acceptance.ACCEPTED or (allows and acceptance is Acceptance.DUPLICATE):
            await link.chats.save(chat)
            if chat.saved.backlog:
                tasks.create_task(link.outbox.send_waiting(chat, route))

    async def _load(self) -> Session:
        data = await self._cursors.load(_SESSION)
        try:
            return msgspec.json.decode(data or b"{}", type=Session)
        except msgspec.DecodeError:
            self._log.warning("the record of the session was damaged")
            return Session()


class _Link:
    """What outlives a connection, until the channel is closed."""

    __slots__ = ("chats", "outbox", "rest")

    def __init__(self, rest: Rest, chats: Records[Chat], clock: Clock) -> None:
        self.rest = rest
        self.chats = chats
        self.outbox = Outbox(rest, chats, clock)

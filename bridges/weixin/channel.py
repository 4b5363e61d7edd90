"""One Weixin bot: the long poll in, the outbox out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from bridges.http import CallFailed, TimedOut
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
    Sign,
    Stop,
)
from bridges.race import task_group
from bridges.records import Records
from bridges.trusted import UntrustedHost
from bridges.weixin.account import Account
from bridges.weixin.hosts import Hosts
from bridges.weixin.inbound import Malformed, Route, parse
from bridges.weixin.media import fetch
from bridges.weixin.outbox import Outbox
from bridges.weixin.peers import Peer
from bridges.weixin.wire import LOGIN_GONE, Answer, Refused, Updates, Wire
from commands.model import ChatKind
from harness_client.clock import Clock

POLL_SECONDS: Final = 35.0
"""How long the platform holds a poll when it does not say."""

LONGEST_POLL_SECONDS: Final = 120.0
GRACE_SECONDS: Final = 10.0
"""How much later than the platform we end a poll: one that ends on our side is a sign of trouble."""

SILENT_POLLS: Final = 3
"""Polls in a row that only our side ended; then the link counts as deaf and is made anew."""

EMPTY_PAUSE_SECONDS: Final = 1.0
"""Between polls that the platform answers with nothing: one that does so at once must not be asked without end."""

FAREWELL_SECONDS: Final = 2.0

_LOG_IN: Final = "the Weixin login is no longer valid or was never made; run: harness-im login weixin"


class WeixinChannel:
    """See :class:`bridges.message.Channel`. ``account`` is asked at every start, so that a new login is found."""

    limits = Limits(text=2_000)  # the outbox keeps the pace: it also sends what waited
    typing_seconds = 5.0

    def __init__(
        self,
        bot: str,
        account: Callable[[], Account | None],
        *,
        hosts: Hosts,
        cursors: Cursors,
        clock: Clock,
        hide: Callable[[str], None],
    ) -> None:
        """``account`` returns the token to use, None when there is none; ``hide`` keeps it out of the log."""
        self._bot = bot
        self._find_account = account
        self._hosts = hosts
        self._cursors = cursors
        self._clock = clock
        self._hide = hide
        self._link: _Link | None = None
        self._log = structlog.get_logger(__name__).bind(bot=bot)

    async def run(self, inbox: Inbox) -> None:
        """See :meth:`bridges.message.Channel.run`."""
        link = await self._open()
        if await self._announce(link, "notifystart"):
            inbox.connected()
        async with task_group() as tasks:
            await self._poll(link, inbox, tasks)

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        account = await asyncio.to_thread(self._find_account)
        if account is None:
            return (Noticed(Sign.NO_LOGIN, "harness-im login weixin"),)
        return (Noticed(Sign.LOGIN_STORED, account.id),)

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        return await self._send(target, text)

    async def replies_left(self, target: ReplyTarget) -> int:
        """See :meth:`bridges.message.RationsReplies.replies_left`."""
        return await self._link.outbox.left(Route.of(target).user) if self._link is not None else 0

    async def send_aside(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.RationsReplies.send_aside`."""
        return await self._send(target, text, aside=True)

    async def _send(self, target: ReplyTarget, text: str, *, aside: bool = False) -> SendOutcome:
        if self._link is None:
            return NotSent.REJECTED
        route = Route.of(target)
        return await self._link.outbox.send(route.user, route.token, text, aside=aside)

    async def typing(self, target: ReplyTarget) -> None:
        """See :meth:`bridges.message.ShowsTyping.typing`."""
        if self._link is not None:
            route = Route.of(target)
            await self._link.outbox.type(route.user, route.token)

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        if self._link is None:
            raise OSError("not connected")
        return await fetch(self._link.wire, self._hosts, attachment.handle, limit)

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`; tells the platform, for as long as FAREWELL_SECONDS."""
        link, self._link = self._link, None
        if link is not None:
            await self._announce(link, "notifystop", seconds=FAREWELL_SECONDS)
            await link.wire.close()

    async def _open(self) -> _Link:
        """Return the link of the account to use; the one of an earlier run goes on when it is still the same."""
        account = self._find_account()
        if account is None:
            raise ChannelStopped(Stop.NEEDS_LOGIN, _LOG_IN)
        if self._link is not None:
            if self._link.account == account:
                return self._link
            await self._link.wire.close()
        self._hide(account.token)
        try:
            own = account.base if not self._hosts.override else None
            base = self._hosts.trusted(own) if own else self._hosts.base
        except UntrustedHost:
            raise ChannelStopped(
                Stop.MISCONFIGURED, "the stored Weixin login names a host that is not Weixin's"
            ) from None
        self._link = _Link(account, Wire(base, account.token, self._clock), self._cursors, self._clock)
        return self._link

    async def _announce(self, link: _Link, call: str, *, seconds: float = GRACE_SECONDS) -> bool:
        """Say that we start or stop; a poll tells better what is wrong when this fails."""
        try:
            await link.wire.post(f"msg/{call}", {}, Answer, seconds=seconds)
        except CallFailed as error:
            self._log.info("not announced", error=str(error))
            return False
        return True

    async def _poll(self, link: _Link, inbox: Inbox, tasks: asyncio.TaskGroup) -> None:
        """Poll without end; the cursor is stored when the batch before it is, and never sooner."""
        key = f"cursor:{link.account.id}"
        cursor = (await self._cursors.load(key) or b"").decode()
        wait, silent = POLL_SECONDS, 0
        while True:
            try:
                updates = await link.wire.post(
                    "getupdates", {"get_updates_buf": cursor}, Updates, seconds=wait + GRACE_SECONDS
                )
            except TimedOut:
                silent += 1
                if silent == SILENT_POLLS:
                    raise
                continue
            except Refused as error:
                if error.code == LOGIN_GONE:
                    raise ChannelStopped(Stop.NEEDS_LOGIN, _LOG_IN) from None
                raise
            silent = 0
            inbox.connected()
            if updates.longpolling_timeout_ms and updates.longpolling_timeout_ms > 0:
                wait = min(updates.longpolling_timeout_ms / 1000, LONGEST_POLL_SECONDS)
            for raw in updates.msgs or ():
                await self._take(link, raw, inbox, tasks)
            if updates.get_updates_buf and updates.get_updates_buf != cursor:
                cursor = updates.get_updates_buf
                await self._cursors.save(key, cursor.encode())
            elif not updates.msgs:
                await self._clock.sleep(EMPTY_PAUSE_SECONDS)

    async def _take(self, link: _Link, raw: msgspec.Raw, inbox: Inbox, tasks: asyncio.TaskGroup) -> None:
        """Hand one message in and keep its token. Raises OSError: then the batch is delivered again."""
        try:
            found = parse(raw, self._bot, link.account.id)
        except Malformed as error:
            self._log.warning("a message that cannot be read was left out", where=str(error))
            return
        if found is None:
            return
        message, at = found
        route = Route.of(message.reply_to)
        if message.kind is ChatKind.GROUP:
            await inbox.accept(message)
            return
        peer = await link.peers.get(route.user)
        newer = peer.wrote(route.token, at)
        acceptance = await inbox.accept(message)
        # A duplicate that is newer was claimed by a process that got no further.
        if acceptance is Acceptance.ACCEPTED or (newer and acceptance is Acceptance.DUPLICATE):
            await link.peers.save(peer)
            if peer.saved.backlog:
                tasks.create_task(link.outbox.send_waiting(peer))


class _Link:
    """What one account needs, from its first run until the channel is closed."""

    __slots__ = ("account", "outbox", "peers", "wire")

    def __init__(self, account: Account, wire: Wire, cursors: Cursors, clock: Clock) -> None:
        self.account = account
        self.wire = wire
        self.peers = Records(cursors, f"peer:{account.id}:", Peer)
        self.outbox = Outbox(wire, self.peers, clock)

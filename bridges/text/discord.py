"""Discord: an application's bot, over the gateway.

Discord confirms nothing and repeats nothing: what was heard waits here, across runs, until ``inbox.accept`` returned,
and a new session begins with reading what was written while there was none. The SDK is loaded when the bot first runs.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import structlog

from bridges.http import CallFailed, Request, exchange, new_session
from bridges.message import (
    Acceptance,
    Clock,
    Cursors,
    InboundAttachment,
    InboundMessage,
    Inbox,
    Limits,
    Menu,
    Noticed,
    NotSent,
    ReplyTarget,
    SendOutcome,
    SentId,
)
from bridges.race import first_of
from bridges.text.discord_check import look
from bridges.text.discord_seen import Seen
from bridges.trusted import TrustedHosts, UntrustedHost

if TYPE_CHECKING:
    import discord

    from bridges.text.discord_api import DiscordApi
    from bridges.text.discord_gateway import Gateway, Pace

API: Final = "https://discord.com/api/v10"
GATEWAY: Final = "wss://gateway.discord.gg/"

WAITING: Final = 1_000
"""Messages that may wait to be accepted; what comes beyond it is lost, and the log says so."""

FETCH_SECONDS: Final = 60.0


class DiscordChannel:
    """One bot. In a server's text channel every question opens a thread, in which nobody needs to name the bot."""

    limits = Limits(text=2_000)
    pace = 1.0
    typing_seconds = 10.0

    def __init__(
        self, name: str, *, token: str, api: str | None, gateway: str | None, cursors: Cursors, clock: Clock
    ) -> None:
        """Know the token, and other addresses if any, which all Discord bots of the process share."""
        self._name = name
        self._token = token
        self._base = (api or API).rstrip("/")
        self._gateway = gateway or GATEWAY
        self._cursors = cursors
        self._clock = clock
        self._api: DiscordApi | None = None
        self._pace: Pace | None = None
        self._waiting: deque[InboundMessage] = deque()
        self._arrival = asyncio.Event()
        self._seen = Seen(cursors)
        self._behind = False
        self._files = TrustedHosts(("discordapp.com", "discordapp.net"), override=api)

    async def run(self, inbox: Inbox) -> None:
        """Listen until the link is lost; see :meth:`bridges.message.Channel.run`."""
        api, pace = await self._opened()
        from bridges.text.discord_gateway import Gateway  # noqa: PLC0415 - needs the SDK, which is loaded now

        await pace.ready()
        up = asyncio.Event()

        def connected() -> None:
            self._behind = bool(self._seen)
            self._arrival.set()
            if not up.is_set():
                up.set()
                inbox.connected()

        gateway = Gateway(
            connected=connected,
            message=lambda message: self._hear(message, gateway, api),
            command=lambda interaction: self._hear_command(interaction, api),
            pace=pace,
            clock=self._clock,
        )
        try:
            await first_of(gateway.listen(self._token), gateway.watch(), self._hand_over(inbox, up, gateway, api))
        finally:
            await gateway.leave()

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """See :meth:`bridges.message.ChecksPlatform.check`."""
        return await look(self._token, self._base, self._clock)

    async def _opened(self) -> tuple[DiscordApi, Pace]:
        """Load the SDK and log the way out in, once. Raises ChannelStopped, OSError."""
        if self._api is None or self._pace is None:
            await asyncio.to_thread(importlib.import_module, "discord")  # takes a second, which the loop has not
            from bridges.text.discord_api import DiscordApi, sender  # noqa: PLC0415 - needs the SDK
            from bridges.text.discord_calls import point_to  # noqa: PLC0415 - needs the SDK
            from bridges.text.discord_gateway import Pace  # noqa: PLC0415 - needs the SDK

            point_to(self._base, self._gateway)
            api = DiscordApi(sender(), self._name, cursors=self._cursors, clock=self._clock)
            try:
                await self._seen.load()
                await api.log_in(self._token)
            except BaseException:
                await api.close()
                raise
            self._api, self._pace = api, self._pace or Pace(self._clock)
        return self._api, self._pace

    # -- in ----------------------------------------------------------------------------------------------------------

    def _hear(self, message: discord.Message, gateway: Gateway, api: DiscordApi) -> None:
        if (parsed := self._read(message, gateway, api)) is not None:
            self._take(parsed)

    def _read(self, message: discord.Message, gateway: Gateway, api: DiscordApi) -> InboundMessage | None:
        from bridges.text.discord_parse import Place, parse_message  # noqa: PLC0415 - needs the SDK

        if gateway.user is None:
            return None
        parsed = parse_message(message, gateway.user.id, self._name, api.threads)
        at = Place.parse(parsed.reply_to.route).thread_at if parsed else None
        if parsed is not None and at is not None:
            api.entitle(at, parsed.text)
        return parsed

    def _hear_command(self, interaction: discord.Interaction, api: DiscordApi) -> None:
        from bridges.text.discord_parse import parse_command  # noqa: PLC0415 - needs the SDK

        parsed = parse_command(interaction, self._name)
        if parsed is not None and self._take(parsed):
            api.commands.arrived(interaction)

    def _take(self, message: InboundMessage) -> bool:
        if len(self._waiting) >= WAITING:
            structlog.get_logger(__name__).error("too many messages wait, one is lost")
            return False
        self._waiting.append(message)
        self._arrival.set()
        return True

    async def _hand_over(self, inbox: Inbox, up: asyncio.Event, gateway: Gateway, api: DiscordApi) -> None:
        """Have message after message accepted; one that could not be stays first in the queue, for the next run."""
        await up.wait()
        while True:
            if self._behind:
                self._behind = False
                await self._catch_up(gateway, api)
            elif self._waiting:
                await self._accept(self._waiting[0], inbox, api)
                self._waiting.popleft()
            else:
                self._arrival.clear()
                await self._arrival.wait()

    async def _accept(self, message: InboundMessage, inbox: Inbox, api: DiscordApi) -> None:
        from bridges.text.discord_parse import Place  # noqa: PLC0415 - needs the SDK

        acceptance = await inbox.accept(message)
        place = Place.parse(message.reply_to.route)
        if acceptance is not Acceptance.ACCEPTED:
            self._seen.passed(place.channel, int(message.id))
            return
        if place.command is not None:
            api.commands.accepted(place.command)
        await self._seen.taken(int(message.id), *{place.channel, place.chat})

    async def _catch_up(self, gateway: Gateway, api: DiscordApi) -> None:
        """Put what was written meanwhile in its place among what waits."""
        from bridges.text.discord_missed import missed  # noqa: PLC0415 - needs the SDK

        found = [self._read(each, gateway, api) for each in await missed(gateway, self._seen, self._clock)]
        late = {each.id: each for each in (*found, *self._waiting) if each is not None and each.addressed}
        in_order = sorted(late.values(), key=lambda each: int(each.id))
        structlog.get_logger(__name__).info("new session", to_be_taken=len(in_order), left_out=len(in_order[WAITING:]))
        self._waiting.clear()
        self._waiting.extend(in_order[:WAITING])

    # -- out ---------------------------------------------------------------------------------------------------------

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        return NotSent.REJECTED if self._api is None else await self._api.send(target, text)

    async def edit(self, target: ReplyTarget, message: SentId, text: str) -> SendOutcome:
        """See :meth:`bridges.message.EditsMessages.edit`."""
        return NotSent.REJECTED if self._api is None else await self._api.edit(target, message, text)

    async def typing(self, target: ReplyTarget) -> None:
        """See :meth:`bridges.message.ShowsTyping.typing`."""
        if self._api is not None:
            await self._api.typing(target)

    async def publish(self, commands: Mapping[str, Menu]) -> None:
        """See :meth:`bridges.message.PublishesCommands.publish`."""
        if self._api is not None:
            await self._api.publish(commands)

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """See :meth:`bridges.message.FetchesAttachments.fetch`."""
        try:
            url = self._files.check(attachment.handle)
            async with new_session() as http:
                request = Request(method="GET", url=url)
                reply = await exchange(http, self._clock, "file", request, seconds=FETCH_SECONDS, limit=limit)
        except (CallFailed, UntrustedHost) as error:
            raise OSError(f"file not fetched: {type(error).__name__}") from None
        if reply.status != 200:
            raise OSError(f"file not fetched: HTTP {reply.status}")
        return reply.body

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        api, self._api = self._api, None
        if api is not None:
            await api.close()

"""The way out to Discord: one client that is logged in and never listens, so that it outlives every link.

Imports the SDK, which paces sends and edits by the rate limits that Discord states with each answer.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import aiohttp
import discord
import structlog
from discord import app_commands

from bridges.message import Clock, Cursors, Menu, NotSent, ReplyTarget, RetryAfter, SendOutcome, Sent, SentId
from bridges.text.discord_calls import LONGEST_LIMIT, Failed, call, log_in
from bridges.text.discord_parse import Place
from bridges.text.discord_slash import SlashCommands, publish
from bridges.text.discord_threads import OwnThreads

T = TypeVar("T")

LONGEST_TITLE: Final = 80
"""Characters of a thread's name; the platform takes 100."""

DAY_MINUTES: Final = 1_440
"""After so long without a message a thread leaves the list of the channel; a message brings it back."""

REMEMBERED: Final = 1_000
"""Messages at which a thread may have to be opened."""

_THREAD_EXISTS: Final = 160004


def sender() -> discord.Client:
    """Return a client for the way out. Nobody is ever notified by what it sends."""
    return discord.Client(
        intents=discord.Intents(guilds=True),  # asks for nothing, for it never connects; the SDK warns without
        allowed_mentions=discord.AllowedMentions.none(),
        max_messages=None,
        max_ratelimit_timeout=LONGEST_LIMIT,
    )


class DiscordApi:
    """What one bot sends. Slash commands that arrive are told to :attr:`commands`."""

    def __init__(self, client: discord.Client, name: str, *, cursors: Cursors, clock: Clock) -> None:
        """``name`` is for a thread whose opening message has no words."""
        self._client = client
        self._name = name
        self._clock = clock
        self._tree = app_commands.CommandTree(client)
        self._titles: OrderedDict[int, str] = OrderedDict()
        self._instead: OrderedDict[int, int] = OrderedDict()
        self.threads = OwnThreads(cursors)
        self.commands = SlashCommands(client, clock)

    async def log_in(self, token: str) -> None:
        """Log in, and learn which threads are ours. Raises ChannelStopped, OSError."""
        await self.threads.load()
        await log_in(self._client, token, self._clock)

    async def close(self) -> None:
        """Close all connections."""
        await self.commands.close()
        await self._client.close()

    def entitle(self, message: int, text: str) -> None:
        """Note what a thread that is opened at a message is to be called."""
        _put(self._titles, message, next(iter(text.split("\n")), "").strip()[:LONGEST_TITLE].strip())

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """Send one message: into its thread, or as the answer to its slash command.

        A send whose answer was lost is repeated under the same nonce, which gives the first message once more.
        """
        place = Place.parse(target.route)
        if place.command is not None:
            answered = await self.commands.answer(place.command, text)
            if answered is not None:
                return answered
        channel = await self._channel(place)
        if not isinstance(channel, int):
            return channel
        where, nonce = self._client.get_partial_messageable(channel), secrets.token_hex(12)
        sent = await self._call(lambda: where.send(text, nonce=nonce, suppress_embeds=True))
        return Sent(SentId(str(sent.id))) if isinstance(sent, discord.Message) else sent

    async def edit(self, target: ReplyTarget, message: SentId, text: str) -> SendOutcome:
        """Replace the text of our message, which keeps its previews switched off."""
        channel = await self._channel(Place.parse(target.route))
        if not isinstance(channel, int):
            return channel
        ours = self._client.get_partial_messageable(channel).get_partial_message(int(message))
        edited = await self._call(lambda: ours.edit(content=text))
        return Sent(message) if isinstance(edited, discord.Message) else edited

    async def typing(self, target: ReplyTarget) -> None:
        """Show that the bot is at work."""
        channel = await self._channel(Place.parse(target.route))
        if isinstance(channel, int):
            where = self._client.get_partial_messageable(channel)
            await call(self._client, lambda: _show_typing(where), self._clock, attempts=1)

    async def publish(self, menus: Mapping[str, Menu]) -> None:
        """Register the slash commands; a bot without them still takes typed ones."""
        try:
            await publish(self._tree, menus)
        except (discord.DiscordException, aiohttp.ClientError, TimeoutError, OSError) as error:
            structlog.get_logger(__name__).warning("slash commands not published", error=type(error).__name__)

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T | Failed:
        return await call(self._client, work, self._clock)

    # -- threads -----------------------------------------------------------------------------------------------------

    async def _channel(self, place: Place) -> int | Failed:
        """Return the channel to write to, opening its thread if that is still to be done."""
        at = place.thread_at
        if at is None:
            return place.channel
        if at in self.threads:
            return at
        if at not in self._instead:
            opened = await self._call(lambda: self._open(place.channel, at))
            if isinstance(opened, RetryAfter) or opened in (NotSent.UNKNOWN, NotSent.REAUTHENTICATE):
                return opened
            _put(self._instead, at, opened if isinstance(opened, int) else place.channel)
        return self._instead[at]

    async def _open(self, channel: int, at: int) -> int:
        """Open a thread at a message and return it, or the one that is there already."""
        title = self._titles.get(at) or self._name
        try:
            # The SDK's public way needs the server in its cache, and this client has none.
            await self._client.http.start_thread_with_message(
                channel, at, name=title, auto_archive_duration=DAY_MINUTES
            )
            ours = True
        except discord.HTTPException as error:
            if error.code != _THREAD_EXISTS:
                raise
            ours = await self._opened_by_us(at)
        if ours:
            await self.threads.add(at)
        return at

    async def _opened_by_us(self, thread: int) -> bool:
        """Tell a thread whose opening was answered too late from one that a person opened."""
        found = await self._client.fetch_channel(thread)
        me = self._client.user
        return isinstance(found, discord.Thread) and me is not None and found.owner_id == me.id


async def _show_typing(where: discord.PartialMessageable) -> None:
    await where.typing()


def _put(values: OrderedDict[int, T], key: int, value: T) -> None:
    """Remember a value; the oldest goes when there are too many."""
    values[key] = value
    values.move_to_end(key)
    while len(values) > REMEMBERED:
        values.popitem(last=False)

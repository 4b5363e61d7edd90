"""What people wrote while no session was open: Discord never delivers it, so it is read where it stands.

Bounded: the chats in which the bot was used last (:mod:`bridges.text.discord_seen`), MOST messages of each, of one day.
Imports the SDK.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

import discord
import structlog

from bridges.message import Clock, NotSent
from bridges.text.discord_calls import call
from bridges.text.discord_gateway import Gateway
from bridges.text.discord_seen import Seen

MOST: Final = 100
"""Messages of one chat, the newest; one call gives no more."""

DAY_SECONDS: Final = 86_400.0
"""What is older is not answered any more. Claims are kept for longer, so nothing that was read twice runs twice."""

AT_ONCE: Final = 8
"""Chats that are read at the same time."""

CATCH_UP_SECONDS: Final = 30.0
"""How long all of it may take. What is written meanwhile waits."""

_log = structlog.get_logger(__name__)


async def missed(client: Gateway, seen: Seen, clock: Clock) -> list[discord.Message]:
    """Return what was written since the newest message known, ours too; a chat we may not read is forgotten."""
    found: list[discord.Message] = []
    slots = asyncio.Semaphore(AT_ONCE)

    async def read(chat: int, newest: int) -> None:
        async with slots:
            told = await call(client, lambda: _since(client, chat, newest), clock, attempts=1)
        if isinstance(told, list):
            found.extend(told)
            return
        _log.info("a chat cannot be read", outcome=str(told))
        if told is NotSent.BLOCKED:
            seen.forget(chat)

    try:
        async with clock.timeout(CATCH_UP_SECONDS), asyncio.TaskGroup() as tasks:
            await client.told.wait()
            today = _first_of_the_day(clock)
            for chat, newest in seen.chats():
                tasks.create_task(read(chat, max(newest, today)))
    except TimeoutError:
        _log.warning("not every chat was read in time", seconds=CATCH_UP_SECONDS)
    return found


async def _since(client: discord.Client, chat: int, newest: int) -> list[discord.Message]:
    """Read one chat; of a server's channel the session itself tells whether there is anything new."""
    channel = client.get_channel(chat) or await client.fetch_channel(chat)
    if not isinstance(channel, discord.TextChannel | discord.Thread | discord.VoiceChannel | discord.DMChannel):
        return []
    last = getattr(channel, "last_message_id", None)
    if last is not None and last <= newest:
        return []
    return [each async for each in channel.history(limit=MOST, after=discord.Object(newest), oldest_first=False)]


def _first_of_the_day(clock: Clock) -> int:
    """Return the least id of a message that is not older than a day."""
    begin = max(clock.time() - DAY_SECONDS, discord.utils.DISCORD_EPOCH / 1_000)
    return discord.utils.time_snowflake(datetime.fromtimestamp(begin, UTC))

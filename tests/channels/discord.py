"""A Discord channel of the product on the fake platform, with an inbox that remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.message import ChatKey, Cursors, ReplyTarget
from bridges.text.discord import DiscordChannel
from bridges.text.discord_calls import PAUSE_SECONDS
from bridges.text.discord_parse import Place
from harness_client.clock import SYSTEM_CLOCK, Clock
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.fakes.clock import FakeClock
from tests.fakes.discord import TELLER, FakeDiscord, dm

BOT = "ops"
HOME = dm(TELLER)
"""The teller's direct chat."""


def place(channel: int = HOME, *, thread_at: int | None = None, command: int | None = None) -> ReplyTarget:
    where = Place(channel, thread_at, command)
    return ReplyTarget(ChatKey("discord", BOT, str(where.chat)), where.route)


def channel_at(
    fake: FakeDiscord, clock: Clock = SYSTEM_CLOCK, *, token: str | None = None, cursors: Cursors | None = None
) -> DiscordChannel:
    return DiscordChannel(
        BOT,
        token=token or fake.token,
        api=fake.api,
        gateway=fake.gateway.url,
        cursors=cursors or MemoryCursors(),
        clock=clock,
    )


@asynccontextmanager
async def running(channel: DiscordChannel, inbox: RecordingInbox) -> AsyncIterator[asyncio.Task[None]]:
    """Run the channel's link; yields once it is up."""
    task = asyncio.create_task(channel.run(inbox))
    ups = inbox.ups
    task.add_done_callback(lambda _: inbox.changed.set())
    try:
        await inbox.until(lambda: inbox.ups > ups or task.done())
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def connected(
    fake: FakeDiscord, clock: Clock = SYSTEM_CLOCK, *, inbox: RecordingInbox | None = None
) -> AsyncIterator[DiscordChannel]:
    """Yield a channel that is up and can send."""
    channel = channel_at(fake, clock)
    async with running(channel, inbox or RecordingInbox()):
        yield channel
    await channel.close()


async def pass_pause(clock: FakeClock, sending: asyncio.Task[object]) -> None:
    """Let a call that is made again go over the pause before that, if it is not through at once."""
    await eventually(lambda: clock.soonest == PAUSE_SECONDS or sending.done())
    await clock.advance(PAUSE_SECONDS)

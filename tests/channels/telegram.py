"""A Telegram channel of the product on the fake platform, with an inbox that remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.message import ChatKey, ReplyTarget
from bridges.text.telegram import TelegramChannel
from harness_client.clock import SYSTEM_CLOCK, Clock
from tests.channels.around import RecordingInbox
from tests.fakes.telegram import TELLER, FakeTelegram

BOT = "ops"


def place(route: int | str = TELLER) -> ReplyTarget:
    return ReplyTarget(ChatKey("telegram", BOT, str(route)), str(route))


def channel_at(fake: FakeTelegram, clock: Clock = SYSTEM_CLOCK, token: str | None = None) -> TelegramChannel:
    return TelegramChannel(BOT, token=token or fake.token, api=fake.api, clock=clock)


@asynccontextmanager
async def running(channel: TelegramChannel, inbox: RecordingInbox) -> AsyncIterator[asyncio.Task[None]]:
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
async def connected(fake: FakeTelegram, clock: Clock = SYSTEM_CLOCK) -> AsyncIterator[TelegramChannel]:
    """Yield a channel that is up and can send."""
    channel = channel_at(fake, clock)
    async with running(channel, RecordingInbox()):
        yield channel
    await channel.close()

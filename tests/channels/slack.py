"""A Slack channel of the product on the fake platform, with an inbox that remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bridges.message import Acceptance, ChatKey, InboundMessage, ReplyTarget
from bridges.state import BotKey
from bridges.supervise import Supervisor
from bridges.text.slack import SlackChannel
from bridges.text.slack_link import DEAF_SECONDS, LOOK_SECONDS
from harness_client.clock import SYSTEM_CLOCK, Clock
from tests.channels.around import RecordingInbox
from tests.fakes.clock import FakeClock
from tests.fakes.slack import FakeSlack, direct

BOT = "ops"
COMMANDS = frozenset({"history", "help", "new"})
PING = 0.1
"""Seconds; the SDK measures them itself, on the real clock."""


NEVER = 3_600.0
"""Seconds between the SDK's pings in tests in which it must not notice anything itself."""


class HeldInbox(RecordingInbox):
    """Takes nothing on before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def accept(self, message: InboundMessage) -> Acceptance:
        self.asked.set()
        await self.go.wait()
        return await super().accept(message)


def place(route: str | None = None) -> ReplyTarget:
    route = route or direct()
    return ReplyTarget(ChatKey("slack", BOT, route), route)


def channel_at(
    fake: FakeSlack,
    clock: Clock = SYSTEM_CLOCK,
    *,
    bot_token: str | None = None,
    app_token: str | None = None,
    hide: Callable[[str], None] = lambda _: None,
    ping: float = PING,
) -> SlackChannel:
    return SlackChannel(
        BOT,
        bot_token=bot_token or fake.bot_token,
        app_token=app_token or fake.app_token,
        api=fake.api,
        commands=COMMANDS,
        clock=clock,
        hide=hide,
        ping=ping,
    )


@asynccontextmanager
async def running(channel: SlackChannel, inbox: RecordingInbox) -> AsyncIterator[asyncio.Task[None]]:
    """Run the channel's link; yields once it is up or has ended."""
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
async def connected(fake: FakeSlack, clock: Clock = SYSTEM_CLOCK) -> AsyncIterator[SlackChannel]:
    """Yield a channel that is up and can send."""
    channel = channel_at(fake, clock)
    async with running(channel, RecordingInbox()):
        yield channel
    await channel.close()


@asynccontextmanager
async def running_task(channel: SlackChannel, inbox: RecordingInbox) -> AsyncIterator[asyncio.Task[None]]:
    """Run the channel's link without waiting for it to be up."""
    task = asyncio.create_task(channel.run(inbox))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def supervised(channel: SlackChannel, inbox: RecordingInbox, clock: FakeClock) -> Supervisor:
    return Supervisor(BotKey("slack", "ops"), channel, inbox, redact=str, clock=clock, chance=lambda: 0.5)


@asynccontextmanager
async def supervision(supervisor: Supervisor) -> AsyncIterator[None]:
    """Keep the supervisor running."""
    task = asyncio.create_task(supervisor.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def fate(task: asyncio.Task[None], clock: FakeClock | None = None) -> BaseException | None:
    """Wait until a run has ended, and return why it did; ``clock`` moves on until the watchdog has looked."""
    for _ in range(int(DEAF_SECONDS) - 1):
        await asyncio.wait({task}, timeout=20 if clock is None else 0.05)
        if task.done():
            break
        if clock is not None:
            await clock.advance(LOOK_SECONDS)
    assert task.done()
    return task.exception()

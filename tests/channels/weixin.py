"""A Weixin channel at work on a simulated platform, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.message import InboundMessage, SendOutcome
from bridges.weixin.account import Account
from bridges.weixin.channel import WeixinChannel
from bridges.weixin.hosts import Hosts
from bridges.weixin.outbox import GAP_SECONDS
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.fakes.clock import FakeClock
from tests.fakes.weixin import ACCOUNT, TOKEN, FakeWeixin

ALICE = "alice@im.wechat"
BOB = "bob@im.wechat"


class Line:
    """One run after the other of one channel."""

    def __init__(self, fake: FakeWeixin, cursors: MemoryCursors | None = None) -> None:
        self.fake = fake
        self.clock = FakeClock()
        self.inbox = RecordingInbox()
        self.cursors = cursors or MemoryCursors()
        self.account: Account | None = Account(ACCOUNT, TOKEN)
        self.hidden: list[str] = []
        self.channel = WeixinChannel(
            "bot",
            lambda: self.account,
            hosts=Hosts(fake.url),
            cursors=self.cursors,
            clock=self.clock,
            hide=self.hidden.append,
        )
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.task = asyncio.create_task(self.channel.run(self.inbox))
        ups = self.inbox.ups
        await self.inbox.until(lambda: self.inbox.ups > ups or (self.task is not None and self.task.done()))

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    async def says(self, user: str = ALICE, text: str = "hi") -> InboundMessage:
        """Let a person write and wait until the channel is through with it."""
        before = len(self.inbox.messages)
        self.fake.says(user, text)
        return (await self.inbox.heard(before + 1))[-1]

    async def send(self, message: InboundMessage, text: str) -> SendOutcome:
        """Send, with time enough behind the message before."""
        await self.clock.advance(GAP_SECONDS)
        return await self.channel.send(message.reply_to, text)


@asynccontextmanager
async def line_on(fake: FakeWeixin, cursors: MemoryCursors | None = None) -> AsyncIterator[Line]:
    """Start a channel; at the end it is closed."""
    line = Line(fake, cursors)
    await line.start()
    try:
        yield line
    finally:
        await line.stop()
        await line.channel.close()


@asynccontextmanager
async def platform() -> AsyncIterator[FakeWeixin]:
    """Open a platform that no client may treat wrongly."""
    async with FakeWeixin() as fake:
        yield fake
        assert not fake.violations

"""A Feishu channel at work on a simulated platform, with the real SDK, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.feishu.channel import FeishuChannel
from bridges.feishu.rest import Application
from bridges.message import InboundMessage
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.fakes.clock import FakeClock
from tests.fakes.feishu import ALICE, APP_ID, SECRET, FakeFeishu


class Line:
    """One run after the other of one channel."""

    def __init__(self, fake: FakeFeishu, cursors: MemoryCursors | None = None) -> None:
        self.fake = fake
        self.clock = FakeClock()
        self.inbox = RecordingInbox()
        self.cursors = cursors or MemoryCursors()
        self.hidden: list[str] = []
        application = Application(APP_ID, SECRET, fake.url)
        self.channel = FeishuChannel(
            "bot", application, cursors=self.cursors, clock=self.clock, hide=self.hidden.append
        )
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run, and wait until the link is up or the run is over."""
        ups = self.inbox.ups
        task = self.task = asyncio.create_task(self.channel.run(self.inbox))
        task.add_done_callback(lambda _: self.inbox.changed.set())
        await self.inbox.until(lambda: self.inbox.ups > ups or task.done(), 30)

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    async def ended(self) -> BaseException | None:
        """Wait for the end of the run and return what ended it."""
        assert self.task is not None
        await asyncio.wait({self.task}, timeout=20)
        return self.task.exception()

    async def says(self, text: str = "hi", *, sender: str = ALICE) -> InboundMessage:
        """Let a person write, and wait until the platform has its acknowledgement."""
        before = len(self.inbox.messages)
        delivery = await self.fake.says(text, sender=sender)
        await asyncio.wait_for(delivery.acknowledged.wait(), 10)
        return (await self.inbox.heard(before + 1))[-1]


@asynccontextmanager
async def line_on(fake: FakeFeishu, cursors: MemoryCursors | None = None) -> AsyncIterator[Line]:
    """Start a channel; at the end it is closed."""
    line = Line(fake, cursors)
    try:
        await line.start()
        yield line
    finally:
        await line.stop()
        await line.channel.close()


@asynccontextmanager
async def platform() -> AsyncIterator[FakeFeishu]:
    """Open a platform that no client may treat wrongly."""
    async with FakeFeishu() as fake:
        yield fake
        assert not fake.violations

"""A DingTalk channel at work on a simulated platform, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.dingtalk.channel import DingTalkChannel
from bridges.dingtalk.rest import Application
from bridges.message import InboundMessage
from tests.channels.around import MemoryCursors, NotingClock, RecordingInbox
from tests.fakes.dingtalk import CLIENT_ID, SECRET, FakeDingTalk

GROUP = "cid-group"


class Line:
    """One run after the other of one channel."""

    def __init__(
        self,
        fake: FakeDingTalk,
        cursors: MemoryCursors | None = None,
        *,
        secret: str = SECRET,
        template: str | None = None,
    ) -> None:
        self.fake = fake
        self.clock = NotingClock()
        self.inbox = RecordingInbox()
        self.cursors = cursors or MemoryCursors()
        self.hidden: list[str] = []
        self.channel = DingTalkChannel(
            "bot",
            Application(CLIENT_ID, secret, fake.url),
            card_template=template,
            cursors=self.cursors,
            clock=self.clock,
            hide=self.hidden.append,
        )
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> asyncio.Task[None]:
        """Run, and wait for nothing."""
        self.task = asyncio.create_task(self.channel.run(self.inbox))
        self.task.add_done_callback(lambda _: self.inbox.changed.set())
        return self.task

    async def start(self) -> None:
        """Run, and wait until the link is up or the run is over."""
        ups = self.inbox.ups
        task = self.begin()
        await self.inbox.until(lambda: self.inbox.ups > ups or task.done())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    async def ended(self) -> BaseException | None:
        """Wait for the end of the run and return what ended it."""
        assert self.task is not None
        done, _ = await asyncio.wait({self.task}, timeout=10)
        assert done, "still running"
        return self.task.exception()

    async def says(self, text: str = "hi", *, group: str | None = None) -> InboundMessage:
        """Let a person write and wait until the channel acknowledged it."""
        before = len(self.inbox.messages)
        await self.fake.gateway.taken(await self.fake.says(text, group=group))
        return self.inbox.messages[before]


@asynccontextmanager
async def line_on(
    fake: FakeDingTalk, cursors: MemoryCursors | None = None, *, template: str | None = None
) -> AsyncIterator[Line]:
    """Start a channel; at the end it is closed."""
    line = Line(fake, cursors, template=template)
    await line.start()
    try:
        yield line
    finally:
        await line.stop()
        await line.channel.close()


@asynccontextmanager
async def platform() -> AsyncIterator[FakeDingTalk]:
    """Open a platform that no client may treat wrongly."""
    async with FakeDingTalk() as fake:
        yield fake
        assert not fake.violations

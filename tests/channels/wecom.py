"""A WeCom channel at work on a simulated platform, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.message import InboundMessage
from bridges.wecom.channel import WeComChannel
from bridges.wecom.connection import Credentials
from commands.catalog import KNOWN
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.fakes.clock import FakeClock
from tests.fakes.wecom import BOT_ID, SECRET, FakeWeCom

GROUP = "group-1"


class Line:
    """One run after the other of one channel."""

    def __init__(
        self,
        fake: FakeWeCom,
        cursors: MemoryCursors | None = None,
        *,
        secret: str = SECRET,
        display_name: str | None = None,
    ) -> None:
        self.fake = fake
        self.cursors = cursors or MemoryCursors()
        self.clock = FakeClock()
        self.inbox = RecordingInbox()
        self.channel = WeComChannel(
            "bot",
            Credentials(BOT_ID, secret),
            websocket=fake.url,
            display_name=display_name,
            commands=KNOWN,
            cursors=self.cursors,
            clock=self.clock,
        )
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run, and wait until the link is up or the run is over."""
        ups = self.inbox.ups
        task = self.begin()
        await self.inbox.until(lambda: self.inbox.ups > ups or task.done())

    def begin(self) -> asyncio.Task[None]:
        """Run, and wait for nothing."""
        self.task = asyncio.create_task(self.channel.run(self.inbox))
        self.task.add_done_callback(lambda _: self.inbox.changed.set())
        return self.task

    async def lose(self) -> None:
        """Let the connection be closed, and wait until the run has ended by it."""
        await self.fake.close()
        await self.ended()

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
        """Let a person write and wait until the channel heard it."""
        before = len(self.inbox.messages)
        await self.fake.says(text, group=group)
        return (await self.inbox.heard(before + 1))[-1]


@asynccontextmanager
async def line_on(
    fake: FakeWeCom, cursors: MemoryCursors | None = None, *, display_name: str | None = None
) -> AsyncIterator[Line]:
    """Start a channel; at the end it is closed."""
    line = Line(fake, cursors, display_name=display_name)
    await line.start()
    try:
        yield line
    finally:
        await line.stop()
        await line.channel.close()


@asynccontextmanager
async def platform() -> AsyncIterator[FakeWeCom]:
    """Open a platform that no client may treat wrongly."""
    async with FakeWeCom() as fake:
        yield fake
        assert not fake.violations

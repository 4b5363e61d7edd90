"""A QQ channel at work on a simulated platform, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.message import InboundMessage
from bridges.qq.channel import QQChannel
from bridges.qq.rest import Application
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.fakes.clock import FakeClock
from tests.fakes.qq import APP_ID, SECRET, FakeQQ

ALICE = "alice-openid"


class Line:
    """One run after the other of one channel."""

    def __init__(self, fake: FakeQQ, cursors: MemoryCursors | None = None, *, secret: str = SECRET) -> None:
        self.fake = fake
        self.clock = FakeClock()
        self.inbox = RecordingInbox()
        self.cursors = cursors or MemoryCursors()
        self.hidden: list[str] = []
        application = Application(APP_ID, secret, fake.url, fake.url)
        self.channel = QQChannel("bot", application, cursors=self.cursors, clock=self.clock, hide=self.hidden.append)
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Run, and wait until the link is up or the run is over."""
        ups = self.inbox.ups
        task = self.task = asyncio.create_task(self.channel.run(self.inbox))
        task.add_done_callback(lambda _: self.inbox.changed.set())
        await self.inbox.until(lambda: self.inbox.ups > ups or task.done())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    async def ended(self) -> BaseException | None:
        """Wait for the end of the run and return what ended it."""
        assert self.task is not None
        await asyncio.wait({self.task}, timeout=10)
        return self.task.exception()

    async def says(self, text: str = "hi", *, kind: str = "users", chat: str = ALICE) -> InboundMessage:
        """Let a person write and wait until the channel heard it."""
        before = len(self.inbox.messages)
        await self.fake.says(text, kind=kind, chat=chat, sender=None if kind == "users" else "alice")
        return (await self.inbox.heard(before + 1))[-1]


@asynccontextmanager
async def line_on(fake: FakeQQ, cursors: MemoryCursors | None = None) -> AsyncIterator[Line]:
    """Start a channel; at the end it is closed."""
    line = Line(fake, cursors)
    await line.start()
    try:
        yield line
    finally:
        await line.stop()
        await line.channel.close()


@asynccontextmanager
async def platform() -> AsyncIterator[FakeQQ]:
    """Open a platform that no client may treat wrongly."""
    async with FakeQQ() as fake:
        yield fake
        assert not fake.violations

"""A channel under test at work: one run after the other, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, Self, TypeVar

from bridges.message import Channel
from tests.channels.around import RecordingInbox
from tests.fakes.clock import FakeClock

C = TypeVar("C", bound=Channel)


class ChannelLine(Generic[C]):
    """What every channel's own line begins with; that one makes the channel."""

    channel: C

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.inbox = RecordingInbox()
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

    @asynccontextmanager
    async def started(self) -> AsyncIterator[Self]:
        """Start; at the end the channel is closed."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()
            await self.channel.close()

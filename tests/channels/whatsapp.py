"""A WhatsApp channel at work on a simulated platform, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.message import InboundMessage
from bridges.text.whatsapp import WhatsAppChannel
from bridges.text.whatsapp_webhook import Door
from tests.channels.around import RecordingInbox
from tests.fakes.clock import FakeClock
from tests.fakes.whatsapp import (
    ACCESS_TOKEN,
    APP_SECRET,
    NUMBER,
    VERIFY_TOKEN,
    FakeWhatsApp,
    Obj,
    change,
    message,
    post,
    value,
)

ALICE = "16505551234"


class Line:
    """One run after the other of one channel."""

    def __init__(self, fake: FakeWhatsApp, *, port: int = 0, api: str | None = None) -> None:
        self.fake = fake
        self.clock = FakeClock()
        self.inbox = RecordingInbox()
        self.channel = WhatsAppChannel(
            "bot",
            number_id=NUMBER,
            access_token=ACCESS_TOKEN,
            door=Door("127.0.0.1", port, "/webhook", APP_SECRET, VERIFY_TOKEN),
            api=api or fake.api,
            clock=self.clock,
        )
        self.task: asyncio.Task[None] | None = None

    @property
    def webhook(self) -> str:
        assert self.channel.webhook is not None
        return self.channel.webhook

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

    async def posted(self, *messages: Obj, statuses: tuple[Obj, ...] = ()) -> int:
        """Deliver one change; return the status the platform got."""
        return await self.fake.deliver(self.webhook, post(change(value(*messages, statuses=statuses))))

    async def says(self, text: str = "hi", *, sender: str | None = ALICE, **fields: object) -> InboundMessage:
        """Let a person write."""
        assert await self.posted(message(text, sender=sender, **fields)) == 200
        return self.inbox.messages[-1]


@asynccontextmanager
async def line_on(fake: FakeWhatsApp) -> AsyncIterator[Line]:
    """Start a channel; at the end it is closed."""
    line = Line(fake)
    await line.start()
    try:
        yield line
    finally:
        await line.stop()
        await line.channel.close()


@asynccontextmanager
async def platform() -> AsyncIterator[FakeWhatsApp]:
    """Open a platform that no client may treat wrongly."""
    async with FakeWhatsApp() as fake:
        yield fake
        assert not fake.violations

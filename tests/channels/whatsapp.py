"""A WhatsApp channel at work on a simulated platform, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.listen import Listen
from bridges.message import InboundMessage
from bridges.text.whatsapp import WhatsAppChannel
from bridges.text.whatsapp_webhook import Door
from tests.channels.line import ChannelLine
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


class Line(ChannelLine[WhatsAppChannel]):
    """A number whose webhook listens on this machine."""

    def __init__(self, fake: FakeWhatsApp, *, port: int = 0, api: str | None = None) -> None:
        super().__init__()
        self.fake = fake
        self.channel = WhatsAppChannel(
            "bot",
            number_id=NUMBER,
            access_token=ACCESS_TOKEN,
            door=Door(Listen(f"127.0.0.1:{port}"), "/webhook", APP_SECRET, VERIFY_TOKEN),
            api=api or fake.api,
            clock=self.clock,
        )

    @property
    def webhook(self) -> str:
        assert self.channel.webhook is not None
        return self.channel.webhook

    async def posted(self, *messages: Obj, statuses: tuple[Obj, ...] = ()) -> int:
        """Deliver one change; return the status the platform got."""
        return await self.fake.deliver(self.webhook, post(change(value(*messages, statuses=statuses))))

    async def says(self, text: str = "hi", *, sender: str | None = ALICE, **fields: object) -> InboundMessage:
        """Let a person write."""
        assert await self.posted(message(text, sender=sender, **fields)) == 200
        return self.inbox.messages[-1]


@asynccontextmanager
async def platform() -> AsyncIterator[FakeWhatsApp]:
    """Open a platform that no client may treat wrongly."""
    async with FakeWhatsApp() as fake:
        yield fake
        assert not fake.violations

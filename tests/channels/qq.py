"""A QQ channel at work on a simulated platform, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.message import InboundMessage
from bridges.qq.channel import QQChannel
from bridges.qq.rest import Application
from tests.channels.around import MemoryCursors
from tests.channels.line import ChannelLine
from tests.fakes.qq import APP_ID, SECRET, FakeQQ

ALICE = "alice-openid"


class Line(ChannelLine[QQChannel]):
    """A bot with two secrets."""

    def __init__(self, fake: FakeQQ, cursors: MemoryCursors | None = None, *, secret: str = SECRET) -> None:
        super().__init__()
        self.fake = fake
        self.cursors = cursors or MemoryCursors()
        self.hidden: list[str] = []
        application = Application(APP_ID, secret, fake.url, fake.url)
        self.channel = QQChannel("bot", application, cursors=self.cursors, clock=self.clock, hide=self.hidden.append)

    async def says(self, text: str = "hi", *, kind: str = "users", chat: str = ALICE) -> InboundMessage:
        """Let a person write and wait until the channel heard it."""
        before = len(self.inbox.messages)
        await self.fake.says(text, kind=kind, chat=chat, sender=None if kind == "users" else "alice")
        return (await self.inbox.heard(before + 1))[-1]


@asynccontextmanager
async def platform() -> AsyncIterator[FakeQQ]:
    """Open a platform that no client may treat wrongly."""
    async with FakeQQ() as fake:
        yield fake
        assert not fake.violations

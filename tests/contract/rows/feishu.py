"""Feishu's row: the real SDK, in the process the product gives it, against the fake gateway and API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Api, Feishu, Identifier
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.feishu import ALICE, APP_ID, BOT, GROUP, SECRET, FakeFeishu, Fault, Obj, mention, message, private

LACKS: frozenset[Trait] = frozenset()
STRANGER = "ou_57a4637a57a4637a57a4637a57a4637a"

_PIECES: dict[AttachmentKind, Obj] = {
    AttachmentKind.IMAGE: {"tag": "img", "image_key": "img_1"},
    AttachmentKind.VIDEO: {"tag": "media", "file_key": "file_1", "image_key": "img_2"},
}
"""What can be in one message with text, in a post; any other file is a message of its own."""


class FeishuPlatform:
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("feishu", "ops")
    member = SenderId(ALICE)
    stranger = SenderId(STRANGER)

    def __init__(self, fake: FakeFeishu) -> None:
        self.fake = fake
        self._events: dict[str, Obj] = {}

    def channel(self, around: Surroundings) -> Channel:
        table = Feishu(
            name=self.bot.name,
            app_id=Identifier(APP_ID),
            app_secret=Secret(SECRET),
            endpoints=Api(api=self.fake.url),
        )
        return build(table, around)

    async def says(
        self,
        text: str,
        *,
        sender: SenderId | None = None,
        chat: ChatKind = ChatKind.DIRECT,
        addressed: bool = True,
        attachment: AttachmentKind | None = None,
        id: str | None = None,  # noqa: A002 - the protocol's word
    ) -> None:
        group = chat is ChatKind.GROUP
        mentions = [mention("@_user_1", BOT, "ops")] if group and addressed else []
        kind, content = "text", Obj(text=f"@_user_1 {text}" if mentions else text)
        if attachment is not None:
            if attachment not in _PIECES:
                return
            kind, content = "post", {"title": "", "content": [[{"tag": "text", "text": text}, _PIECES[attachment]]]}
        event = message(content, kind, sender=sender or self.member, chat=GROUP if group else None, mentions=mentions)
        self._events[id or ""] = event
        await self._deliver(event)

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self._deliver(self._events[id])

    async def echo(self) -> None:
        said = self.fake.shown[-1]
        await self._deliver(message({"text": said.text}, sender=BOT, chat=said.chat, sender_type="app"))

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        return self.fake.texts(GROUP if chat is ChatKind.GROUP else private(sender or self.member))

    def glimpsed(self) -> list[str]:
        cards = [text for card in self.fake.cards.values() for text in card.texts]
        return cards + self.heard()

    def refuse(self, nth: int) -> None:
        self.fake.fail("messages", *[None] * (nth - 1), Fault(status=400, code=230002))

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                await self.fake.gateway.close()
            case Trouble.RESET:
                self.fake.gateway.cut()
            case Trouble.BUSY:
                slow = Fault(status=400, code=99991400, headers=(("x-ogw-ratelimit-reset", "1"),))
                self.fake.fail("messages", slow)
            case Trouble.LOST:
                self.fake.fail("messages", Fault(accepted=True, drop=True))
            case Trouble.BROKEN:
                self.fake.fail("messages", Fault(status=500, body=note.encode()))
            case Trouble.EXPIRED:
                self.fake.valid.clear()
            case Trouble.NONSENSE:
                odd = await self.fake.deliver({"schema": "2.0", "header": note, "event": note})
                await odd.acknowledged.wait()
            case _:
                return False
        return True

    def heals(self) -> None:
        self.fake.faults.clear()
        self.fake.gateway.pending.clear()

    def secrets(self) -> set[str]:
        return {SECRET, *self.fake.tokens, *self.fake.gateway.tickets}

    def forget(self) -> None:
        for seen in (
            self.fake.shown,
            self.fake.calls,
            self.fake.cards,
            self.fake.withdrawn,
            self.fake._uuids,
            self._events,
        ):
            seen.clear()

    async def _deliver(self, event: Obj) -> None:
        delivery = await self.fake.deliver(event)
        await asyncio.wait_for(delivery.acknowledged.wait(), 10)
        assert delivery.code == 200


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeFeishu() as fake:
        yield FeishuPlatform(fake)
        assert not fake.violations
        assert not any(card.growing for card in fake.cards.values())

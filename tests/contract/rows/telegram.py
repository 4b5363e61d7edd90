"""Telegram's row: the real SDK against the fake Bot API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Api, Telegram
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.telegram import GROUP_ID, ME, TELLER, FakeTelegram, Obj
from tests.fakes.telegram.updates import entities, private, supergroup

LACKS: frozenset[Trait] = frozenset()
STRANGER = 1_002

_FILES: dict[AttachmentKind, Obj] = {
    AttachmentKind.IMAGE: {"photo": [{"file_id": "f", "file_unique_id": "u", "width": 9, "height": 9}]},
    AttachmentKind.FILE: {"document": {"file_id": "f", "file_unique_id": "u", "file_name": "notes.txt"}},
    AttachmentKind.VIDEO: {
        "video": {"file_id": "f", "file_unique_id": "u", "width": 9, "height": 9, "duration": 1},
    },
    AttachmentKind.AUDIO: {"voice": {"file_id": "f", "file_unique_id": "u", "duration": 1}},
    AttachmentKind.STICKER: {
        "sticker": {
            "file_id": "f", "file_unique_id": "u", "type": "regular", "width": 9, "height": 9,
            "is_animated": False, "is_video": False,
        },
    },
}  # fmt: skip


_SILENCE = asyncio.Event()
"""Never set."""


class TelegramPlatform:
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("telegram", "ops")
    member = SenderId(str(TELLER))
    stranger = SenderId(str(STRANGER))

    def __init__(self, fake: FakeTelegram) -> None:
        self.fake = fake
        self._updates: dict[str, Obj] = {}

    def channel(self, around: Surroundings) -> Channel:
        table = Telegram(name=self.bot.name, token=Secret(self.fake.token), endpoints=Api(api=self.fake.api))
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
        who = int(sender or self.member)
        where = supergroup() if chat is ChatKind.GROUP else private(who)
        if chat is ChatKind.GROUP and addressed:
            text = f"@{ME['username']} {text}"
        message = self.fake.write.message(text, sender=who, chat=where)
        if attachment is not None:
            message |= {"caption": message.pop("text"), "caption_entities": entities(text), **_FILES[attachment]}
            del message["entities"]
        update = self.fake.write.update(message)
        self._updates[id or ""] = update
        await self._deliver(update)

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self._deliver(dict(self._updates[id]))

    async def echo(self) -> None:
        said = self.fake.said[-1]
        own = self.fake.write.message(said.texts[-1], chat=private(said.chat))
        await self._deliver(self.fake.write.update(own | {"message_id": said.id, "from": ME}))

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        return self.fake.texts(GROUP_ID if chat is ChatKind.GROUP else int(sender or self.member))

    def glimpsed(self) -> list[str]:
        drafts = [text for _, _, text in self.fake.drafts]
        return drafts + [text for said in self.fake.said if said.chat == TELLER for text in said.texts]

    def refuse(self, nth: int) -> None:
        self.fake.fail("sendMessage", status=400, description="Bad Request: not enough rights", after=nth - 1)

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                self.fake.fail("getUpdates", status=502)
            case Trouble.RESET:
                self.fake.fail("getUpdates", drop=True)
            case Trouble.SILENCE:
                self.fake.fail("getUpdates", hold=_SILENCE)
            case Trouble.BUSY:
                self.fake.fail("sendMessage", status=429, description=note, parameters={"retry_after": 1})
            case Trouble.LOST:
                self.fake.fail("sendMessage", effect=True, drop=True)
            case Trouble.BROKEN:
                self.fake.fail("sendMessage", status=500, description=note)
            case Trouble.NONSENSE:
                await self.fake.deliver(self.fake.write.update({"message_id": note, "chat": note, "text": note}))
            case _:
                return False
        return True

    def heals(self) -> None:
        self.fake.forgive()

    def secrets(self) -> set[str]:
        return {self.fake.token}

    def forget(self) -> None:
        for seen in (self.fake.said, self.fake.calls, self.fake.drafts, self._updates):
            seen.clear()

    async def _deliver(self, update: Obj) -> None:
        await self.fake.deliver(update)
        await self.fake.taken(update)


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeTelegram() as fake:
        yield TelegramPlatform(fake)

"""WhatsApp's row: our own webhook and client against the fake Cloud API. A command's whole reply fits one message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Api, Identifier, WhatsApp
from bridges.listen import Listen
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from bridges.text.whatsapp import WhatsAppChannel
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.whatsapp import (
    ACCESS_TOKEN,
    APP_SECRET,
    DIGITS,
    NUMBER,
    VERIFY_TOKEN,
    FakeWhatsApp,
    Fault,
    Obj,
    change,
    message,
    post,
    value,
)

LACKS = frozenset({Trait.STREAMING, Trait.SEGMENTS})
GROUP = "Y2FwaV9ncm91cDpmYWtl"

_TYPES = {
    AttachmentKind.IMAGE: "image",
    AttachmentKind.STICKER: "sticker",
    AttachmentKind.VIDEO: "video",
    AttachmentKind.AUDIO: "audio",
    AttachmentKind.FILE: "document",
}


class WhatsAppPlatform:
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("whatsapp", "ops")
    member = SenderId("16505551234")
    stranger = SenderId("16505550000")

    def __init__(self, fake: FakeWhatsApp) -> None:
        self.fake = fake
        self._channel: WhatsAppChannel | None = None
        self._posts: dict[str, Obj] = {}

    def channel(self, around: Surroundings) -> Channel:
        table = WhatsApp(
            name=self.bot.name,
            phone_number_id=Identifier(NUMBER),
            access_token=Secret(ACCESS_TOKEN),
            app_secret=Secret(APP_SECRET),
            verify_token=Secret(VERIFY_TOKEN),
            listen=Listen("127.0.0.1:0"),
            path="/webhook",
            endpoints=Api(api=self.fake.api),
        )
        channel = build(table, around)
        assert isinstance(channel, WhatsAppChannel)
        self._channel = channel
        return channel

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
        text = f"@{DIGITS} {text}" if group and addressed else text
        found = message(text, sender=sender or self.member)
        if attachment is not None:
            kind = _TYPES[attachment]
            found |= {"type": kind, kind: {"id": "1", "mime_type": "x/y", "sha256": "eA==", "caption": text}}
        if group:
            found["group_id"] = GROUP
        self._posts[id or ""] = post(change(value(found)))
        await self._deliver(self._posts[id or ""])

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self._deliver(self._posts[id])

    async def echo(self) -> None:
        said = self.fake.sent[-1]
        own = message(said.text, sender=DIGITS, to=said.to) | {"id": said.id}
        await self._deliver(post(change({**value(), "message_echoes": [own]}, "smb_message_echoes")))
        await self._deliver(post(change(value(own))))

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        return self.fake.texts(GROUP if chat is ChatKind.GROUP else sender or self.member)

    def glimpsed(self) -> list[str]:
        return self.heard()

    def refuse(self, nth: int) -> None:
        self.fake.fail("send", *[None] * (nth - 1), Fault(code=131026))

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.BUSY:
                self.fake.fail("send", Fault(code=131056))
            case Trouble.LOST:
                self.fake.fail("send", Fault(status=200, accepted=True, drop=True))
            case Trouble.BROKEN:
                self.fake.fail("send", Fault(status=500, body=note.encode()))
            case Trouble.NONSENSE:
                await self._deliver({"object": "whatsapp_business_account", "entry": [{"changes": note}]})
            case _:
                return False
        return True

    def heals(self) -> None:
        self.fake.faults.clear()

    def secrets(self) -> set[str]:
        return {ACCESS_TOKEN, APP_SECRET, VERIFY_TOKEN}

    def forget(self) -> None:
        for seen in (self.fake.sent, self.fake.calls, self.fake.read, self.fake.typed, self._posts):
            seen.clear()

    async def _deliver(self, body: Obj) -> None:
        assert self._channel is not None
        assert self._channel.webhook is not None
        assert await self.fake.deliver(self._channel.webhook, body) == 200


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeWhatsApp() as fake:
        yield WhatsAppPlatform(fake)
        assert not fake.violations

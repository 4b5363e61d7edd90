"""QQ's row: our own client against the fake gateway and API. QQ takes so few replies that no answer can be endless."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import QQ, Identifier, QQEndpoints
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from harness_client.clock import Clock
from tests.bridges.bench import eventually
from tests.contract.platform import Platform, Trait
from tests.contract.rows import Memory
from tests.fakes.qq import APP_ID, BOT_ID, SECRET, FakeQQ, Fault, Obj

LACKS = frozenset({Trait.STREAMING, Trait.ENDLESS})
GROUP = "group-openid"

_TYPES = {
    AttachmentKind.IMAGE: "image/png",
    AttachmentKind.STICKER: "image/gif",
    AttachmentKind.VIDEO: "video/mp4",
    AttachmentKind.AUDIO: "voice",
    AttachmentKind.FILE: "file",
}


class QQPlatform:
    """See :class:`tests.contract.platform.Platform`."""

    bot = BotKey("qq", "ops")
    member = SenderId("member-openid")
    stranger = SenderId("stranger-openid")

    def __init__(self, fake: FakeQQ) -> None:
        self.fake = fake
        self._memory = Memory()
        self._events: dict[str, Obj] = {}

    def channel(self, clock: Clock) -> Channel:
        table = QQ(
            name=self.bot.name,
            app_id=Identifier(APP_ID),
            client_secret=Secret(SECRET),
            endpoints=QQEndpoints(api=self.fake.url, token=self.fake.url),
        )
        return build(table, Surroundings(self._memory, clock, lambda _: None))

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
        if not addressed:
            return  # the platform tells a bot only of messages that mention it
        who = sender or self.member
        group = chat is ChatKind.GROUP
        event = self.fake.message(
            f" {text}" if group else text,
            kind="groups" if group else "users",
            chat=GROUP if group else who,
            sender=who,
        )
        if attachment is not None:
            event["attachments"] = [{"content_type": _TYPES[attachment], "url": "https://multimedia.nt.qq.com.cn/x"}]
        self._events[id or ""] = event
        await self._deliver(event)

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self._deliver(self._events[id])

    async def echo(self) -> None:
        said = self.fake.sent[-1]
        event = self.fake.message(said.text, chat=said.chat)
        await self._deliver(event | {"author": {"id": BOT_ID, "user_openid": said.chat, "bot": True}})

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        return self.fake.texts(GROUP if chat is ChatKind.GROUP else sender or self.member)

    def glimpsed(self) -> list[str]:
        return self.heard()

    def refuse(self, nth: int) -> None:
        self.fake.fail("messages", *[None] * (nth - 1), Fault(status=400, code=40034999))

    async def _deliver(self, event: Obj) -> None:
        number = await self.fake.deliver(event)
        await eventually(lambda: json.loads(self._memory.values.get("session", b'{"seq": 0}'))["seq"] >= number)


@asynccontextmanager
async def platform() -> AsyncIterator[Platform]:
    async with FakeQQ() as fake:
        yield QQPlatform(fake)
        assert not fake.violations

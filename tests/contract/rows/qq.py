"""QQ's row: our own client against the fake gateway and API. QQ takes so few replies that no answer can be endless."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import QQ, Identifier, QQEndpoints
from bridges.message import Channel, Cursors
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.qq import APP_ID, BOT_ID, SECRET, FakeQQ, Fault, Obj
from tests.fakes.waiting import eventually

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
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("qq", "ops")
    member = SenderId("member-openid")
    stranger = SenderId("stranger-openid")

    def __init__(self, fake: FakeQQ) -> None:
        self.fake = fake
        self._cursors: Cursors | None = None
        self._events: dict[str, Obj] = {}

    def channel(self, around: Surroundings) -> Channel:
        table = QQ(
            name=self.bot.name,
            app_id=Identifier(APP_ID),
            client_secret=Secret(SECRET),
            endpoints=QQEndpoints(api=self.fake.url, token=self.fake.url),
        )
        self._cursors = around.cursors
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

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                await self.fake.gateway.close(4009)
            case Trouble.RESET:
                self.fake.gateway.abort()
            case Trouble.SILENCE:
                self.fake.gateway.silent_heart = True
            case Trouble.BUSY:
                self.fake.fail("messages", Fault(status=429, headers=(("Retry-After", "1"),)))
            case Trouble.LOST:
                self.fake.fail("messages", Fault(accepted=True, drop=True))
            case Trouble.BROKEN:
                self.fake.fail("messages", Fault(status=500, body=note.encode()))
            case Trouble.EXPIRED:
                self.fake.revoke()
            case Trouble.NONSENSE:
                await self.fake.gateway.dispatch("C2C_MESSAGE_CREATE", {"id": 7, "author": note, "content": note})
        return True

    def heals(self) -> None:
        self.fake.faults.clear()
        self.fake.gateway.silent_heart = False

    def secrets(self) -> set[str]:
        return {SECRET, *self.fake.tokens}

    def forget(self) -> None:
        gateway = self.fake.gateway
        for seen in (
            self.fake.sent,
            self.fake.calls,
            self.fake._asked,
            gateway.identified,
            gateway.resumed,
            gateway.beats,
            self._events,
        ):
            seen.clear()

    async def _deliver(self, event: Obj) -> None:
        number = await self.fake.deliver(event)

        async def read() -> bool:
            assert self._cursors is not None
            return int(json.loads(await self._cursors.load("session") or b'{"seq": 0}')["seq"]) >= number

        await eventually(read)


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeQQ() as fake:
        yield QQPlatform(fake)
        assert not fake.violations

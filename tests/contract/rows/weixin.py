"""Weixin's row: our own client against the fake iLink platform. It has private chats only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Api, Identifier, Weixin
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.waiting import eventually
from tests.fakes.weixin import ACCOUNT, TOKEN, FakeWeixin, Fault, Obj

LACKS = frozenset({Trait.GROUPS, Trait.STREAMING})

_FILES: dict[AttachmentKind, Obj] = {
    AttachmentKind.IMAGE: {"type": 2, "image_item": {"media": {"encrypt_query_param": "p"}, "aeskey": "00" * 16}},
    AttachmentKind.AUDIO: {"type": 3, "voice_item": {"media": {"encrypt_query_param": "p", "aes_key": "AAAA"}}},
    AttachmentKind.FILE: {"type": 4, "file_item": {"media": {"encrypt_query_param": "p"}, "file_name": "notes.txt"}},
    AttachmentKind.VIDEO: {"type": 5, "video_item": {"media": {"encrypt_query_param": "p"}}},
    AttachmentKind.STICKER: {"type": 2, "image_item": {"media": {"encrypt_query_param": "p"}}},
}
"""A sticker comes as an image."""


class WeixinPlatform:
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("weixin", "ops")
    member = SenderId("member@im.wechat")
    stranger = SenderId("stranger@im.wechat")

    def __init__(self, fake: FakeWeixin) -> None:
        self.fake = fake
        self._ids: dict[str, str] = {}

    def channel(self, around: Surroundings) -> Channel:
        table = Weixin(
            name=self.bot.name, token=Secret(TOKEN), account=Identifier(ACCOUNT), endpoints=Api(api=self.fake.url)
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
        assert chat is ChatKind.DIRECT
        assert addressed
        items: list[Obj] = [{"type": 1, "text_item": {"text": text}}]
        if attachment is not None:
            items.append(_FILES[attachment])
        self._ids[id or ""] = self.fake.says(sender or self.member, items=items)
        await self._taken()

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        self.fake.again(self._ids[id])
        await self._taken()

    async def echo(self) -> None:
        said = self.fake.sent[-1]
        self.fake.deliver(
            {
                "message_id": int(said.id),
                "from_user_id": ACCOUNT,
                "to_user_id": said.user,
                "message_type": 2,
                "message_state": 2,
                "item_list": [{"type": 1, "text_item": {"text": said.text}}],
            }
        )
        await self._taken()

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        assert chat is ChatKind.DIRECT
        return [said.text for said in self.fake.sent if said.user == (sender or self.member)]

    def glimpsed(self) -> list[str]:
        return self.heard()

    def refuse(self, nth: int) -> None:
        self.fake.fail("sendmessage", *[None] * (nth - 1), Fault(ret=-1))

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                self.fake.fail("getupdates", Fault(status=502))
            case Trouble.RESET:
                self.fake.fail("getupdates", Fault(drop=True))
            case Trouble.SILENCE:
                self.fake.fail("getupdates", Fault(hang=True))
            case Trouble.BUSY:
                self.fake.fail("sendmessage", Fault(status=429))
            case Trouble.LOST:
                self.fake.fail("sendmessage", Fault(accepted=True, drop=True))
            case Trouble.BROKEN:
                self.fake.fail("sendmessage", Fault(status=500, body=note.encode()))
            case Trouble.NONSENSE:
                self.fake.deliver({"message_id": note, "message_type": note, "item_list": note})
                await self._taken()
            case _:
                return False
        return True

    def heals(self) -> None:
        self.fake.faults.clear()

    def secrets(self) -> set[str]:
        tickets = {f"ticket-{body['ilink_user_id']}" for call, body in self.fake.calls if call == "getconfig"}
        return {TOKEN} | tickets | self.fake.context_tokens

    def forget(self) -> None:
        for seen in (self.fake.sent, self.fake.calls, self.fake.typing, self._ids):
            seen.clear()
        del self.fake.answered_cursors[:-1]

    async def _taken(self) -> None:
        await eventually(lambda: self.fake.through)


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeWeixin() as fake:
        yield WeixinPlatform(fake)
        assert not fake.violations

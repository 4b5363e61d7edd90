"""WeCom's row: our own client against the fake long connection. The platform never delivers the bot's own messages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Identifier, WeCom, WeComEndpoints
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from bridges.wecom.channel import WeComChannel
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.waiting import eventually
from tests.fakes.wecom import BOT_ID, SECRET, FakeWeCom, Fault, Obj

LACKS = frozenset({Trait.ECHO})
GROUP = "group-1"


class WeComPlatform:
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("wecom", "ops")
    member = SenderId("member")
    stranger = SenderId("stranger")

    def __init__(self, fake: FakeWeCom) -> None:
        self.fake = fake
        self._frames: dict[str, Obj] = {}
        self._channel: WeComChannel | None = None

    def channel(self, around: Surroundings) -> Channel:
        table = WeCom(
            name=self.bot.name,
            bot_id=Identifier(BOT_ID),
            secret=Secret(SECRET),
            display_name="Some Bot",
            endpoints=WeComEndpoints(websocket=self.fake.url),
        )
        channel = build(table, around)
        assert isinstance(channel, WeComChannel)
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
        if not addressed:
            return  # the platform tells a bot only of messages that mention it
        if attachment not in {None, AttachmentKind.IMAGE}:
            return  # only pictures come with text
        group = GROUP if chat is ChatKind.GROUP else None
        piece: Obj = {"msgtype": "text", "text": {"content": f"@Some Bot {text}" if group else text}}
        body = piece
        if attachment is not None:
            image: Obj = {"msgtype": "image", "image": {"url": "https://ww.qpic.cn/x", "aeskey": "AAAA"}}
            body = {"msgtype": "mixed", "mixed": {"msg_item": [piece, image]}}
        frame = self.fake.callback(body, sender=sender or self.member, group=group)
        self._frames[id or ""] = frame
        await self._deliver(frame)

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self._deliver(self.fake.again(self._frames[id]))

    async def echo(self) -> None:
        raise NotImplementedError

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        return self.fake.texts(GROUP if chat is ChatKind.GROUP else sender or self.member)

    def glimpsed(self) -> list[str]:
        return [text for said in self.fake.said if said.chat == self.member for text in said.states]

    def refuse(self, nth: int) -> None:
        self.fake.fail("aibot_respond_msg", *[None] * (nth - 1), Fault(code=40058))

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                await self.fake.close()
            case Trouble.RESET:
                self.fake.abort()
            case Trouble.SILENCE:
                self.fake.silent_heart = True
            case Trouble.BUSY:
                self.fake.fail("aibot_respond_msg", Fault(code=45009))
            case Trouble.LOST:
                self.fake.fail("aibot_respond_msg", Fault(silent=True, accepted=True))
            case Trouble.EXPIRED:
                self.fake.expire()
            case Trouble.NONSENSE:
                await self.fake.tell(json.dumps({"cmd": "aibot_msg_callback", "headers": note, "body": note}))
            case _:
                return False
        return True

    def heals(self) -> None:
        self.fake.faults.clear()
        self.fake.silent_heart = False

    def secrets(self) -> set[str]:
        return {SECRET}

    def forget(self) -> None:
        for seen in (self.fake.said, self.fake.frames, self.fake._requests, self._frames):
            seen.clear()

    async def _deliver(self, frame: Obj) -> None:
        await self.fake.deliver(frame)
        await self.fake.read()
        assert self._channel is not None
        waiting = self._channel._waiting
        await eventually(lambda: not waiting)


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeWeCom() as fake:
        yield WeComPlatform(fake)
        assert not fake.violations
        assert not fake.hanging

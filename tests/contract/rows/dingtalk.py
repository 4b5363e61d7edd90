"""DingTalk's row: our connection with the SDK's frames against the fake gateway and API, with a card template.

The platform never delivers the bot's own messages.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Api, DingTalk, Identifier
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from harness_client.clock import Clock
from tests.contract.platform import Platform, Trait
from tests.contract.rows import Memory
from tests.fakes.dingtalk import CLIENT_ID, SECRET, FakeDingTalk, Fault, Obj
from tests.fakes.dingtalk.cards import TEMPLATE

LACKS = frozenset({Trait.ECHO})
GROUP = "cid-group"


class DingTalkPlatform:
    """See :class:`tests.contract.platform.Platform`."""

    bot = BotKey("dingtalk", "ops")
    member = SenderId("member")
    stranger = SenderId("stranger")

    def __init__(self, fake: FakeDingTalk) -> None:
        self.fake = fake
        self._messages: dict[str, Obj] = {}

    def channel(self, clock: Clock) -> Channel:
        table = DingTalk(
            name=self.bot.name,
            client_id=Identifier(CLIENT_ID),
            client_secret=Secret(SECRET),
            card_template=Identifier(TEMPLATE),
            endpoints=Api(api=self.fake.url),
        )
        return build(table, Surroundings(Memory(), clock, lambda _: None))

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
        message = self.fake.message(text, sender=sender or self.member, group=group, now=time.time())
        if attachment is not None:
            pieces = [{"text": text}, {"type": "picture", "downloadCode": "code"}]
            message |= {"msgtype": "richText", "text": None, "content": {"richText": pieces}}
        self._messages[id or ""] = message
        await self._deliver(message)

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self._deliver(self._messages[id])

    async def echo(self) -> None:
        raise NotImplementedError

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        return self.fake.texts(GROUP if chat is ChatKind.GROUP else f"cid-{sender or self.member}")

    def glimpsed(self) -> list[str]:
        return [
            state for card in self.fake.cards.all.values() if card.chat == f"cid-{self.member}" for state in card.states
        ]

    def refuse(self, nth: int) -> None:
        self.fake.fail("webhook", *[None] * (nth - 1), Fault(errcode=300001))
        self.fake.fail("private", Fault(status=400, code="param.error"))

    async def _deliver(self, message: Obj) -> None:
        await self.fake.gateway.taken(await self.fake.gateway.callback(message))


@asynccontextmanager
async def platform() -> AsyncIterator[Platform]:
    async with FakeDingTalk() as fake:
        yield DingTalkPlatform(fake)
        assert not fake.violations
        assert all(card.ended for card in fake.cards.all.values())

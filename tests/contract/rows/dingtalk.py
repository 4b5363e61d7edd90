"""DingTalk's row: our connection with the SDK's frames against the fake gateway and API, with a card template.

The platform never delivers the bot's own messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Api, DingTalk, Identifier
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.dingtalk import CLIENT_ID, SECRET, FakeDingTalk, Fault, Obj
from tests.fakes.dingtalk.cards import TEMPLATE

LACKS = frozenset({Trait.ECHO})
GROUP = "cid-group"


class DingTalkPlatform:
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("dingtalk", "ops")
    member = SenderId("member")
    stranger = SenderId("stranger")

    def __init__(self, fake: FakeDingTalk) -> None:
        self.fake = fake
        self._messages: dict[str, Obj] = {}
        self._time: Callable[[], float] = float

    def channel(self, around: Surroundings) -> Channel:
        table = DingTalk(
            name=self.bot.name,
            client_id=Identifier(CLIENT_ID),
            client_secret=Secret(SECRET),
            card_template=Identifier(TEMPLATE),
            endpoints=Api(api=self.fake.url),
        )
        self._time = around.clock.time
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
        if attachment not in {None, AttachmentKind.IMAGE}:
            return  # only pictures come with text
        group = GROUP if chat is ChatKind.GROUP else None
        message = self.fake.message(text, sender=sender or self.member, group=group, now=self._time())
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

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                await self.fake.gateway.close()
            case Trouble.RESET:
                self.fake.gateway.abort()
            case Trouble.SILENCE:
                self.fake.gateway.dead = True
            case Trouble.BUSY:
                self._fail(Fault(status=429, headers=(("Retry-After", "1"),)))
            case Trouble.LOST:
                self._fail(Fault(accepted=True, drop=True))
            case Trouble.BROKEN:
                self._fail(Fault(status=500, body=note.encode()))
            case Trouble.EXPIRED:
                self.fake.revoke()
            case Trouble.NONSENSE:
                await self.fake.gateway.taken(await self.fake.gateway.callback({"msgId": 7, "text": note}))
        return True

    def _fail(self, fault: Fault) -> None:
        """Let an answer meet a fault, whether it comes as a card or as a message."""
        for call in ("deliver", "webhook"):
            self.fake.fail(call, fault)

    def heals(self) -> None:
        self.fake.faults.clear()
        self.fake.gateway.dead = False

    def secrets(self) -> set[str]:
        return {SECRET, *self.fake.tokens, *self.fake.given}

    def forget(self) -> None:
        for seen in (
            self.fake.calls,
            self.fake.opened,
            self.fake.gateway.acknowledged,
            self.fake.gateway._sent,
            self._messages,
        ):
            seen.clear()
        self.fake.forget()

    async def _deliver(self, message: Obj) -> None:
        await self.fake.gateway.taken(await self.fake.gateway.callback(message))


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeDingTalk() as fake:
        yield DingTalkPlatform(fake)
        assert not fake.violations
        assert all(card.ended for card in fake.cards.all.values() if card.chat)

"""Slack's row: the real SDK in Socket Mode against the fake Slack."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Api, Slack
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.slack import BOT_ID, BOT_USER, CHANNEL, TELLER, FakeSlack, Obj, direct
from tests.fakes.slack.socket import Envelope

LACKS: frozenset[Trait] = frozenset()

_TYPES = {
    AttachmentKind.IMAGE: "image/png",
    AttachmentKind.FILE: "application/pdf",
    AttachmentKind.VIDEO: "video/mp4",
    AttachmentKind.AUDIO: "audio/mp4",
    AttachmentKind.STICKER: "image/webp",  # Slack has no stickers: a picture like any other
}


class SlackPlatform:
    """See :class:`tests.contract.platform.Simulated`."""

    bot = BotKey("slack", "ops")
    member = SenderId(TELLER)
    stranger = SenderId("U0STRANGER")

    def __init__(self, fake: FakeSlack) -> None:
        self.fake = fake
        self._envelopes: dict[str, Envelope] = {}

    def channel(self, around: Surroundings) -> Channel:
        table = Slack(
            name=self.bot.name,
            bot_token=Secret(self.fake.bot_token),
            app_token=Secret(self.fake.app_token),
            endpoints=Api(api=self.fake.api),
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
        mention = group and addressed
        event = self.fake.write.message(
            f"@ThisBot {text}" if mention else text,
            sender=sender or self.member,
            kind="channel" if group else "im",
        )
        if attachment is not None:
            event |= {"subtype": "file_share", "files": [_file(_TYPES[attachment])]}
        if mention:
            await self.fake.taken(await self.fake.deliver(self.fake.write.mention(event)))
        envelope = await self.fake.deliver(event)
        self._envelopes[id or ""] = envelope
        await self.fake.taken(envelope)

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self.fake.sockets.resend(self._envelopes[id])
        await self.fake.taken(self._envelopes[id])

    async def echo(self) -> None:
        said = self.fake.said[-1]
        own = self.fake.write.message("", sender=BOT_USER, channel=said.channel)
        await self.fake.taken(await self.fake.deliver(own | {"text": said.texts[-1], "ts": said.ts, "bot_id": BOT_ID}))

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        return self.fake.texts(CHANNEL if chat is ChatKind.GROUP else direct(sender or self.member))

    def glimpsed(self) -> list[str]:
        return [html.unescape(text) for said in self.fake.said if said.channel == direct() for text in said.texts]

    def refuse(self, nth: int) -> None:
        self.fake.fail("chat.postMessage", error="restricted_action", after=nth - 1)

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                await self.fake.sockets.close()
            case Trouble.RESET:
                self.fake.sockets.cut()
            case Trouble.SILENCE:
                self.fake.sockets.deaf = True
            case Trouble.BUSY:
                self.fake.fail("chat.postMessage", error="ratelimited", status=429, headers={"Retry-After": "1"})
            case Trouble.LOST:
                self.fake.fail("chat.postMessage", effect=True, drop=True)
            case Trouble.BROKEN:
                self.fake.fail("chat.postMessage", error=note, status=500)
            case Trouble.NONSENSE:
                odd = self.fake.write.message(note) | {"channel": 7, "user": [note], "ts": note}
                await self.fake.deliver(odd)  # the SDK may fail before it could be acknowledged
            case _:
                return False
        return True

    def heals(self) -> None:
        self.fake.forgive()
        self.fake.sockets.deaf = False
        for envelope in self.fake.sockets.envelopes.values():
            envelope.acknowledged = True

    def secrets(self) -> set[str]:
        return {self.fake.bot_token, self.fake.app_token, *self.fake.sockets.tickets, *self.fake.hooks}

    def forget(self) -> None:
        for seen in (self.fake.said, self.fake.calls, self.fake.sockets.envelopes, self._envelopes):
            seen.clear()


def _file(mimetype: str) -> Obj:
    return {
        "id": "F0FAKE",
        "name": "some file",
        "mimetype": mimetype,
        "size": 9,
        "url_private": "https://files.slack.com/f",
    }


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeSlack() as fake:
        yield SlackPlatform(fake)

"""Discord's row: the real SDK against the fake gateway and API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridges.channels import Surroundings, build
from bridges.config import Discord, DiscordEndpoints
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from bridges.text.discord import DiscordChannel
from commands.model import AttachmentKind, ChatKind, SenderId
from tests.contract.platform import Simulated, Trait, Trouble
from tests.fakes.discord import GENERAL, ME, TELLER, FakeDiscord, Obj, dm
from tests.fakes.discord.payloads import is_direct
from tests.fakes.waiting import eventually

LACKS: frozenset[Trait] = frozenset()

_TYPES = {
    AttachmentKind.IMAGE: "image/png",
    AttachmentKind.VIDEO: "video/mp4",
    AttachmentKind.AUDIO: "audio/ogg; codecs=opus",
    AttachmentKind.FILE: "text/plain",
}


def _carrying(kind: AttachmentKind) -> dict[str, object]:
    if kind is AttachmentKind.STICKER:
        return {"sticker_items": [{"id": "5", "name": "wave", "format_type": 1}]}
    url = "https://cdn.discordapp.com/attachments/1/2/notes"
    file: Obj = {"id": "5", "filename": "notes", "size": 12, "url": url, "proxy_url": url, "content_type": _TYPES[kind]}
    return {"attachments": [file]}


_POST = r"POST /channels/\d+/messages$"


class DiscordPlatform:
    """See :class:`tests.contract.platform.Simulated`. Its group is a text channel with the threads in it."""

    bot = BotKey("discord", "ops")
    member = SenderId(str(TELLER))
    stranger = SenderId(str(TELLER + 1))

    def __init__(self, fake: FakeDiscord) -> None:
        self.fake = fake
        self._messages: dict[str, Obj] = {}
        self._channel: DiscordChannel | None = None

    def channel(self, around: Surroundings) -> Channel:
        endpoints = DiscordEndpoints(api=self.fake.api, gateway=self.fake.gateway.url)
        table = Discord(name=self.bot.name, token=Secret(self.fake.token), endpoints=endpoints)
        made = build(table, around)
        assert isinstance(made, DiscordChannel)
        self._channel = made
        return made

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
        where = GENERAL if chat is ChatKind.GROUP else dm(who)
        if chat is ChatKind.GROUP and addressed:
            text = f"<@{ME}> {text}"
        more = _carrying(attachment) if attachment else {}
        message = self.fake.write.message(text, sender=who, where=where, **more)
        self._messages[id or ""] = message
        await self._deliver(message)

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        await self._deliver(self._messages[id])

    async def echo(self) -> None:
        said = self.fake.said[-1]
        await self._deliver(self.fake.write.message(said.texts[-1], sender=ME, where=said.channel))

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        if chat is ChatKind.GROUP:
            return [said.texts[-1] for said in self.fake.said if not is_direct(said.channel)]
        return self.fake.texts(dm(int(sender or self.member)))

    def glimpsed(self) -> list[str]:
        return [text for said in self.fake.said if said.channel == dm(TELLER) for text in said.texts]

    def refuse(self, nth: int) -> None:
        self.fake.fail(_POST, status=400, code=20009, after=nth - 1)

    async def meets(self, trouble: Trouble, note: str) -> bool:
        match trouble:
            case Trouble.CLOSE:
                await self.fake.gateway.close(4000)
            case Trouble.RESET:
                self.fake.gateway.cut()
            case Trouble.SILENCE:
                self.fake.gateway.silent = True
            case Trouble.BUSY:
                body: Obj = {"message": note, "retry_after": 1.0, "global": False}
                self.fake.fail(_POST, status=429, body=body, headers={"Retry-After": "1", "Via": "fake"})
            case Trouble.LOST:
                self.fake.fail(_POST, effect=True, drop=True)
            case Trouble.BROKEN:
                self.fake.fail(_POST, status=500, body={"message": note})
            case Trouble.NONSENSE:
                odd = self.fake.write.message(note, where=dm(int(self.member))) | {"type": note, "timestamp": note}
                await self.fake.deliver(odd)
            case _:
                return False
        return True

    def heals(self) -> None:
        self.fake.forgive()
        self.fake.gateway.silent = False

    def secrets(self) -> set[str]:
        return {self.fake.token}

    def forget(self) -> None:
        for seen in (self.fake.said, self.fake.calls, self.fake._nonces, self._messages):
            seen.clear()
        self.fake.gateway.forget()

    async def _deliver(self, message: Obj) -> None:
        await self.fake.deliver(message)
        await self.fake.gateway.taken()
        assert self._channel is not None
        waiting = self._channel._waiting
        await eventually(lambda: not waiting)


@asynccontextmanager
async def platform() -> AsyncIterator[Simulated]:
    async with FakeDiscord() as fake:
        yield DiscordPlatform(fake)

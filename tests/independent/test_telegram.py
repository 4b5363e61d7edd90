"""Telegram beside other vendors: our channel against another vendor's server, another vendor's bot against our fake."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from bridges.channels import Surroundings, build
from bridges.config import Api, Telegram
from bridges.message import Channel
from bridges.secret import Secret
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId
from i18n import Key, Language
from tests.bridges.bench import eventually
from tests.contract.desk import desk_at
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import GROUP_ID, TELLER, FakeTelegram, Obj
from tests.fakes.telegram.updates import entities
from tests.independent.crabline import Crabline, Row, served
from tests.independent.installs import NODE, node_in, node_modules, started

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

GRAMMY = "grammy@1.46.0"


class BotApiServer(Crabline):
    """Another vendor's Bot API."""

    bot = BotKey("telegram", "ops")
    member = SenderId("100001")
    stranger = SenderId("100002")

    def __init__(self, where: Row) -> None:
        super().__init__(where)
        self.api = where["baseUrl"]
        self.token = where["botToken"]

    def channel(self, around: Surroundings) -> Channel:
        table = Telegram(name=self.bot.name, token=Secret(self.token), endpoints=Api(api=self.api))
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
        body: Obj = {"chatId": str(who), "fromId": who, "text": text, "entities": entities(text)}
        if chat is ChatKind.GROUP:
            body |= {"chatId": str(GROUP_ID), "chatType": "supergroup"}
        await self.tell(body)

    async def name(self) -> str:
        """Return the bot's user name."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.api}/bot{self.token}/getMe") as answer:
            return str((await answer.json())["result"]["username"])

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        place = GROUP_ID if chat is ChatKind.GROUP else int(sender or self.member)
        sent = [call["body"] for call in self.rows() if call["path"].endswith("/sendMessage") and call["accepted"]]
        return [body["text"] for body in sent if int(body["chat_id"]) == place]


async def test_our_bot_talks_through_another_vendors_server(tmp_path: Path) -> None:
    async with (
        served("telegram", tmp_path) as where,
        FakeHarness() as host,
        desk_at(host, platform := BotApiServer(where), tmp_path, Language.EN) as desk,
    ):
        await platform.says("hello")
        await eventually(lambda: platform.heard() == ["You said: hello"], 20)
        await platform.says("/history")
        await eventually(lambda: len(platform.heard()) == 2, 20)
        assert "You said: hello" in platform.heard()[1]
        await platform.says("/history@" + await platform.name(), chat=ChatKind.GROUP)
        await eventually(lambda: platform.heard(ChatKind.GROUP) == [desk.words(Key.HISTORY_PRIVATE_ONLY)], 20)
        assert len(desk.writes) == 2, "one session, one prompt"


async def test_another_vendors_bot_talks_through_our_fake(tmp_path: Path) -> None:
    modules = node_modules(NODE, GRAMMY)
    script = tmp_path / "bot.mjs"
    script.write_text((Path(__file__).parent / "telegram_bot.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(modules)
    async with (
        FakeTelegram() as fake,
        started(node_in(modules), str(script), folder=tmp_path, API=fake.api, TOKEN=fake.token) as child,
    ):
        fake.files["f"] = ("documents/file_1.txt", b"x")
        update = fake.write.update(fake.write.message("/start 👋"))
        await fake.deliver(update)
        await fake.taken(update)
        await fake.until(lambda: fake.texts(TELLER)[-1:] == ["edited: 👋"], 30)
        assert fake.said[0].texts == ["heard: 👋", "edited: 👋"]
        assert [row["command"] for row in fake.menus[None]] == ["start"]
        assert child.stdout is not None
        async with asyncio.timeout(30):
            assert json.loads(await child.stdout.readline()) == {
                "me": "ThisBot",
                "long": [400, "Bad Request: message is too long"],
                "same": [400, "Bad Request: message is not modified: specified new message content is the same"],
                "file": "documents/file_1.txt",
            }

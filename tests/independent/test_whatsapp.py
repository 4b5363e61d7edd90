"""WhatsApp beside another vendor: our channel against its Cloud API, its posts signed and handed to our webhook."""

from __future__ import annotations

from pathlib import Path

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
from tests.independent.crabline import Crabline, Row, served

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]


class CloudApiServer(Crabline):
    """Another vendor's Cloud API."""

    bot = BotKey("whatsapp", "ops")
    member = SenderId("16505551234")
    stranger = SenderId("16505550000")

    def __init__(self, where: Row) -> None:
        super().__init__(where)
        self.api = where["endpoints"]["apiRoot"]
        self.token = where["accessToken"]
        self.number = where["phoneNumberId"]
        self.ours: WhatsAppChannel | None = None

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
        body = (await self.tell({"chatJid": jid, "senderJid": jid, "text": text}))["webhook"]
        assert self.ours is not None
        assert self.ours.webhook is not None
        assert await FakeWhatsApp().deliver(self.ours.webhook, body) == 200

    def calls(self) -> list[Obj]:
        """Return the bodies of all calls that were accepted, in order; of others the test wants none."""
        posts = [row for row in self.rows() if row["type"] == "api" and row["method"] == "POST"]
        assert all(row["accepted"] for row in posts), posts
        return [row["body"] for row in posts]

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        sent = [body for body in self.calls() if body.get("to") == (sender or self.member)]
        return [text["body"] for body in sent if isinstance(text := body["text"], dict)]


async def test_our_bot_talks_through_another_vendors_cloud_api(tmp_path: Path) -> None:
    async with (
        served("whatsapp", tmp_path) as where,
        FakeHarness() as host,
        desk_at(host, platform := CloudApiServer(where), tmp_path, Language.EN) as desk,
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
    async with served("whatsapp", tmp_path) as where, FakeWhatsApp() as fake:
        theirs = CloudApiServer(where)
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

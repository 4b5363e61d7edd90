"""A linked WhatsApp device: the real client under Node against another vendor's server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bridges.channels import Surroundings, build
from bridges.config import Api, WhatsApp
from bridges.message import Acceptance, Channel
from bridges.state import BotKey
from bridges.text.whatsapp_sidecar import BAILEYS, Broken, Device
from bridges.text.whatsapp_sidecar import started as sidecar_of
from commands.model import AttachmentKind, ChatKind, SenderId
from harness_client.clock import SYSTEM_CLOCK
from i18n import Language
from tests.bridges.bench import eventually
from tests.channels.around import RecordingInbox
from tests.contract.desk import desk_at
from tests.contract.rows import Memory
from tests.fakes.harness import FakeHarness
from tests.independent.crabline import CRABLINE, Crabline, Row, served
from tests.independent.installs import NODE, node_in, node_modules, started

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

GROUP = "120363001234567890@g.us"


class LinkedServer(Crabline):
    """Another vendor's WhatsApp, as a phone's account sees it."""

    bot = BotKey("whatsapp", "ops")
    member = SenderId("16505551234")
    stranger = SenderId("16505550000")

    def __init__(self, where: Row, data: Path) -> None:
        super().__init__(where)
        self.url = where["endpoints"]["baileysWebSocketUrl"]
        self.data = data

    def channel(self, around: Surroundings) -> Channel:
        table = WhatsApp(name=self.bot.name, transport="linked", endpoints=Api(api=self.url))
        return build(table, replace(around, data=self.data))

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
        who = f"{sender or self.member}@s.whatsapp.net"
        where = GROUP if chat is ChatKind.GROUP else who
        await self.tell({"chatJid": where, "senderJid": who, "text": text})

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        """Return what this server could decrypt; it cannot what is sent to a group."""
        bodies = [row["body"] for row in self.rows() if row.get("accepted")]
        where = f"{sender or self.member}@s.whatsapp.net"
        return [body["message"]["conversation"] for body in bodies if body["key"]["remoteJid"] == where]


@asynccontextmanager
async def linked(folder: Path) -> AsyncIterator[LinkedServer]:
    async with served("whatsapp", folder) as where:
        await _link(folder, node_in(node_modules(NODE, CRABLINE)), where["selfJid"])
        yield LinkedServer(where, folder)


async def _link(data: Path, node: str, me: str) -> None:
    """Put the package where the setup would, and a login there."""
    home = data / "whatsapp"
    home.mkdir()
    packages = home / "node_modules"
    packages.symlink_to(node_modules(BAILEYS))
    script = Path(__file__).with_name("whatsapp_login.mjs")
    async with started(node, str(script), str(packages), str(home / "devices" / "ops"), me, folder=data) as child:
        assert await child.wait() == 0


async def test_a_linked_device_talks_through_another_vendors_server(tmp_path: Path) -> None:
    async with (
        linked(tmp_path) as platform,
        FakeHarness() as host,
        desk_at(host, platform, tmp_path, Language.EN) as desk,
    ):
        await platform.says("hello 👋")
        await eventually(lambda: platform.heard() == ["You said: hello 👋"], 20)
        await platform.says("/history")
        await eventually(lambda: len(platform.heard()) == 2, 20)
        assert "You said: hello 👋" in platform.heard()[1]
        await platform.says("not for the bot", chat=ChatKind.GROUP)
        await eventually(lambda: len(desk.accepted) == 3, 20)
        in_group, acceptance = desk.accepted[-1]
        assert (in_group.kind, in_group.chat.chat, in_group.sender) == (ChatKind.GROUP, GROUP, platform.member)
        assert acceptance is Acceptance.IGNORED
        tags = {str(row["body"]) for row in platform.rows() if row["method"] == "WEBSOCKET"}
        assert any("'type': 'read'" in tag for tag in tags)
        assert any("composing" in tag for tag in tags)
        assert len(desk.writes) == 2, "one session, one prompt"


async def test_a_message_that_was_not_taken_is_told_again_at_the_next_start(tmp_path: Path) -> None:
    async with linked(tmp_path) as platform:
        inbox = RecordingInbox()
        inbox.answers.append(OSError("disk full"))
        channel = platform.channel(Surroundings(Memory(), SYSTEM_CLOCK, lambda _: None))
        first = asyncio.create_task(channel.run(inbox))
        await inbox.until(lambda: inbox.ups == 1, 30)
        await platform.says("remember me")
        await asyncio.wait({first}, timeout=30)
        assert isinstance(first.exception(), OSError)
        second = asyncio.create_task(channel.run(inbox))
        await inbox.until(lambda: len(inbox.messages) == 1, 30)
        assert inbox.messages[0].text == "remember me"
        spool = tmp_path / "whatsapp" / "devices" / "ops" / "spool"
        await eventually(lambda: not list(spool.iterdir()), 20)
        second.cancel()
        await asyncio.wait({second})


async def test_without_the_package_the_device_says_that_it_is_broken(tmp_path: Path) -> None:
    node = node_in(node_modules(NODE, CRABLINE))
    async with sidecar_of(Device(node, tmp_path / "nothing", tmp_path / "device"), SYSTEM_CLOCK) as sidecar:
        assert await sidecar.event() == Broken()

"""Linking a WhatsApp device by its code, and what it is told then: the real client, a simulated server and phone."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridges.message import AttachmentKind, ChannelStopped, ChatKind, InboundMessage, Stop
from bridges.text.whatsapp_linked import LinkedChannel
from bridges.text.whatsapp_sidecar import BAILEYS, Device, Opened, Qr, Sidecar
from bridges.text.whatsapp_sidecar import started as sidecar_of
from harness_client.clock import SYSTEM_CLOCK
from tests.bridges.bench import eventually
from tests.channels.around import RecordingInbox
from tests.fakes.whatsapp import Obj
from tests.guards.sources import ROOT
from tests.independent.crabline import CRABLINE
from tests.independent.installs import NODE, node_in, node_modules, started

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

ALICE = "16505551234@s.whatsapp.net"
GROUP = "120363001234567890@g.us"
OURS = ("15550000000:7@s.whatsapp.net", "999:7@lid")
SECONDS = 30.0

_SETUP = "import sys; sys.modules['segno'] = None; from bridges.cli import main; main()"
"""The command where nothing draws the code: it prints what the code says."""


_STUCK = """
import asyncio, sys
from pathlib import Path
from bridges.text.whatsapp_linked import LinkedChannel
from harness_client.clock import SYSTEM_CLOCK
from tests.channels.around import RecordingInbox

class Stuck(RecordingInbox):
    async def accept(self, message):
        print("claiming", flush=True)
        await asyncio.Event().wait()

channel = LinkedChannel("me", data=Path(sys.argv[1]), url=sys.argv[2], clock=SYSTEM_CLOCK, path=sys.argv[3])
asyncio.run(channel.run(Stuck()))
"""
"""A bot that is never through with what it hears."""


class Phone:
    """The program that is WhatsApp's server and the phone."""

    def __init__(self, child: asyncio.subprocess.Process, data: Path, packages: Path) -> None:
        self._child = child
        self.data = data
        self.packages = packages
        self.port = 0
        self.said: list[Obj] = []

    async def listen(self) -> None:
        """Note what the program says."""
        assert self._child.stdout is not None
        while line := await self._child.stdout.readline():
            event = json.loads(line)
            self.port = event.get("port", self.port)
            self.said.append(event)

    def does(self, what: str, value: object) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({what: value}).encode() + b"\n")

    def tells(self, message: Obj, **attrs: str) -> None:
        """Tell the device of a message."""
        self.does("tell", {"attrs": {"from": ALICE, **attrs}, "message": message})

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def device(self) -> Device:
        home = self.data / "whatsapp"
        return Device(node_in(node_modules(NODE, CRABLINE)), home / "node_modules", home / "devices" / "me", self.url)


@pytest.fixture
async def phone(tmp_path: Path) -> AsyncIterator[Phone]:
    theirs = node_modules(NODE, CRABLINE)
    server = theirs / "@openclaw" / "crabline" / "dist" / "src" / "servers" / "whatsapp-baileys-websocket.js"
    script = Path(__file__).with_name("whatsapp_phone.mjs")
    packages = node_modules(BAILEYS)
    (tmp_path / "whatsapp").mkdir()
    (tmp_path / "whatsapp" / "node_modules").symlink_to(packages)
    child = await asyncio.create_subprocess_exec(
        node_in(theirs), str(script), str(packages), str(server), env={},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    made = Phone(child, tmp_path, packages)
    listening = asyncio.create_task(made.listen())
    try:
        await eventually(lambda: bool(made.port), SECONDS)
        yield made
    finally:
        child.kill()
        await child.wait()
        await listening


async def linked(phone: Phone, sidecar: Sidecar) -> Opened:
    """Scan the code that a device shows; return what it says once it is linked."""
    while True:
        match await sidecar.event():
            case Qr(text):
                phone.does("scan", text)
            case Opened() as opened:
                return opened


@asynccontextmanager
async def running(phone: Phone) -> AsyncIterator[tuple[RecordingInbox, asyncio.Task[None]]]:
    """Link a device and run its channel."""
    async with asyncio.timeout(SECONDS), sidecar_of(phone.device, SYSTEM_CLOCK) as sidecar:
        await linked(phone, sidecar)
    async with again(phone) as made:
        yield made


@asynccontextmanager
async def again(phone: Phone) -> AsyncIterator[tuple[RecordingInbox, asyncio.Task[None]]]:
    """Run the channel of a device that is linked."""
    inbox = RecordingInbox()
    node = Path(phone.device.node).parent
    channel = LinkedChannel("me", data=phone.data, url=phone.url, clock=SYSTEM_CLOCK, path=str(node))
    run = asyncio.create_task(channel.run(inbox))
    run.add_done_callback(lambda _: inbox.changed.set())
    try:
        await inbox.until(lambda: inbox.ups == 1 or run.done(), SECONDS)
        yield inbox, run
    finally:
        run.cancel()
        await asyncio.wait({run})


async def test_a_scanned_code_links_the_device_and_its_login_lasts(phone: Phone) -> None:
    async with asyncio.timeout(SECONDS), sidecar_of(phone.device, SYSTEM_CLOCK) as sidecar:
        assert await linked(phone, sidecar) == Opened(OURS)
    steps = [event for event in phone.said if {"port", "left"}.isdisjoint(event)]
    assert steps[:4] == [
        {"login": "new"},
        {"scanned": "ref-one"},
        {"linked": True, "key": "3"},
        {"login": 15550000000},
    ]
    async with asyncio.timeout(SECONDS), sidecar_of(phone.device, SYSTEM_CLOCK) as sidecar:
        assert await sidecar.event() == Opened(OURS), "no code is asked for again"


async def test_the_setup_shows_the_code_and_says_when_it_was_scanned(phone: Phone, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        f'language = "en"\n[state]\npath = "{tmp_path}/state.db"\n[[bot]]\nname = "me"\nchannel = "whatsapp"\n'
        f'transport = "linked"\nendpoints = {{ api = "{phone.url}" }}\n'
    )
    words = ("-c", _SETUP, "whatsapp", "setup", "--yes", "--config", str(config))
    path = f"{Path(phone.device.node).parent}{os.pathsep}{os.environ['PATH']}"
    async with started(sys.executable, *words, folder=ROOT, PATH=path, HOME=str(tmp_path)) as setup:
        assert setup.stdout is not None
        shown: list[str] = []
        async with asyncio.timeout(SECONDS):
            while line := (await setup.stdout.readline()).decode():
                shown.append(line)
                if "#ref-" in line:
                    phone.does("scan", line.split()[-1])
            assert await setup.wait() == 0, shown
    assert "me is linked" in shown[-1]
    secret = next(line for line in shown if "#ref-" in line).split(",")[-2]
    kept = [file for file in (tmp_path / "whatsapp" / "devices").rglob("*") if file.is_file()]
    assert any(secret in file.read_text() for file in kept), "the login is there"
    assert all(file.stat().st_mode & 0o077 == 0 for file in kept), "for nobody else to read"


async def test_a_program_that_is_killed_leaves_no_device_and_no_message_behind(phone: Phone) -> None:
    async with asyncio.timeout(SECONDS), sidecar_of(phone.device, SYSTEM_CLOCK) as sidecar:
        await linked(phone, sidecar)
    node = str(Path(phone.device.node).parent)
    words = ("-c", _STUCK, str(phone.data), phone.url, node)
    async with started(sys.executable, *words, folder=ROOT, HOME=str(phone.data)) as child:
        assert child.stdout is not None
        await eventually(lambda: phone.said.count({"login": 15550000000}) == 2, SECONDS)
        phone.tells({"conversation": "remember me"})
        async with asyncio.timeout(SECONDS):
            assert await child.stdout.readline() == b"claiming\n"
        child.kill()
        await child.wait()
        await eventually(lambda: phone.said[-1] == {"left": True}, SECONDS)
    async with again(phone) as (inbox, _):
        (found,) = await heard(inbox, 1)
    assert found.text == "remember me"


# -- what a device is told ---------------------------------------------------------------------------------------------

LOOK: Obj = {"caption": "look", "mimetype": "x/y"}

SAID: list[tuple[Obj, str, AttachmentKind | None]] = [
    ({"conversation": "/history 4"}, "/history 4", None),
    ({"extendedTextMessage": {"text": "see https://example.org"}}, "see https://example.org", None),
    ({"ephemeralMessage": {"message": {"extendedTextMessage": {"text": "gone soon"}}}}, "gone soon", None),
    ({"conversation": "hi", "senderKeyDistributionMessage": {"groupId": GROUP}}, "hi", None),
    ({"imageMessage": LOOK}, "look", AttachmentKind.IMAGE),
    ({"viewOnceMessageV2": {"message": {"imageMessage": LOOK}}}, "look", AttachmentKind.IMAGE),
    ({"videoMessage": LOOK}, "look", AttachmentKind.VIDEO),
    ({"ptvMessage": LOOK}, "look", AttachmentKind.VIDEO),
    ({"audioMessage": {"ptt": True}}, "", AttachmentKind.AUDIO),
    ({"stickerMessage": {"mimetype": "image/webp"}}, "", AttachmentKind.STICKER),
    ({"documentMessage": {"fileName": "a.pdf"}}, "", AttachmentKind.FILE),
    ({"documentWithCaptionMessage": {"message": {"documentMessage": LOOK}}}, "look", AttachmentKind.FILE),
    ({"locationMessage": {"degreesLatitude": 1.0, "degreesLongitude": 2.0}}, "", AttachmentKind.FILE),
    ({"contactMessage": {"displayName": "Bob"}}, "", AttachmentKind.FILE),
]

SILENT: list[Obj] = [
    {"reactionMessage": {"text": "👍", "key": {"id": "X"}}},
    {"protocolMessage": {"type": "REVOKE", "key": {"id": "X"}}},
    {"editedMessage": {"message": {"protocolMessage": {"type": "MESSAGE_EDIT", "key": {"id": "X"}}}}},
    {"pollUpdateMessage": {}},
    {"keepInChatMessage": {}},
    {"senderKeyDistributionMessage": {"groupId": GROUP}},
    {},
]


async def test_all_kinds_of_messages_are_read_as_what_they_are(phone: Phone) -> None:
    async with running(phone) as (inbox, _):
        for message, _text, _kind in SAID:
            phone.tells(message)
        found = await heard(inbox, len(SAID))
    assert [(each.text, _kind_of(each)) for each in found] == [(text, kind) for _, text, kind in SAID]
    assert {(each.kind, each.sender, each.addressed) for each in found} == {(ChatKind.DIRECT, "16505551234", True)}
    assert [each.attachments[0].name for each in found if each.attachments][6] == "a.pdf"


async def test_what_says_nothing_is_none(phone: Phone) -> None:
    async with running(phone) as (inbox, _):
        for message in SILENT:
            phone.tells(message)
        phone.tells({"conversation": "not for a chat"}, **{"from": "status@broadcast", "participant": ALICE})
        phone.tells({"conversation": "last"})
        found = await heard(inbox, 1)
    assert [each.text for each in found] == ["last"]


async def test_what_nobody_could_have_typed_ends_no_run(phone: Phone) -> None:
    async with running(phone) as (inbox, run):
        phone.tells({"conversation": "\x01" * 400_000})
        phone.tells({"extendedTextMessage": {"text": "hi", "contextInfo": {"mentionedJid": [ALICE] * 40_000}}})
        phone.tells({"conversation": "x" * 110_000})
        phone.tells({"conversation": "last"})
        found = await heard(inbox, 2)
        assert not run.done()
    assert [len(each.text) for each in found] == [110_000, 4]


async def test_a_group_addresses_the_device_by_mention_or_reply(phone: Phone) -> None:
    ours = {"participant": OURS[1].replace(":7", ""), "stanzaId": "X", "quotedMessage": {"conversation": "earlier"}}
    told: list[Obj] = [
        {"conversation": "hello all"},
        {"extendedTextMessage": {"text": "@999 /status", "contextInfo": {"mentionedJid": ["999@lid"]}}},
        {"extendedTextMessage": {"text": "yes", "contextInfo": ours}},
        {"imageMessage": {"caption": "@15550000000", "contextInfo": {"mentionedJid": ["15550000000@s.whatsapp.net"]}}},
    ]
    async with running(phone) as (inbox, _):
        for message in told:
            phone.tells(message, **{"from": GROUP, "participant": ALICE})
        found = await heard(inbox, len(told))
    assert {(each.kind, each.chat.chat, each.sender) for each in found} == {(ChatKind.GROUP, GROUP, "16505551234")}
    assert [(each.text, each.addressed, each.quoted) for each in found] == [
        ("hello all", False, False),
        ("/status", True, False),
        ("yes", True, True),
        ("", True, False),
    ]


async def test_a_person_behind_a_hidden_number_is_known_by_the_number_when_it_is_told(phone: Phone) -> None:
    async with running(phone) as (inbox, _):
        phone.tells({"conversation": "hi"}, **{"from": "77@lid", "sender_pn": ALICE, "addressing_mode": "lid"})
        (found,) = await heard(inbox, 1)
    assert (found.sender, found.chat.chat) == ("16505551234", "16505551234")


@pytest.mark.parametrize(("code", "why"), [(401, Stop.NEEDS_LOGIN), (403, Stop.MISCONFIGURED), (411, Stop.NEEDS_LOGIN)])
async def test_a_device_that_is_unlinked_or_banned_stops_the_bot(phone: Phone, code: int, why: Stop) -> None:
    async with running(phone) as (_, run):
        phone.does("end", code)
        await asyncio.wait({run}, timeout=SECONDS)
        stopped = run.exception()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is why


async def test_a_server_that_ends_the_link_is_a_lost_one(phone: Phone) -> None:
    async with running(phone) as (_, run):
        phone.does("end", 503)
        await asyncio.wait({run}, timeout=SECONDS)
        assert isinstance(run.exception(), ConnectionError)


async def heard(inbox: RecordingInbox, count: int) -> list[InboundMessage]:
    await inbox.until(lambda: len(inbox.messages) >= count, SECONDS)
    return inbox.messages


def _kind_of(message: InboundMessage) -> AttachmentKind | None:
    return message.attachments[0].kind if message.attachments else None

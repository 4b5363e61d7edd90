"""WhatsApp as a linked device: messages, echoes, sends, and how runs begin and end. The program is a stand-in."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges.message import Acceptance, ChannelStopped, InboundMessage, NotSent, RetryAfter, SendOutcome, Sent, Stop
from bridges.text import whatsapp_sidecar
from bridges.text.whatsapp_linked import DOWN_SECONDS, LinkedChannel
from bridges.text.whatsapp_linked_parse import Received, bare, parse
from bridges.text.whatsapp_sidecar import CALL_SECONDS, Device, Lost, Opened
from bridges.text.whatsapp_sidecar import started as sidecar_of
from commands.model import AttachmentKind, ChatKind
from tests.bridges.bench import eventually
from tests.channels.around import RecordingInbox
from tests.channels.line import ChannelLine
from tests.fakes.clock import FakeClock
from tests.fakes.whatsapp.device import FakeDevice, fake_device

ALICE = "16505551234@s.whatsapp.net"
OWN = ("15550000000:7@s.whatsapp.net", "999:7@lid")
GROUP = "120363001234567890@g.us"

_STUBBORN = """
import json, os, time
print(json.dumps({"type": "open", "ids": [str(os.getpid())]}), flush=True)
time.sleep(60)
"""


def read(**fields: object) -> InboundMessage | None:
    base: dict[str, object] = {"id": "ABC", "chat": ALICE, "text": "hi"}
    return parse(Received(**{**base, **fields}), "bot", OWN, {"RESERVED"})  # type: ignore[arg-type]  # fields by name


def test_a_direct_message() -> None:
    found = read()
    assert found is not None
    assert (found.kind, found.chat.chat, found.sender, found.reply_to.route) == (
        ChatKind.DIRECT, "16505551234", "16505551234", ALICE,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("chat", "alternative"), [(ALICE, "77@lid"), ("77@lid", ALICE), ("16505551234:3@s.whatsapp.net", None)]
)
def test_a_person_is_the_same_by_whatever_address_they_write(chat: str, alternative: str | None) -> None:
    found = read(chat=chat, chat_alt=alternative)
    assert found is not None
    assert (found.sender, found.chat.chat, found.id) == ("16505551234", "16505551234", "16505551234 ABC")


def test_a_person_without_a_phone_number_goes_by_the_other_address() -> None:
    found = read(chat="77@lid")
    assert found is not None
    assert found.sender == "77@lid"


@pytest.mark.parametrize("chat", ["status@broadcast", "1@newsletter", "1@broadcast", "", "16505551234@evil.example"])
def test_what_is_no_chat_of_people_is_left_out(chat: str) -> None:
    assert read(chat=chat) is None


def test_what_we_sent_is_known_by_its_id_and_never_by_its_text() -> None:
    assert read(id="RESERVED", own=True, chat="15550000000@s.whatsapp.net") is None
    assert read(id="RESERVED") is not None, "whoever writes chooses the id"


def test_the_owner_is_heard_in_their_notes_to_themselves_only() -> None:
    notes = read(own=True, chat="15550000000@s.whatsapp.net")
    assert notes is not None
    assert (notes.sender, notes.kind) == ("15550000000", ChatKind.DIRECT)
    assert read(own=True) is None
    assert read(own=True, chat=GROUP, sender="15550000000@s.whatsapp.net") is None


@pytest.mark.parametrize(
    ("text", "fields", "left"),
    [
        ("@15550000000 /status", {"mentions": ("15550000000@s.whatsapp.net",)}, "/status"),
        ("/status @999", {"mentions": ("999@lid",)}, "/status"),
        ("@9990 and @999 hi", {"mentions": ("999@lid", "9990@lid")}, "@9990 and  hi"),
        ("yes", {"quoted": "15550000000@s.whatsapp.net"}, "yes"),
    ],
)
def test_a_group_addresses_the_bot_by_mention_or_reply(text: str, fields: dict[str, object], left: str) -> None:
    found = read(chat=GROUP, sender=ALICE, text=text, **fields)
    assert found is not None
    assert (found.kind, found.chat.chat, found.sender) == (ChatKind.GROUP, GROUP, "16505551234")
    assert (found.addressed, found.text) == (True, left)


@pytest.mark.parametrize("fields", [{}, {"mentions": (ALICE,)}, {"quoted": ALICE}, {"quoted": ""}])
def test_a_group_that_talks_of_others_does_not_address_the_bot(fields: dict[str, object]) -> None:
    found = read(chat=GROUP, sender=ALICE, text="@15550000000 in text is no mention", **fields)
    assert found is not None
    assert not found.addressed
    assert found.text == "@15550000000 in text is no mention"
    assert found.quoted is ("quoted" in fields)


def test_a_mention_in_a_private_chat_is_text() -> None:
    found = read(text="@15550000000 hi", mentions=("15550000000@s.whatsapp.net",))
    assert found is not None
    assert found.text == "@15550000000 hi"


def test_a_file_is_named_and_cannot_be_fetched() -> None:
    found = read(file=AttachmentKind.IMAGE, name="a.png")
    assert found is not None
    assert [(each.kind, each.handle, each.name) for each in found.attachments] == [(AttachmentKind.IMAGE, "", "a.png")]


def test_devices_are_taken_off_addresses() -> None:
    assert bare("1555:7@s.whatsapp.net") == "1555@s.whatsapp.net"
    assert bare("1555_1:7@lid") == "1555_1@lid"


# -- runs --------------------------------------------------------------------------------------------------------------


class Line(ChannelLine[LinkedChannel]):
    """A device whose program is a stand-in."""

    def __init__(self, fake: FakeDevice, folder: Path) -> None:
        super().__init__()
        self.channel = LinkedChannel("bot", data=folder, url=str(fake.port), clock=self.clock, path=str(folder / "bin"))


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeDevice]:
    async with fake_device(tmp_path) as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeDevice, tmp_path: Path) -> AsyncIterator[Line]:
    line = Line(fake, tmp_path)
    yield line
    await line.stop()
    await line.channel.close()
    await eventually(lambda: fake.ended == fake.runs)


async def told(fake: FakeDevice, line: Line) -> InboundMessage:
    before = len(line.inbox.messages)
    fake.message()
    return (await line.inbox.heard(before + 1))[-1]


async def test_a_message_is_given_up_only_when_it_is_safe(fake: FakeDevice, line: Line) -> None:
    line.inbox.answers.append(OSError("disk full"))
    await line.start()
    fake.message(file="1.json")
    assert isinstance(await line.ended(), OSError)
    assert fake.of("taken") == []
    await line.start()
    fake.message(file="1.json")
    await eventually(lambda: fake.of("taken") == [{"type": "taken", "file": "1.json", "read": True}])


async def test_what_is_denied_or_not_for_us_is_given_up_unread(fake: FakeDevice, line: Line) -> None:
    line.inbox.answers.append(Acceptance.DENIED)
    await line.start()
    fake.message(file="1.json")
    fake.message(file="2.json", chat="status@broadcast")
    await eventually(lambda: len(fake.of("taken")) == 2)
    assert [request["read"] for request in fake.of("taken")] == [False, False]


async def test_a_reply_goes_out_under_an_id_that_is_known_before_its_echo(fake: FakeDevice, line: Line) -> None:
    fake.answers = False
    await line.start()
    message = await told(fake, line)
    sending = asyncio.create_task(line.channel.send(message.reply_to, "hello"))
    await eventually(lambda: bool(fake.of("send")))
    (request,) = fake.of("send")
    assert (request["chat"], request["text"]) == (ALICE, "hello")
    fake.message("hello", file="echo", id=request["id"], own=True, chat="15550000000@s.whatsapp.net")
    await eventually(lambda: fake.of("taken")[-1]["file"] == "echo")
    assert len(line.inbox.messages) == 1
    fake.says({"type": "done", "call": request["call"]})
    assert await sending == Sent(request["id"])  # type: ignore[arg-type]  # a plain string here


@pytest.mark.parametrize(
    ("code", "outcome"), [(403, NotSent.BLOCKED), (404, NotSent.BLOCKED), (500, NotSent.UNKNOWN), (0, NotSent.UNKNOWN)]
)
async def test_what_a_failure_means(fake: FakeDevice, line: Line, code: int, outcome: SendOutcome) -> None:
    await line.start()
    message = await told(fake, line)
    fake.failure = code
    assert await line.channel.send(message.reply_to, "hello") is outcome


async def test_no_answer_leaves_the_outcome_open(fake: FakeDevice, line: Line) -> None:
    await line.start()
    message = await told(fake, line)
    fake.answers = False
    sending = asyncio.create_task(line.channel.send(message.reply_to, "hello"))
    await eventually(lambda: bool(fake.of("send")))
    await line.clock.advance(CALL_SECONDS)
    assert await sending is NotSent.UNKNOWN
    fake.answers = True
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)


async def test_the_end_of_the_program_leaves_the_outcome_open_and_ends_the_run(fake: FakeDevice, line: Line) -> None:
    await line.start()
    message = await told(fake, line)
    fake.answers = False
    sending = asyncio.create_task(line.channel.send(message.reply_to, "hello"))
    await eventually(lambda: bool(fake.of("send")))
    fake.end()
    assert await sending is NotSent.UNKNOWN
    assert isinstance(await line.ended(), Lost)
    assert await line.channel.send(message.reply_to, "hello") == RetryAfter(DOWN_SECONDS)


async def test_typing_is_shown_where_there_is_a_link(fake: FakeDevice, line: Line) -> None:
    await line.start()
    message = await told(fake, line)
    await line.channel.typing(message.reply_to)
    await eventually(lambda: fake.of("typing") == [{"type": "typing", "chat": ALICE}])
    await line.stop()
    await line.channel.typing(message.reply_to)


async def test_five_starts_leave_one_program(fake: FakeDevice, line: Line) -> None:
    for _ in range(4):
        await line.start()
        await line.stop()
    await line.start()
    await eventually(lambda: (fake.runs, fake.ended) == (5, 4))
    message = await told(fake, line)
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert len(fake.of("send")) == 1


@pytest.mark.parametrize(
    ("event", "why", "says"),
    [
        ({"type": "qr", "text": "2@secret"}, Stop.NEEDS_LOGIN, "whatsapp setup"),
        ({"type": "broken"}, Stop.MISCONFIGURED, "whatsapp setup"),
        ({"type": "closed", "code": 401}, Stop.NEEDS_LOGIN, "unlinked"),
        ({"type": "closed", "code": 403}, Stop.MISCONFIGURED, "banned"),
        ({"type": "closed", "code": 411}, Stop.NEEDS_LOGIN, "whatsapp setup"),
        ({"type": "closed", "code": 440}, Stop.REPLACED, "another program"),
    ],
)
async def test_what_only_a_person_can_mend_stops_the_bot(
    fake: FakeDevice, line: Line, event: dict[str, object], why: Stop, says: str
) -> None:
    fake.opening = [event]
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is why
    assert says in str(stopped)
    assert "secret" not in str(stopped)


@pytest.mark.parametrize("code", [408, 428, 503, 0])
async def test_a_lost_link_is_made_anew(fake: FakeDevice, line: Line, code: int) -> None:
    await line.start()
    fake.says({"type": "closed", "code": code})
    assert isinstance(await line.ended(), ConnectionError)
    await line.start()
    assert line.inbox.ups == 2


@pytest.mark.parametrize("junk", [b"no json", b'{"type": "other"}', b'{"type": "message"}', b"x" * (2 << 20)])
async def test_what_the_program_cannot_have_said_ends_the_run(fake: FakeDevice, line: Line, junk: bytes) -> None:
    await line.start()
    fake.says(junk)
    assert isinstance(await line.ended(), Lost)


async def test_a_link_that_does_not_open_is_given_up(fake: FakeDevice, line: Line) -> None:
    fake.opening = []
    starting = asyncio.create_task(line.start())
    await eventually(lambda: fake.runs == 1)
    await line.clock.advance(60)
    await starting
    assert isinstance(await line.ended(), TimeoutError)


async def test_a_program_that_does_not_end_when_told_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whatsapp_sidecar, "END_SECONDS", 0.1)
    node = tmp_path / "node"
    node.write_text(f"#!{sys.executable} -IS\n{_STUBBORN}")
    node.chmod(0o700)
    device = Device(str(node), tmp_path, tmp_path / "device")
    async with asyncio.timeout(10), sidecar_of(device, FakeClock()) as sidecar:
        opened = await sidecar.event()
    assert isinstance(opened, Opened)
    with pytest.raises(ProcessLookupError):
        os.kill(int(opened.ids[0]), 0)


async def test_without_node_or_package_the_bot_says_what_to_do(tmp_path: Path) -> None:
    inbox = RecordingInbox()
    nowhere = LinkedChannel("bot", data=tmp_path, url=None, clock=FakeClock(), path=str(tmp_path))
    with pytest.raises(ChannelStopped, match="Node 20"):
        await nowhere.run(inbox)
    async with fake_device(tmp_path, version="7.0.0-rc1"):
        old = LinkedChannel("bot", data=tmp_path, url=None, clock=FakeClock(), path=str(tmp_path / "bin"))
        with pytest.raises(ChannelStopped, match="whatsapp setup"):
            await old.run(inbox)

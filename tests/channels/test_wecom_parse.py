"""WeCom: what becomes of a callback, of a mention in a group, and of a file."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import aiohttp
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from bridges.message import InboundMessage
from bridges.trusted import TrustedHosts
from bridges.wecom.connection import Callback
from bridges.wecom.inbound import LONGEST_NAME, File, Malformed, Names, Route, parse
from bridges.wecom.media import DOMAINS, fetch
from commands.catalog import KNOWN
from commands.model import AttachmentKind, ChatKey, ChatKind
from harness_client.clock import SystemClock
from tests.channels.wecom import platform
from tests.fakes.wecom import FakeWeCom, Obj

KEY = bytes(range(32))
NAMELESS = Names(None, KNOWN)


def body(**fields: object) -> Obj:
    return {"msgid": "m1", "aibotid": "b", "chattype": "single", "from": {"userid": "alice"}, **fields}


def said(text: str, **fields: object) -> Obj:
    return body(msgtype="text", text={"content": text}, **fields)


def parsed(found: object, names: Names = NAMELESS) -> InboundMessage:
    message = parse(Callback("aibot_msg_callback", "r1", found), "bot", names)
    assert message is not None
    return message


def test_a_private_message() -> None:
    message = parsed(said(" /history 4"))
    assert (message.id, message.sender, message.text) == ("m1", "alice", " /history 4")
    assert message.chat == ChatKey("wecom", "bot", "alice")
    assert message.kind is ChatKind.DIRECT
    assert Route.of(message.reply_to) == Route("alice", "r1")
    assert not message.quoted
    assert message.addressed


@pytest.mark.parametrize("chattype", ["group", "", "something new"])
def test_whatever_is_not_surely_private_is_a_group(chattype: str) -> None:
    message = parsed(said("@Bot hi", chattype=chattype, chatid="g"))
    assert (message.kind, message.chat.chat, message.sender, message.text) == (ChatKind.GROUP, "g", "alice", "hi")


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("@My Long Bot /history 4", "My Long Bot", "/history 4"),
        ("@My Long Bot what does /history do?", "My Long Bot", "what does /history do?"),
        ("hello @My Long Bot", "My Long Bot", "hello"),
        ("@My Long Bots and @My Long Bot hi", "My Long Bot", "@My Long Bots and  hi"),
        ("@机器人 你好", "机器人", "你好"),
        ("@机器人你好", "机器人", "你好"),
        ("@机器人/help", "机器人", "/help"),
        ("@Botany and @Bot hi", "Bot", "@Botany and  hi"),
        ("@Bot @Bot Two /help", "Bot Two", "@Bot  /help"),
        ("@a+b (c) /help", "a+b (c)", "/help"),
        ("@Renamed Bot /history", "My Long Bot", "/history"),
        ("@My Long Bot /history 4", None, "/history 4"),
        ("@My Long Bot ／HELP", None, "／HELP"),
        ("@Bot hello there", None, "hello there"),
        ("@Bot /usr/bin is a folder", None, "/usr/bin is a folder"),
        ("@My Long Bot\u2005what about /new?", None, "what about /new?"),
        ("@Bot", None, ""),
        ("no mention /help", None, "no mention /help"),
        (f"@Bot {'x' * LONGEST_NAME} /new", None, f"{'x' * LONGEST_NAME} /new"),
        ("@Bot /new /help", None, "/new /help"),
    ],
)
def test_mentions_in_groups(text: str, name: str | None, found: str) -> None:
    assert parsed(said(text, chattype="group", chatid="g"), Names(name, KNOWN)).text == found


def test_in_private_an_at_sign_is_text() -> None:
    assert parsed(said("@Bot /help"), Names("Bot", KNOWN)).text == "@Bot /help"


def test_speech_comes_written_down() -> None:
    assert parsed(body(msgtype="voice", voice={"content": "hello"})).text == "hello"


def test_quotes_are_noticed_and_not_read() -> None:
    message = parsed(said("/send", quote={"msgtype": "text", "text": {"content": "quoted"}}))
    assert (message.text, message.quoted) == ("/send", True)


@pytest.mark.parametrize("kind", [AttachmentKind.IMAGE, AttachmentKind.FILE, AttachmentKind.VIDEO])
def test_files(kind: AttachmentKind) -> None:
    (attachment,) = parsed(body(msgtype=kind.value, **{kind.value: {"url": "https://x", "aeskey": "k"}})).attachments
    assert (attachment.kind, attachment.handle) == (kind, str(File("https://x", "k")))


def test_text_and_pictures_in_one_message() -> None:
    pieces = [
        {"msgtype": "text", "text": {"content": "look"}},
        {"msgtype": "image", "image": {"url": "https://1"}},
        {"msgtype": "text", "text": {"content": "here"}},
        {"msgtype": "image", "image": {"url": "https://2"}},
    ]
    message = parsed(body(msgtype="mixed", mixed={"msg_item": pieces}))
    assert message.text == "look\nhere"
    assert [file.handle for file in message.attachments] == [str(File("https://1")), str(File("https://2"))]


@pytest.mark.parametrize("found", [body(msgtype="location"), said("")])
def test_what_holds_nothing_is_no_message(found: Obj) -> None:
    assert parse(Callback("aibot_msg_callback", "r1", found), "bot", NAMELESS) is None


def test_events_are_no_messages() -> None:
    assert parse(Callback("aibot_event_callback", "r1", said("hi")), "bot", NAMELESS) is None


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        said("x", msgid=""),
        said("x", msgid=7),
        said("x", chattype="group"),
        body(msgtype="text", text="secret"),
        said("x", **{"from": {}}),
        said("x", **{"from": "secret"}),
        said("x", **{"from": {"userid": "secret\ud800"}}),
        said("x", msgid="secret\udfff"),
        said("x", mixed={"msg_item": None}),
        body(msgtype="image", image=[]),
    ],
)
def test_what_cannot_be_read_is_named_without_its_content(found: object) -> None:
    with pytest.raises(Malformed) as caught:
        parsed(found)
    assert "secret" not in str(caught.value)


# -- files -------------------------------------------------------------------------------------------------------------


def encrypted(data: bytes) -> bytes:
    """Encrypt as the platform does: padded to a multiple of 32 bytes."""
    length = 32 - len(data) % 32
    encryptor = Cipher(algorithms.AES(KEY), modes.CBC(KEY[:16])).encryptor()
    return encryptor.update(data + bytes([length]) * length) + encryptor.finalize()


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeCom]:
    async with platform() as fake:
        yield fake


async def fetched(fake: FakeWeCom, file: File, limit: int = 1000, *, override: bool = True) -> bytes:
    hosts = TrustedHosts(DOMAINS, fake.url if override else None)
    async with aiohttp.ClientSession() as http:
        return await fetch(http, SystemClock(), hosts, str(file), limit)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 1000])
@pytest.mark.parametrize("ending", ["=", ""])
async def test_a_file_is_decrypted(fake: FakeWeCom, size: int, ending: str) -> None:
    fake.files["f"] = encrypted(b"x" * size)
    key = base64.b64encode(KEY).decode().rstrip("=") + ending
    assert await fetched(fake, File(f"{fake.http}/files/f", key)) == b"x" * size


async def test_a_file_without_a_key_is_what_it_is(fake: FakeWeCom) -> None:
    fake.files["f"] = b"plain"
    assert await fetched(fake, File(f"{fake.http}/files/f")) == b"plain"


@pytest.mark.parametrize("data", [b"", b"x" * 31, b"x" * 64])
async def test_damaged_files_are_refused(fake: FakeWeCom, data: bytes) -> None:
    fake.files["f"] = data
    with pytest.raises(OSError, match="cannot be decrypted"):
        await fetched(fake, File(f"{fake.http}/files/f", base64.b64encode(KEY).decode()))


@pytest.mark.parametrize("key", ["AAAA", "???", "A" * 65])
async def test_damaged_keys_are_refused(fake: FakeWeCom, key: str) -> None:
    fake.files["f"] = encrypted(b"x")
    with pytest.raises(OSError, match="key"):
        await fetched(fake, File(f"{fake.http}/files/f", key))


async def test_bounds_and_failures(fake: FakeWeCom) -> None:
    fake.files["f"] = encrypted(b"x" * 101)
    key = base64.b64encode(KEY).decode()
    with pytest.raises(OSError, match="more than 100 bytes"):
        await fetched(fake, File(f"{fake.http}/files/f", key), 100)
    with pytest.raises(OSError, match="more than 32 bytes"):
        await fetched(fake, File(f"{fake.http}/files/f", key), 0)
    with pytest.raises(OSError, match="HTTP 404"):
        await fetched(fake, File(f"{fake.http}/files/gone", key))


@pytest.mark.parametrize("url", ["", "https://example.com/f", "http://x.qq.com/f", "https://qq.com.example.com/f"])
async def test_only_the_platforms_own_hosts_are_asked(fake: FakeWeCom, url: str) -> None:
    with pytest.raises(OSError, match="not on a host"):
        await fetched(fake, File(url), override=False)


def test_half_a_character_is_no_reason_to_lose_a_message() -> None:
    assert parsed(said("half \ud83d of it")).text == "half ? of it"

"""QQ: an event as a message of ours, field by field; text made harmless; files."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.message import InboundAttachment, InboundMessage
from bridges.qq.harmless import dotless, harmless
from bridges.qq.inbound import Malformed, Place, Route, parse
from bridges.qq.rest import TOKEN, TOKEN_PATH, _token_url
from commands.model import AttachmentKind, ChatKey, ChatKind
from tests.channels.qq import Line, platform

BOT = "9001"


def read(place: Place, **fields: object) -> InboundMessage | None:
    author = {"id": "user-1", "user_openid": "openid-1", "member_openid": "member-1"}
    event = {
        "id": "ROBOT1.0_x",
        "author": author,
        "content": "hi",
        "group_openid": "group-1",
        "channel_id": "channel-1",
        "guild_id": "guild-1",
        **fields,
    }
    return parse(place, msgspec.Raw(json.dumps(event).encode()), "bot", BOT)


def certainly(message: InboundMessage | None) -> InboundMessage:
    assert message is not None
    return message


@pytest.mark.parametrize(
    ("place", "kind", "chat", "sender"),
    [
        (Place.USER, ChatKind.DIRECT, "openid-1", "openid-1"),
        (Place.GROUP, ChatKind.GROUP, "group-1", "member-1"),
        (Place.GUILD, ChatKind.GROUP, "channel-1", "user-1"),
        (Place.GUILD_DIRECT, ChatKind.DIRECT, "guild-1", "user-1"),
    ],
)
def test_where_a_message_comes_from(place: Place, kind: ChatKind, chat: str, sender: str) -> None:
    message = certainly(read(place))
    assert (message.kind, message.chat, message.sender) == (kind, ChatKey("qq", "bot", chat), sender)
    assert (message.id, message.addressed) == ("ROBOT1.0_x", True)
    assert Route.of(message.reply_to) == Route(place, chat, "ROBOT1.0_x")


@pytest.mark.parametrize(
    ("place", "content", "text"),
    [
        (Place.GROUP, " /history 5 ", "/history 5"),
        (Place.GUILD, f"<@!{BOT}> /history 5", "/history 5"),
        (Place.GUILD, f"<@{BOT}>\u00a0/history", "/history"),
        (Place.GUILD, "<@!1234> hi", "<@!1234> hi"),
        (Place.USER, None, ""),
        (Place.USER, "/history", "/history"),
    ],
)
def test_the_bots_own_mention_is_removed(place: Place, content: str | None, text: str) -> None:
    assert certainly(read(place, content=content)).text == text


@pytest.mark.parametrize("author", [{"id": "u", "bot": True}, {"id": BOT}])
def test_bots_are_not_heard(author: dict[str, object]) -> None:
    assert read(Place.GUILD, author=author) is None


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        (Place.USER, {"id": ""}),
        (Place.USER, {"author": {}}),
        (Place.USER, {"content": {"secret": 1}}),
        (Place.GROUP, {"group_openid": None}),
        (Place.GUILD, {"channel_id": ""}),
        (Place.GUILD_DIRECT, {"guild_id": None}),
        (Place.USER, {"attachments": "secret"}),
    ],
)
def test_what_cannot_be_read_is_named_without_its_content(place: Place, fields: dict[str, object]) -> None:
    with pytest.raises(Malformed) as malformed:
        read(place, **fields)
    assert "secret" not in str(malformed.value)


@pytest.mark.parametrize("fields", [{"message_reference": {"message_id": "m"}}, {"message_type": 103}])
def test_a_quote_is_noticed(fields: dict[str, object]) -> None:
    assert certainly(read(Place.GUILD, **fields)).quoted
    assert not certainly(read(Place.GUILD)).quoted


@pytest.mark.parametrize(
    ("attachment", "kind", "handle"),
    [
        ({"content_type": "image/png", "url": "https://x.qq.com/a"}, AttachmentKind.IMAGE, "https://x.qq.com/a"),
        ({"content_type": "video/mp4", "url": "//x.qq.com/a"}, AttachmentKind.VIDEO, "https://x.qq.com/a"),
        ({"content_type": "voice", "url": "x.qpic.cn/a"}, AttachmentKind.AUDIO, "https://x.qpic.cn/a"),
        ({"content_type": "file"}, AttachmentKind.FILE, ""),
        ({}, AttachmentKind.FILE, ""),
    ],
)
def test_attachments(attachment: dict[str, object], kind: AttachmentKind, handle: str) -> None:
    (found,) = certainly(read(Place.USER, attachments=[attachment | {"filename": "n", "size": 3}])).attachments
    assert found == InboundAttachment(kind, handle, "n", 3)


def test_spoken_words_are_text_where_the_platform_wrote_them_down() -> None:
    spoken = {"content_type": "voice", "url": "https://x.qq.com/a", "asr_refer_text": "good morning"}
    message = certainly(read(Place.USER, content="", attachments=[spoken]))
    assert (message.text, message.attachments) == ("good morning", ())


# -- harmless text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("https://example.com/a?b=c.d", "https：//example。com/a?b=c.d"),
        ("http://127.0.0.1:3080/x", "http：//127。0。0。1:3080/x"),
        ("see www.example.io.", "see www。example。io。"),
        ("mail me@host.example.cn now", "mail me@host。example。cn now"),
        ("a.b.com, x", "a。b。com, x"),
        ("main.py, e.g. 3.14 and os.path", "main.py, e.g. 3.14 and os.path"),
        ("std.common", "std.common"),
        ("<@!123> <#4> @everyone @allen", "＜@!123> ＜#4> ＠everyone @allen"),
        ("<qqbot-at-everyone />", "＜qqbot-at-everyone />"),
        ("if a<b // c", "if a<b // c"),
    ],
)
def test_harmless(text: str, safe: str) -> None:
    assert harmless(text) == safe


def test_dotless_takes_every_dot_between_words() -> None:
    assert dotless("main.py, 3.14. The end. a.b") == "main。py, 3。14. The end. a。b"


@given(st.text(alphabet="ab.:/-<@! #九", max_size=60))
def test_disarming_keeps_the_length_and_twice_is_once(text: str) -> None:
    for disarm in (harmless, dotless):
        once = disarm(text)
        assert len(once) == len(text)
        assert disarm(once) == once


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        (TOKEN, TOKEN + TOKEN_PATH),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1" + TOKEN_PATH),
        ("http://127.0.0.1:1/other/token", "http://127.0.0.1:1/other/token"),
    ],
)
def test_the_token_address_may_be_given_whole_or_as_a_base(given: str, whole: str) -> None:
    assert _token_url(given) == whole


async def test_files_are_fetched_from_trusted_hosts_within_a_limit() -> None:
    async with platform() as fake, Line(fake).started() as line:
        fake.files["a"] = b"x" * 100

        def file(url: str) -> InboundAttachment:
            return InboundAttachment(AttachmentKind.FILE, url)

        assert await line.channel.fetch(file(f"{fake.url}/files/a"), 100) == b"x" * 100
        for url, limit in ((f"{fake.url}/files/a", 99), (f"{fake.url}/files/b", 9), ("https://example.org/a", 9)):
            with pytest.raises(OSError, match=r"more than|404|host of QQ") as error:
                await line.channel.fetch(file(url), limit)
            assert "http:" not in str(error.value)

"""DingTalk: what becomes of a callback, and of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bridges.dingtalk.inbound import File, Malformed, Route, parse
from bridges.dingtalk.rest import Application, Rest
from bridges.message import InboundAttachment, InboundMessage
from bridges.trusted import UntrustedHost
from commands.model import AttachmentKind, ChatKey, ChatKind
from tests.channels.dingtalk import Line, line_on, platform
from tests.fakes.clock import FakeClock
from tests.fakes.dingtalk import CLIENT_ID, SECRET, FakeDingTalk, Fault, Obj


def message(**fields: object) -> Obj:
    base: Obj = {
        "msgId": "m1",
        "msgtype": "text",
        "text": {"content": "hi"},
        "conversationType": "1",
        "conversationId": "c1",
        "senderId": "$:x",
        "senderStaffId": "alice",
    }
    return base | fields


def parsed(**fields: object) -> InboundMessage:
    found = parse(message(**fields), "bot", "client")
    assert found is not None
    return found


def test_a_private_message() -> None:
    found = parsed(
        sessionWebhook="https://oapi.dingtalk.com/x", sessionWebhookExpiredTime=1_790_000_000_500, robotCode="r"
    )
    assert (found.id, found.chat, found.sender, found.text) == ("m1", ChatKey("dingtalk", "bot", "c1"), "alice", "hi")
    assert (found.kind, found.addressed, found.quoted) == (ChatKind.DIRECT, True, False)
    assert Route.of(found.reply_to) == Route("c1", "r", "alice", "https://oapi.dingtalk.com/x", 1_790_000_000.5)


def test_a_group_message_begins_with_a_blank() -> None:
    found = parsed(conversationType="2", text={"content": " /history 4 "}, isInAtList=True)
    assert (found.kind, found.text, found.addressed) == (ChatKind.GROUP, "/history 4", True)
    assert Route.of(found.reply_to) == Route("c1", "client")


@pytest.mark.parametrize("kind", ["2", "3", ""])
def test_whatever_is_not_surely_private_is_a_group(kind: str) -> None:
    assert parsed(conversationType=kind).kind is ChatKind.GROUP


def test_a_group_message_without_a_mention_is_not_for_the_bot() -> None:
    assert not parsed(conversationType="2", isInAtList=False).addressed


def test_an_outsider_has_no_staff_id() -> None:
    found = parsed(senderStaffId=None)
    assert (found.sender, Route.of(found.reply_to).user) == ("$:x", "")


def test_quotes_are_noticed() -> None:
    assert parsed(text={"content": "/send", "isReplyMsg": True, "repliedMsg": {"content": "quoted"}}).quoted


def test_rich_text_is_text_and_pictures() -> None:
    pieces = [{"text": "look "}, {"type": "picture", "downloadCode": "p1"}, {"text": "here"}, {"downloadCode": "p2"}]
    found = parsed(msgtype="richText", text=None, content={"richText": pieces})
    assert found.text == "look here"
    assert found.attachments == tuple(
        InboundAttachment(AttachmentKind.IMAGE, str(File("client", code))) for code in ("p1", "p2")
    )


BOT_FIRST: Obj = {"chatbotUserId": "$:bot", "atUsers": [{"dingtalkId": "$:bot"}], "conversationType": "2"}


@pytest.mark.parametrize(
    ("pieces", "heard"),
    [
        (["@Bot", "/history 4"], "/history 4"),
        (["@My Own Bot ", "/history 4"], "/history 4"),
        (["@Bot", " /history", " 4"], "/history 4"),
        (["@My Own Bot /history 4"], "/history 4"),
        ([" ", "@Bot", "hello"], "hello"),
        (["@Bot\n", "hello @Bob"], "hello @Bob"),
        (["@Bot hello"], "@Bot hello"),
        (["hello @Bob"], "hello @Bob"),
        (["hello ", "@Bob", " /history"], "hello @Bob /history"),
        (["/history"], "/history"),
        (["a", " ", "b"], "a b"),
    ],
)
def test_rich_text_of_some_clients_still_names_the_bot(pieces: list[str], heard: str) -> None:
    content = {"richText": [{"text": piece} for piece in pieces]}
    assert parsed(msgtype="richText", text=None, content=content, **BOT_FIRST).text == heard


@pytest.mark.parametrize(
    "fields",
    [
        {"atUsers": [{"dingtalkId": "$:bob"}, {"dingtalkId": "$:bot"}]},
        {"atUsers": [{"staffId": "bob"}], "chatbotUserId": None},
        {"atUsers": []},
        {"conversationType": "1"},
    ],
)
def test_a_mention_of_somebody_else_stays(fields: Obj) -> None:
    content = {"richText": [{"text": "@Bob"}, {"text": "/history"}]}
    found = parsed(**{**BOT_FIRST, "msgtype": "richText", "text": None, "content": content, **fields})
    assert found.text == "@Bob/history"


@pytest.mark.parametrize("msgtype", ["unknownMsgType", "chatRecord", "interactiveCard", "markdown", "location"])
def test_what_is_neither_words_nor_a_file_is_not_lost_though_it_cannot_be_fetched(msgtype: str) -> None:
    found = parsed(msgtype=msgtype, text=None, content={"unknownMsgType": "x"})
    assert found.attachments == (InboundAttachment(AttachmentKind.FILE, str(File("client", ""))),)


@pytest.mark.parametrize(
    "field",
    ["senderId", "robotCode", "sessionWebhook", "sessionWebhookExpiredTime", "isInAtList", "atUsers", "chatbotUserId"],
)
def test_a_field_that_is_null_costs_no_message(field: str) -> None:
    assert parsed(**{field: None}).text == "hi"


def test_half_a_character_costs_no_message() -> None:
    assert parsed(text={"content": "half \ud83d"}).text == "half ?"
    (file,) = parsed(msgtype="file", text=None, content={"downloadCode": "c", "fileName": "a\udc4b.pdf"}).attachments
    assert file.name == "a?.pdf"


@pytest.mark.parametrize(
    ("msgtype", "kind"),
    [
        ("picture", AttachmentKind.IMAGE),
        ("video", AttachmentKind.VIDEO),
        ("audio", AttachmentKind.AUDIO),
        ("file", AttachmentKind.FILE),
    ],
)
def test_files(msgtype: str, kind: AttachmentKind) -> None:
    content = {"downloadCode": "code", "fileName": "plan.pdf"}
    (attachment,) = parsed(msgtype=msgtype, text=None, content=content, robotCode="r").attachments
    assert attachment == InboundAttachment(kind, str(File("r", "code")), "plan.pdf")


def test_speech_comes_written_down() -> None:
    found = parsed(msgtype="audio", text=None, content={"downloadCode": "code", "recognition": "hello"})
    assert (found.text, found.attachments) == ("hello", ())


@pytest.mark.parametrize(
    "fields",
    [
        {"text": {"content": "  "}},
        {"msgtype": "richText", "text": None, "content": {"richText": []}},
        {"msgtype": "richText", "text": None, "content": None},
        {"chatbotUserId": "$:x"},
    ],
)
def test_what_is_no_message_of_a_person(fields: Obj) -> None:
    assert parse(message(**fields), "bot", "client") is None


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        message(msgId=""),
        message(conversationId=""),
        message(senderStaffId=None, senderId=""),
        message(text="secret"),
        message(content={"richText": "secret"}),
        message(sessionWebhookExpiredTime=float("nan")),
        message(conversationType=["secret"]),
    ],
)
def test_what_cannot_be_read_is_named_without_its_content(data: object) -> None:
    with pytest.raises(Malformed) as caught:
        parse(data, "bot", "client")
    assert "secret" not in str(caught.value)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def fake() -> AsyncIterator[FakeDingTalk]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeDingTalk) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


PICTURE = InboundAttachment(AttachmentKind.IMAGE, str(File(CLIENT_ID, "picture")))


async def test_a_file_is_fetched_by_its_code(fake: FakeDingTalk, line: Line) -> None:
    fake.files["picture"] = b"x" * 100
    assert await line.channel.fetch(PICTURE, 100) == b"x" * 100


async def test_what_keeps_a_file_away(fake: FakeDingTalk, line: Line) -> None:
    fake.files["picture"] = b"x" * 101
    with pytest.raises(OSError, match="more than 100 bytes"):
        await line.channel.fetch(PICTURE, 100)
    fake.files.clear()
    with pytest.raises(OSError, match="HTTP 404"):
        await line.channel.fetch(PICTURE, 100)
    fake.fail("download", Fault(status=400, code="expired"))
    with pytest.raises(OSError, match="code expired"):
        await line.channel.fetch(PICTURE, 100)
    with pytest.raises(OSError, match="does not hand this out"):
        await line.channel.fetch(InboundAttachment(AttachmentKind.FILE, str(File(CLIENT_ID, ""))), 100)
    fake.download_url = "https://example.com/picture"
    with pytest.raises(OSError, match="not on a host"):
        await line.channel.fetch(PICTURE, 100)
    await line.channel.close()
    with pytest.raises(OSError, match="not connected"):
        await line.channel.fetch(PICTURE, 100)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/x",
        "https://oapi.dingtalk.com.example.com/x",
        "http://oapi.dingtalk.com/x",
        "https://user@oapi.dingtalk.com/x",
        "https://oapi.dingtalk.com:8443/x",
    ],
)
async def test_a_webhook_that_is_not_the_platforms_gets_nothing(url: str) -> None:
    rest = Rest(Application(CLIENT_ID, SECRET), FakeClock(), lambda _: None)
    with pytest.raises(UntrustedHost):
        await rest.webhook(url, {})
    await rest.close()

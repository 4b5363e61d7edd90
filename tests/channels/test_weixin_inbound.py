"""Weixin: a message of the platform as a message of ours, field by field."""

from __future__ import annotations

import json

import msgspec
import pytest

from bridges.message import InboundAttachment, InboundMessage
from bridges.weixin.inbound import Malformed, Route, parse
from commands.model import AttachmentKind, ChatKey, ChatKind

ALICE = "alice@im.wechat"


def read(**fields: object) -> InboundMessage | None:
    message = {
        "message_id": 18_000_000_000_000_000_001,
        "from_user_id": ALICE,
        "message_type": 1,
        "context_token": "ctx",
        "create_time_ms": 5,
        **fields,
    }
    found = parse(msgspec.Raw(json.dumps(message).encode()), "bot", "bot-1@im.bot")
    return found[0] if found else None


def text(content: str) -> dict[str, object]:
    return {"type": 1, "text_item": {"text": content}}


def certainly(message: InboundMessage | None) -> InboundMessage:
    assert message is not None
    return message


def test_a_plain_message() -> None:
    message = certainly(read(item_list=[text("  /history 5")]))
    assert (message.id, message.sender, message.kind) == ("18000000000000000001", ALICE, ChatKind.DIRECT)
    assert message.chat == ChatKey("weixin", "bot", ALICE)
    assert message.text == "  /history 5"
    assert message.addressed
    assert not message.quoted
    assert Route.of(message.reply_to) == Route(ALICE, "ctx")


def test_a_group_is_nobodys_business() -> None:
    message = certainly(read(item_list=[text("/history")], group_id="group-1"))
    assert (message.kind, message.addressed, message.chat.chat) == (ChatKind.GROUP, False, "group-1")


@pytest.mark.parametrize("group", ["", None])
def test_an_empty_group_is_none(group: str | None) -> None:
    assert certainly(read(group_id=group)).kind is ChatKind.DIRECT


def test_an_id_may_be_quoted_or_lie_in_the_item() -> None:
    assert certainly(read(message_id="18000000000000000001")).id == "18000000000000000001"
    assert certainly(read(message_id=None, item_list=[{**text("x"), "msg_id": "7"}])).id == "7"


@pytest.mark.parametrize(
    "fields",
    [
        {"message_id": None},
        {"message_id": 0},
        {"from_user_id": ""},
        {"item_list": "secret words"},
        {"item_list": [{"type": 1, "text_item": {"text": ["secret words"]}}]},
    ],
)
def test_what_cannot_be_read_is_named_without_its_content(fields: dict[str, object]) -> None:
    with pytest.raises(Malformed) as malformed:
        read(**fields)
    assert "secret" not in str(malformed.value)


@pytest.mark.parametrize("fields", [{"message_type": 2}, {"delete_time_ms": 9}, {"from_user_id": "bot-1@im.bot"}])
def test_what_no_person_says_now(fields: dict[str, object]) -> None:
    assert read(**fields) is None


def test_a_quote_is_noticed_and_not_mixed_into_the_text() -> None:
    quoting = {**text("mine"), "ref_msg": {"title": "theirs", "message_item": text("theirs")}}
    message = certainly(read(item_list=[quoting]))
    assert (message.text, message.quoted) == ("mine", True)
    assert not certainly(read(item_list=[{**text("mine"), "ref_msg": None}])).quoted


def test_spoken_words_are_text_where_the_platform_wrote_them_down() -> None:
    spoken = {"type": 3, "voice_item": {"text": "good morning", "media": {"aes_key": "k"}}}
    message = certainly(read(item_list=[spoken]))
    assert (message.text, message.attachments) == ("good morning", ())


@pytest.mark.parametrize(
    ("item", "kind", "name", "size"),
    [
        ({"type": 2, "image_item": {"aeskey": "00", "mid_size": 9}}, AttachmentKind.IMAGE, None, 9),
        ({"type": 3, "voice_item": {"text": ""}}, AttachmentKind.AUDIO, None, None),
        ({"type": 4, "file_item": {"file_name": "a.pdf", "len": "12"}}, AttachmentKind.FILE, "a.pdf", 12),
        ({"type": 4, "file_item": {"file_name": "a.pdf", "len": "-"}}, AttachmentKind.FILE, "a.pdf", None),
        ({"type": 5, "video_item": {"video_size": 7}}, AttachmentKind.VIDEO, None, 7),
    ],
)
def test_files(item: dict[str, object], kind: AttachmentKind, name: str | None, size: int | None) -> None:
    (found,) = certainly(read(item_list=[text("look"), item])).attachments
    assert found == InboundAttachment(kind, found.handle, name, size)


@pytest.mark.parametrize("item", [{"type": 11}, {"type": 99}, {}, {"type": 1}, {"type": 2, "image_item": None}])
def test_pieces_without_meaning_are_left_out(item: dict[str, object]) -> None:
    message = certainly(read(item_list=[item]))
    assert (message.text, message.attachments) == ("", ())

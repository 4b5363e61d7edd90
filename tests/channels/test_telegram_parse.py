"""What a Telegram message becomes, field by field; the SDK's own types, no socket."""

from __future__ import annotations

import pytest
import telegram

from bridges.message import ChatKind, InboundMessage
from bridges.text.telegram_parse import parse
from commands.model import AttachmentKind
from tests.fakes.telegram import GROUP_ID, ME, TELLER, Obj, person
from tests.fakes.telegram.updates import Writer, entities, supergroup

WRITE = Writer()


def read(message: Obj, *, kind: str = "message") -> InboundMessage | None:
    update = telegram.Update.de_json(WRITE.update(message, kind=kind, id_=77), None)
    return parse(update, telegram.User.de_json(ME, None), "ops")


def taken(message: Obj) -> InboundMessage:
    parsed = read(message)
    assert parsed is not None
    return parsed


def in_group(text: str, **more: object) -> Obj:
    return WRITE.message(text, chat=supergroup()) | more


def test_a_private_message() -> None:
    parsed = taken(WRITE.message("  hello\n"))
    assert (parsed.id, parsed.kind, parsed.sender, parsed.text) == ("77", ChatKind.DIRECT, str(TELLER), "  hello\n")
    assert (parsed.chat.channel, parsed.chat.bot, parsed.chat.chat) == ("telegram", "ops", str(TELLER))
    assert parsed.reply_to.route == str(TELLER)
    assert parsed.addressed
    assert not parsed.quoted
    assert parsed.attachments == ()


@pytest.mark.parametrize("kind", ["group", "supergroup", "channel", "something-new"])
def test_only_a_chat_of_type_private_is_direct(kind: str) -> None:
    parsed = taken(WRITE.message("hello", chat={"id": GROUP_ID, "type": kind, "title": "t"}))
    assert parsed.kind is ChatKind.GROUP
    assert not parsed.addressed


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("@ThisBot hello", "hello"),
        ("hello @thisbot", "hello"),
        ("👨‍👩‍👧 @ThisBot 你好 @ThisBot /history", "👨‍👩‍👧  你好  /history"),
        ("@ThisBot", ""),
        ("/history@ThisBot", "/history"),
        ("/HISTORY@thisbot 5", "/HISTORY 5"),
        ("／history@ThisBot 5", "／history 5"),
        ("@ThisBot /history@ThisBot", "/history"),
        ("please /history@ThisBot", "please /history@ThisBot"),
        ("/unheard@ThisBot of", "/unheard of"),
        ("\u200b\u2067/history@ThisBot\u2069 5", "\u200b\u2067/history\u2069 5"),
        ("\u00a0\u3000/history@ThisBot", "/history"),
        ("/history@ThisBot。", "/history。"),
    ],
)
def test_a_group_message_that_names_the_bot_is_addressed_and_loses_the_name(typed: str, text: str) -> None:
    parsed = taken(in_group(typed))
    assert parsed.addressed
    assert parsed.text == text


@pytest.mark.parametrize(
    "typed",
    [
        "hello",
        "/history",
        "@OtherBot hello",
        "mail me@ThisBot.example",
        "@ThisBotToo hello",
        "a/history@OtherBot",
        "/history@OtherBot你好",
    ],
)
def test_a_group_message_that_names_nobody_of_us_is_not_addressed(typed: str) -> None:
    parsed = taken(in_group(typed))
    assert not parsed.addressed
    assert parsed.text == typed


@pytest.mark.parametrize(
    "typed",
    ["/history@OtherBot", "/history@OtherBot 5", "／history@OtherBot", "/any@OtherBot", f"/{'x' * 64}@OtherBot"],
)
def test_a_command_for_another_bot_is_ignored_everywhere(typed: str) -> None:
    assert read(in_group(typed)) is None
    assert read(WRITE.message(typed)) is None


def test_a_mention_without_a_user_name_counts() -> None:
    mention: Obj = {"type": "text_mention", "offset": 3, "length": 4, "user": ME}
    parsed = taken(in_group("😀 Fake hi", entities=[mention]))
    assert parsed.addressed
    assert parsed.text == "😀  hi"


def test_a_reply_to_the_bot_counts_and_one_to_a_person_does_not() -> None:
    ours = WRITE.message("earlier", chat=supergroup()) | {"from": ME}
    theirs = WRITE.message("earlier", chat=supergroup())
    assert taken(in_group("yes", reply_to_message=ours)).addressed
    assert not taken(in_group("yes", reply_to_message=theirs)).addressed
    assert taken(in_group("yes", reply_to_message=theirs)).quoted


@pytest.mark.parametrize("field", ["external_reply", "reply_to_story"])
def test_a_reply_to_something_in_another_chat_is_a_quote(field: str) -> None:
    elsewhere: Obj = {
        "chat": supergroup(),
        "id": 3,
        "origin": {"type": "hidden_user", "date": 1, "sender_user_name": "x"},
    }
    parsed = taken(in_group("see", **{field: elsewhere}))
    assert parsed.quoted
    assert not parsed.addressed


def test_a_topic_is_a_chat_of_its_own_and_its_opening_note_is_no_quote() -> None:
    note = WRITE.message(None, chat=supergroup()) | {
        "from": ME, "forum_topic_created": {"name": "t", "icon_color": 1}, "message_thread_id": 9,
    }  # fmt: skip
    parsed = taken(in_group("hi", message_thread_id=9, is_topic_message=True, reply_to_message=note))
    assert parsed.chat.chat == parsed.reply_to.route == f"{GROUP_ID}/9"
    assert not parsed.addressed
    assert not parsed.quoted


def test_a_thread_of_replies_is_no_topic() -> None:
    assert taken(in_group("hi", message_thread_id=9)).reply_to.route == str(GROUP_ID)


FILE: Obj = {"file_id": "f", "file_unique_id": "u", "file_size": 12}
SIZED: Obj = FILE | {"width": 1, "height": 1}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"photo": [SIZED | {"file_id": "small"}, SIZED]}, AttachmentKind.IMAGE),
        ({"document": FILE}, AttachmentKind.FILE),
        ({"animation": SIZED | {"duration": 1}, "document": FILE}, AttachmentKind.VIDEO),
        ({"video": SIZED | {"duration": 1}}, AttachmentKind.VIDEO),
        ({"video_note": FILE | {"length": 1, "duration": 1}}, AttachmentKind.VIDEO),
        ({"audio": FILE | {"duration": 1}}, AttachmentKind.AUDIO),
        ({"voice": FILE | {"duration": 1}}, AttachmentKind.AUDIO),
        (
            {"sticker": SIZED | {"type": "regular", "is_animated": False, "is_video": False}},
            AttachmentKind.STICKER,
        ),
    ],
)
@pytest.mark.parametrize("caption", [None, "/history"])
def test_a_caption_on_any_kind_of_file_is_an_attachment(
    fields: dict[str, object], kind: AttachmentKind, caption: str | None
) -> None:
    words: Obj = {"caption": caption, "caption_entities": entities(caption)} if caption else {}
    parsed = taken(WRITE.message(None, **fields, **words))  # type: ignore[arg-type]  # fields of the message by name
    (attachment,) = parsed.attachments
    assert (attachment.kind, attachment.handle, attachment.size) == (kind, "f", 12)
    assert parsed.text == (caption or "")


def test_a_caption_on_a_kind_of_file_that_nobody_knows_yet_is_an_attachment_too() -> None:
    parsed = taken(WRITE.message(None) | {"caption": "/history", "hologram": FILE})
    assert [(each.kind, each.handle) for each in parsed.attachments] == [(AttachmentKind.FILE, "")]


def test_a_caption_can_address_the_bot() -> None:
    words: Obj = {"caption": "@ThisBot look", "caption_entities": entities("@ThisBot look")}
    parsed = taken(WRITE.message(None, chat=supergroup()) | words | {"document": FILE})
    assert (parsed.addressed, parsed.text) == (True, "look")


def test_a_place_is_something_the_bot_cannot_take() -> None:
    parsed = taken(WRITE.message(None) | {"location": {"latitude": 1.0, "longitude": 2.0}})
    assert [attachment.handle for attachment in parsed.attachments] == [""]


@pytest.mark.parametrize(
    "message",
    [
        WRITE.message(None) | {"new_chat_members": [person(5)]},
        WRITE.message(None) | {"pinned_message": WRITE.message("x")},
        WRITE.message("mine") | {"from": ME},
        WRITE.message("another machine") | {"from": person(9, bot=True)},
    ],
)
def test_notes_and_machines_are_ignored(message: Obj) -> None:
    assert read(message) is None


@pytest.mark.parametrize("kind", ["edited_message", "channel_post", "edited_channel_post"])
def test_edits_and_posts_are_ignored(kind: str) -> None:
    assert read(WRITE.message("hello"), kind=kind) is None


def test_who_writes_as_a_group_is_that_group_and_nobody_else() -> None:
    anonymous = in_group("@ThisBot hi") | {"from": person(1_087_968_824, bot=True), "sender_chat": supergroup()}
    assert taken(anonymous).sender == str(GROUP_ID)

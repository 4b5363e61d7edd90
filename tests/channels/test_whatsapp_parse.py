"""WhatsApp: what a post holds."""

from __future__ import annotations

import json

import pytest

from bridges.message import InboundMessage, ReplyTarget
from bridges.text.whatsapp_parse import Found, Route, Undelivered, Unreadable, parse
from commands.model import AttachmentKind, ChatKey, ChatKind
from tests.fakes.whatsapp import DIGITS, NUMBER, Obj, change, message, post, status, value

USER = "US.13491208655302741918"
GROUP = "Y2FwaV9ncm91cDpmYWtl"


def read(body: object) -> list[Found]:
    return list(parse(json.dumps(body).encode(), "bot", NUMBER))


def heard(*messages: Obj) -> list[InboundMessage]:
    found = read(post(change(value(*messages))))
    return [each for each in found if isinstance(each, InboundMessage)]


def one(text: str | None = "hi", *, sender: str | None = "16505551234", **fields: object) -> InboundMessage:
    (found,) = heard(message(text, sender=sender) | fields)
    return found


def route(found: InboundMessage) -> Route:
    return Route.of(found.reply_to)


def test_a_text_is_a_direct_message_of_its_person() -> None:
    said = message("/history 4")
    (found,) = heard(said)
    chat = ChatKey("whatsapp", "bot", "16505551234")
    assert found == InboundMessage(
        id=found.id,
        chat=chat,
        kind=ChatKind.DIRECT,
        sender=found.sender,
        text="/history 4",
        reply_to=ReplyTarget(chat, found.reply_to.route),
    )
    assert (found.id, found.sender) == (said["id"], "16505551234")
    assert route(found) == Route(str(said["id"]), phone="16505551234")


def test_a_user_id_names_the_person_and_the_chat_beside_a_phone_number() -> None:
    found = one(from_user_id=USER)
    assert (found.sender, found.chat.chat) == (USER, USER)
    assert (route(found).phone, route(found).user) == ("16505551234", USER)


def test_a_user_id_is_also_taken_from_the_contact() -> None:
    contacts = [{"wa_id": "1650", "user_id": "other"}, {"wa_id": "16505551234", "user_id": USER}]
    (found,) = read(post(change(value(message("hi"), contacts=contacts))))
    assert isinstance(found, InboundMessage)
    assert found.sender == USER


def test_a_person_without_a_phone_number_is_heard_and_answered_by_user_id() -> None:
    found = one(sender=None, from_user_id=USER)
    assert found.sender == USER
    assert route(found) == Route(str(found.id), user=USER)


@pytest.mark.parametrize(
    ("text", "addressed", "left"),
    [
        ("hello all", False, "hello all"),
        (f"@{DIGITS} /status", True, "/status"),
        (f"/status @+{DIGITS}", True, "/status"),
        (f"@{DIGITS}7 /status", False, f"@{DIGITS}7 /status"),
        ("@16505551234 /status", False, "@16505551234 /status"),
    ],
)
def test_a_group_addresses_the_bot_by_its_number(text: str, *, addressed: bool, left: str) -> None:
    found = one(text, group_id=GROUP)
    assert (found.kind, found.chat.chat, found.sender) == (ChatKind.GROUP, GROUP, "16505551234")
    assert (found.addressed, found.text) == (addressed, left)
    assert route(found) == Route(str(found.id), group=GROUP)


@pytest.mark.parametrize(("author", "addressed"), [(DIGITS, True), ("16505550000", False), (None, False)])
def test_a_group_addresses_the_bot_by_a_reply_to_it(author: str | None, *, addressed: bool) -> None:
    found = one(group_id=GROUP, context={"id": "wamid.X", "from": author})
    assert found.addressed is addressed
    assert found.quoted


def test_a_mention_in_a_private_chat_is_text() -> None:
    assert one(f"@{DIGITS} hi").text == f"@{DIGITS} hi"


@pytest.mark.parametrize(
    ("context", "quoted"), [({"from": DIGITS, "id": "wamid.X"}, True), ({"forwarded": True}, False), (None, False)]
)
def test_a_reply_quotes_and_a_forwarded_message_does_not(context: Obj | None, *, quoted: bool) -> None:
    assert one(context=context).quoted is quoted


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("image", AttachmentKind.IMAGE),
        ("video", AttachmentKind.VIDEO),
        ("audio", AttachmentKind.AUDIO),
        ("sticker", AttachmentKind.STICKER),
        ("document", AttachmentKind.FILE),
    ],
)
def test_files_of_all_kinds(kind: str, expected: AttachmentKind) -> None:
    media = {"id": "1003", "mime_type": "x/y", "sha256": "eA==", "caption": "look", "filename": "a.pdf"}
    found = heard(message() | {"type": kind, kind: media})[0]
    (attachment,) = found.attachments
    assert (attachment.kind, attachment.handle, attachment.name) == (expected, "1003", "a.pdf")
    assert found.text == "look"


@pytest.mark.parametrize("kind", ["location", "contacts", "order", "unsupported", "something new"])
def test_what_is_no_text_and_cannot_be_fetched_is_a_file_without_a_handle(kind: str) -> None:
    found = one(None, type=kind)
    assert [(each.kind, each.handle) for each in found.attachments] == [(AttachmentKind.FILE, "")]


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "button", "button": {"text": "/status", "payload": "x"}},
        {
            "type": "interactive",
            "interactive": {"type": "button_reply", "button_reply": {"id": "1", "title": "/status"}},
        },
        {"type": "interactive", "interactive": {"type": "list_reply", "list_reply": {"id": "1", "title": "/status"}}},
    ],
)
def test_what_is_picked_counts_as_typed(fields: Obj) -> None:
    (found,) = heard(message() | fields)
    assert (found.text, found.attachments) == ("/status", ())


@pytest.mark.parametrize("kind", ["reaction", "system", "edit", "revoke", "request_welcome"])
def test_what_says_nothing_is_none(kind: str) -> None:
    assert heard(message(None, type=kind)) == []


def test_our_own_number_is_never_a_sender() -> None:
    assert heard(message("echo", sender=DIGITS)) == []


def test_echoes_and_other_fields_are_none() -> None:
    echo = {**value(), "message_echoes": [message("echo", sender=DIGITS)]}
    assert read(post(change(echo, "smb_message_echoes"), change(value(message("hi")), "history"))) == []


def test_another_number_of_the_account_is_left_out() -> None:
    mine, other = value(message("mine")), value(message("other"), number="999")
    assert [each.text for each in read(post(change(other), change(mine))) if isinstance(each, InboundMessage)] == [
        "mine"
    ]


def test_entries_changes_and_messages_come_in_order() -> None:
    body = {
        "object": "whatsapp_business_account",
        "entry": [
            {"id": "1", "changes": [change(value(message("a"), message("b"))), change(value(message("c")))]},
            {"id": "2", "changes": [change(value(message("d")))]},
        ],
    }
    assert [each.text for each in read(body) if isinstance(each, InboundMessage)] == ["a", "b", "c", "d"]


def test_only_failed_statuses_say_anything_in_whatever_order_they_come() -> None:
    states = (status("1", "read"), status("1", "delivered"), status("1", "sent"), status("1", "played"))
    failed = (status("2", "failed", 131047), status("3", "failed"))
    found = read(post(change(value(statuses=(*states, *failed, *states)))))
    assert found == [Undelivered("2", 131047), Undelivered("3", 0)]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ([], "post"),
        ({"entry": {}}, "post.entry"),
        ({"entry": [{"changes": 1}]}, "entry.changes"),
        ({"entry": [{"changes": [{"field": "messages", "value": {"metadata": 1}}]}]}, "value.metadata"),
        (post(change(value({"id": 5, "type": "text"}))), "message.id"),
        (post(change(value({"id": "secret", "type": "text"}))), "message without id, sender or group"),
        (post(change(value(statuses=({"id": "1"},)))), "status"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_place(body: object, where: str) -> None:
    assert read(body) == [Unreadable(where)]


def test_what_is_no_json_is_named_too() -> None:
    assert list(parse(b"\xff{", "bot", NUMBER)) == [Unreadable("post")]


@pytest.mark.parametrize("contacts", [3, {}, [3], [{"wa_id": 5}], [None]])
def test_people_that_cannot_be_read_take_no_message_with_them(contacts: object) -> None:
    found = read(post(change(value(message("a"), contacts=contacts))))
    assert isinstance(found[0], Unreadable)
    assert [each.text for each in found if isinstance(each, InboundMessage)] == ["a"]


@pytest.mark.parametrize(
    "odd", [3, None, [], {"field": 5}, {"value": 5}, {"field": None, "value": value(message("x"))}]
)
def test_a_change_that_cannot_be_read_takes_no_other_with_it(odd: object) -> None:
    body = {"entry": [{"changes": [odd, change(value(message("a")))]}]}
    assert [each.text for each in read(body) if isinstance(each, InboundMessage)] == ["a"]


@pytest.mark.parametrize("user", [USER, "US.ENT.11815799212886844830"])
def test_a_user_id_in_the_place_of_a_phone_number_is_one(user: str) -> None:
    found = one(sender=user)
    assert (found.sender, found.chat.chat) == (user, user)
    assert route(found) == Route(str(found.id), user=user)


def test_a_group_without_a_name_is_no_private_chat() -> None:
    assert heard(message("/history") | {"group_id": ""}) == []


def test_a_changed_number_says_nothing_and_its_person_is_a_new_one() -> None:
    told = {"body": "changed", "wa_id": "12195555358", "type": "user_changed_number"}
    assert heard(message(None, type="system") | {"system": told}) == []
    assert one(sender="12195555358").sender == "12195555358"


def test_a_thousand_messages_in_one_post_are_read_one_by_one() -> None:
    found = heard(*(message(str(number)) for number in range(1_000)))
    assert [each.text for each in found] == [str(number) for number in range(1_000)]


def test_a_message_that_cannot_be_read_takes_no_other_with_it() -> None:
    found = read(post(change(value(message("a"), {"id": 5}, message("b")))))
    assert [each.text if isinstance(each, InboundMessage) else None for each in found] == ["a", None, "b"]

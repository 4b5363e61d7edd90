"""Feishu: an event as a message of ours, field by field; files."""

from __future__ import annotations

import json

import pytest

from bridges.feishu.inbound import Malformed, Resource, Route, parse
from bridges.message import InboundMessage
from commands.model import AttachmentKind, ChatKey, ChatKind
from tests.channels.feishu import line_on, platform
from tests.fakes.feishu import ALICE, BOT, GROUP, Fault, Obj, mention, message, private

ME = mention("@_user_1", BOT, "Bot")
BOB = mention("@_user_2", "ou_b0b", "Bob 王")


def read(event: Obj) -> InboundMessage | None:
    return parse(json.dumps(event).encode(), "bot", BOT)


def certainly(event: Obj) -> InboundMessage:
    found = read(event)
    assert found is not None
    return found


def post(*lines: list[Obj], title: str = "") -> Obj:
    return {"title": title, "content": list(lines)}


def test_a_private_message() -> None:
    event = message({"text": " hi "})
    found = certainly(event)
    assert (found.kind, found.chat) == (ChatKind.DIRECT, ChatKey("feishu", "bot", private(ALICE)))
    assert (found.sender, found.text, found.addressed, found.quoted) == (ALICE, "hi", True, False)
    assert found.id.startswith("om_")
    assert Route.of(found.reply_to) == Route(private(ALICE))


@pytest.mark.parametrize("chat_type", ["group", "topic_group", "", "P2P"])
def test_whatever_is_not_surely_one_to_one_is_a_group(chat_type: str) -> None:
    found = certainly(message({"text": "hi"}, chat_type=chat_type))
    assert (found.kind, found.addressed) == (ChatKind.GROUP, False)


@pytest.mark.parametrize(
    ("text", "mentions", "heard", "addressed"),
    [
        ("@_user_1 /history 4", [ME], "/history 4", True),
        ("@_user_1  /history", [ME], "/history", True),
        ("ask @_user_2: is @_user_1 here?", [ME, BOB], "ask @Bob 王: is  here?", True),
        ("@_user_2 hi", [BOB], "@Bob 王 hi", False),
        ("@_user_12 @_user_1 hi", [ME, mention("@_user_12", "ou_c", "Carol")], "@Carol  hi", True),
        ("@_user_1 hi", [mention("@_user_1", "ou_d", "Bot")], "@Bot hi", False),
        ("@_user_7 hi", [], "@_user_7 hi", False),
        ("@_all hi", [mention("@_all", "", "all")], "@all hi", False),
        ("@Bot hi", [], "@Bot hi", False),
    ],
)
def test_the_bots_own_mention_goes_by_its_id_and_others_by_their_names(
    text: str, mentions: list[Obj], heard: str, addressed: bool
) -> None:
    found = certainly(message({"text": text}, chat=GROUP, mentions=mentions))
    assert (found.text, found.addressed, found.chat.chat) == (heard, addressed, GROUP)


def test_a_post_is_read_line_by_line() -> None:
    words = post(
        [{"tag": "at", "user_id": "@_user_1", "user_name": "Bot"}, {"tag": "text", "text": " look at "}],
        [{"tag": "a", "text": "this", "href": "https://example.com/x"}, {"tag": "text", "text": " and "},
         {"tag": "a", "text": "https://e.com", "href": "https://e.com"}, {"tag": "at", "user_id": "@_user_2"}],
        [{"tag": "code_block", "language": "PY", "text": "print(1)"}],
        [{"tag": "emotion", "emoji_type": "SMILE"}, {"tag": "md", "text": "**bold**"}, {"tag": "hr"}],
        [{"tag": "at", "user_id": "ou_x", "user_name": "Eve"}],
        title="Title",
    )  # fmt: skip
    found = certainly(message(words, "post", chat=GROUP, mentions=[ME, BOB]))
    lines = [
        "Title",
        " look at ",
        "this https://example.com/x and https://e.com@Bob 王",
        "",
        "print(1)",
        "",
        "**bold**",
        "@Eve",
    ]
    assert found.text == "\n".join(lines)
    assert found.addressed


def test_a_command_in_a_post_is_a_command() -> None:
    words = post([{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": " /history"}])
    assert certainly(message(words, "post", chat=GROUP, mentions=[ME])).text == "/history"


@pytest.mark.parametrize(
    ("kind", "content", "expected", "name", "resource"),
    [
        ("image", {"image_key": "img_1"}, AttachmentKind.IMAGE, None, ("img_1", "image")),
        ("file", {"file_key": "f", "file_name": "a.pdf"}, AttachmentKind.FILE, "a.pdf", ("f", "file")),
        ("audio", {"file_key": "f", "duration": 9}, AttachmentKind.AUDIO, None, ("f", "file")),
        ("media", {"file_key": "f", "image_key": "i"}, AttachmentKind.VIDEO, None, ("f", "file")),
        ("sticker", {"file_key": "f"}, AttachmentKind.STICKER, None, ("", "file")),
        ("location", {"name": "here", "longitude": "1"}, AttachmentKind.FILE, None, ("", "file")),
        ("interactive", {"title": "card", "elements": [[]]}, AttachmentKind.FILE, None, ("", "file")),
        ("hologram", {}, AttachmentKind.FILE, None, ("", "file")),
    ],
)  # fmt: skip
def test_every_kind_of_file(
    kind: str, content: Obj, expected: AttachmentKind, name: str | None, resource: tuple[str, str]
) -> None:
    found = certainly(message(content, kind))
    (attachment,) = found.attachments
    assert (attachment.kind, attachment.name, found.text) == (expected, name, "")
    wanted = Resource.of(attachment)
    assert (wanted.message, wanted.key, wanted.type) == (found.id, *resource)


@pytest.mark.parametrize("language", ["zh_cn", "en_us", "ja_jp"])
def test_a_post_inside_its_language_is_read_all_the_same(language: str) -> None:
    words = post([{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": " /history"}])
    assert certainly(message({language: words}, "post", chat=GROUP, mentions=[ME])).text == "/history"


@pytest.mark.parametrize("content", [{"title": "", "content": []}, {}, {"zh_cn": {}}])
def test_a_post_without_words_is_empty(content: Obj) -> None:
    assert certainly(message(content, "post")).text == ""


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("merge_forward", {"content": "Merged and Forwarded Message"}),
        ("interactive", {"title": {"tag": "plain_text"}, "elements": [[{"tag": "text", "text": "card"}]]}),
        ("todo", {"task_id": "t", "summary": {"title": "", "content": [[]]}}),
        ("hongbao", {"text": 7}),
        ("share_chat", {"chat_id": "oc_1"}),
    ],
)
def test_what_is_forwarded_is_not_lost_though_it_cannot_be_fetched(kind: str, content: Obj) -> None:
    found = certainly(message(content, kind))
    assert [(each.kind, Resource.of(each).key) for each in found.attachments] == [(AttachmentKind.FILE, "")]
    assert found.text == ""


def test_half_a_character_costs_no_message() -> None:
    cut = mention("@_user_2", "ou_b0b", "Bob \ud83d")
    found = certainly(message({"text": "@_user_2 \udc4b hi \ud83d\udc4b"}, chat=GROUP, mentions=[cut]))
    assert found.text == "@Bob ? ? hi 👋"
    (file,) = certainly(message({"file_key": "f", "file_name": "a\ud83d.pdf"}, "file")).attachments
    assert file.name == "a?.pdf"


def test_a_mention_of_nobody_in_particular_costs_no_message() -> None:
    odd: list[Obj] = [{"key": "@_user_1"}, {"key": "@_user_2", "id": None, "name": None}]
    found = certainly(message({"text": "@_user_1 @_user_2 hi"}, chat=GROUP, mentions=odd))
    assert (found.text, found.addressed) == ("@ @ hi", False)


def test_files_in_a_post_come_with_its_words() -> None:
    words = post(
        [{"tag": "text", "text": "see"}],
        [{"tag": "img", "image_key": "img_1"}, {"tag": "img", "image_key": "img_2"}],
        [{"tag": "media", "file_key": "file_3", "image_key": "img_4"}],
    )
    found = certainly(message(words, "post"))
    assert [(each.kind, Resource.of(each).key) for each in found.attachments] == [
        (AttachmentKind.IMAGE, "img_1"),
        (AttachmentKind.IMAGE, "img_2"),
        (AttachmentKind.VIDEO, "file_3"),
    ]
    assert found.text == "see"


def test_a_topic_of_a_group_is_a_chat_of_its_own_and_is_replied_to_inside() -> None:
    found = certainly(message({"text": "hi"}, chat=GROUP, thread_id="omt_1", root_id="om_a", parent_id="om_a"))
    assert found.chat.chat == f"{GROUP}/omt_1"
    assert Route.of(found.reply_to) == Route(GROUP, found.id)
    assert not found.quoted, "the topic's first message is what it belongs to"


def test_a_private_topic_is_part_of_the_private_chat_and_is_replied_to_inside() -> None:
    found = certainly(message({"text": "hi"}, thread_id="omt_1"))
    assert found.chat.chat == private(ALICE)
    assert Route.of(found.reply_to) == Route(private(ALICE), found.id)


@pytest.mark.parametrize(("topic", "root"), [(None, None), (None, "om_b"), ("omt_1", "om_a")])
def test_a_quote_is_told(topic: str | None, root: str | None) -> None:
    assert certainly(message({"text": "hi"}, thread_id=topic, root_id=root, parent_id="om_b")).quoted


@pytest.mark.parametrize("sender_type", ["app", "bot", "anonymous", ""])
def test_what_no_person_sent_is_dropped(sender_type: str) -> None:
    assert read(message({"text": "hi"}, sender_type=sender_type)) is None


def test_other_events_are_nothing_to_us() -> None:
    for name in ("im.message.message_read_v1", "im.message.recalled_v1", ""):
        assert read({"schema": "2.0", "header": {"event_type": name}, "event": {"any": "thing"}}) is None


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"\xff", b"[" * 99_999, b'{"event": NaN}', b'{"header": {"event_type": 1}}',
        b'{"header": {"event_type": "im.message.receive_v1"}}',
        json.dumps(message({"text": "hi"}, sender="")).encode(),
        json.dumps(message({"text": "hi"}, message_id="")).encode(),
        json.dumps(message({"text": 1})).encode(),
        json.dumps(message({"text": "hi"})).replace("{\\", "{{\\").encode(),
        json.dumps(message({}, chat_id=7)).encode(),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_where_and_nothing_else(data: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        parse(data, "bot", BOT)
    assert "hi" not in str(caught.value)


async def test_a_file_is_fetched_as_part_of_its_message() -> None:
    async with platform() as fake, line_on(fake) as line:
        fake.files["img_1"] = b"pixels"
        await fake.deliver(message({"image_key": "img_1"}, "image"))
        (attachment,) = (await line.inbox.heard())[0].attachments
        assert await line.channel.fetch(attachment, 6) == b"pixels"
        assert fake.calls[-1] == "resource image"
        with pytest.raises(OSError, match="more than 5 bytes"):
            await line.channel.fetch(attachment, 5)


async def test_a_file_with_a_refusal_in_it_is_a_file() -> None:
    async with platform() as fake, line_on(fake) as line:
        fake.files["file_1"] = b'{"code": 99991663}'
        await fake.deliver(message({"file_key": "file_1", "file_name": "answer.json"}, "file"))
        (attachment,) = (await line.inbox.heard())[0].attachments
        assert await line.channel.fetch(attachment, 100) == b'{"code": 99991663}'


async def test_a_file_that_is_not_to_be_had_is_an_error_of_the_system() -> None:
    async with platform() as fake, line_on(fake) as line:
        await fake.deliver(message({"file_key": "gone"}, "file"))
        await fake.deliver(message({"file_key": "f"}, "sticker"))
        gone, sticker = (attachment for each in await line.inbox.heard(2) for attachment in each.attachments)
        with pytest.raises(OSError, match="code 234003"):
            await line.channel.fetch(gone, 100)
        with pytest.raises(OSError, match="does not hand this out"):
            await line.channel.fetch(sticker, 100)
        fake.files["gone"] = b"back"
        fake.valid.clear()
        assert await line.channel.fetch(gone, 100) == b"back", "a token that is over is replaced for files too"
        fake.fail("resource", Fault(status=502))
        with pytest.raises(OSError, match="HTTP 502"):
            await line.channel.fetch(gone, 100)

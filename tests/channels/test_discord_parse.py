"""What a Discord message or slash command becomes, through the real SDK's own parsers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from bridges.message import AttachmentKind, ChatKind, InboundMessage
from tests.channels.around import RecordingInbox
from tests.channels.discord import HOME, connected
from tests.fakes.discord import GENERAL, ME, TELLER, VOICE, FakeDiscord, Obj
from tests.fakes.discord.payloads import BOT_ROLE, thread, user

FOREIGN_THREAD = 9_009_000_000_000_001
OUR_OLD_THREAD = 9_009_000_000_000_002
UNKNOWN = 9_009_000_000_000_003

Read = Callable[[Obj], Awaitable[InboundMessage | None]]


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as made:
        made.threads[FOREIGN_THREAD] = thread(FOREIGN_THREAD, owner=TELLER)
        made.threads[OUR_OLD_THREAD] = thread(OUR_OLD_THREAD)
        yield made


@pytest.fixture
async def read(fake: FakeDiscord) -> AsyncIterator[Read]:
    inbox = RecordingInbox()
    async with connected(fake, inbox=inbox):

        async def through(event: Obj) -> InboundMessage | None:
            """Return what became of an event: it came before the message that is sure to come."""
            if "token" in event:
                await fake.pick(event)
            else:
                await fake.deliver(event)
            mark = fake.write.message("mark")
            await fake.deliver(mark)
            await inbox.until(lambda: bool(inbox.messages) and inbox.messages[-1].id == mark["id"])
            found = [message for message in inbox.messages if message.id == event["id"]]
            return found[0] if found else None

        yield through


def taken(message: InboundMessage | None) -> InboundMessage:
    assert message is not None
    return message


async def test_a_direct_message(fake: FakeDiscord, read: Read) -> None:
    sent = fake.write.message("  hello\n")
    parsed = taken(await read(sent))
    assert (parsed.id, parsed.kind, parsed.sender) == (sent["id"], ChatKind.DIRECT, str(TELLER))
    assert (parsed.chat.channel, parsed.chat.bot, parsed.chat.chat) == ("discord", "ops", str(HOME))
    assert (parsed.text, parsed.reply_to.route) == ("  hello\n", str(HOME))
    assert parsed.addressed
    assert not parsed.quoted
    assert parsed.attachments == ()


@pytest.mark.parametrize("where", [GENERAL, VOICE, FOREIGN_THREAD, OUR_OLD_THREAD, UNKNOWN])
async def test_whatever_is_not_surely_one_to_one_is_a_group(fake: FakeDiscord, read: Read, where: int) -> None:
    parsed = taken(await read(fake.write.message("hello", where=where)))
    assert parsed.kind is ChatKind.GROUP
    assert parsed.addressed is (where == OUR_OLD_THREAD)


async def test_a_server_the_client_does_not_know_is_a_group() -> None:
    inbox = RecordingInbox()
    async with FakeDiscord() as fake:
        fake.gateway.tells_guild = False
        async with connected(fake, inbox=inbox):
            await fake.deliver(fake.write.message(f"<@{ME}> hello", where=GENERAL))
            (parsed,) = await inbox.heard()
    assert (parsed.kind, parsed.addressed, parsed.reply_to.route) == (ChatKind.GROUP, True, str(GENERAL))


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (f"<@{ME}> hello", "hello"),
        (f"hello <@!{ME}>", "hello"),
        (f"<@{ME}> /history 5", "/history 5"),
        (f"👋 <@{ME}> 你好 <@{ME}>", "👋  你好"),
        (f"<@{ME}>", ""),
        (f"<@&{BOT_ROLE}> hello", "hello"),
        (f"<@{ME}> ask <@{TELLER}>", f"ask <@{TELLER}>"),
    ],
)
async def test_a_mention_addresses_the_bot_and_is_taken_off(
    fake: FakeDiscord, read: Read, typed: str, text: str
) -> None:
    parsed = taken(await read(fake.write.message(typed, where=GENERAL)))
    assert (parsed.addressed, parsed.text) == (True, text)


@pytest.mark.parametrize("typed", ["hello", "/history", f"<@{TELLER}> hello", "@everyone hello", "<@&1> hello"])
async def test_what_names_nobody_of_us_is_not_addressed(fake: FakeDiscord, read: Read, typed: str) -> None:
    parsed = taken(await read(fake.write.message(typed, where=GENERAL)))
    assert (parsed.addressed, parsed.text, parsed.reply_to.route) == (False, typed, str(GENERAL))


async def test_a_mention_in_a_text_channel_is_answered_in_a_thread_of_its_own(fake: FakeDiscord, read: Read) -> None:
    sent = fake.write.message(f"<@{ME}> hello", where=GENERAL)
    parsed = taken(await read(sent))
    assert parsed.chat.chat == sent["id"], "the thread will have the message's id"
    assert parsed.reply_to.route == f"{GENERAL}/thread/{sent['id']}"
    assert fake.count("/threads") == 0, "nothing is opened for somebody who may not be allowed to ask"


@pytest.mark.parametrize("where", [VOICE, FOREIGN_THREAD, OUR_OLD_THREAD])
async def test_elsewhere_a_mention_is_answered_where_it_is(fake: FakeDiscord, read: Read, where: int) -> None:
    parsed = taken(await read(fake.write.message(f"<@{ME}> hello", where=where)))
    assert parsed.chat.chat == parsed.reply_to.route == str(where)


async def test_where_the_bot_may_open_no_threads_the_channel_is_the_chat() -> None:
    inbox = RecordingInbox()
    async with FakeDiscord() as fake:
        fake.gateway.permissions &= ~(1 << 35)
        async with connected(fake, inbox=inbox):
            await fake.deliver(fake.write.message(f"<@{ME}> hello", where=GENERAL))
            (parsed,) = await inbox.heard()
    assert parsed.chat.chat == parsed.reply_to.route == str(GENERAL)


@pytest.mark.parametrize(("author", "addressed"), [(ME, True), (TELLER + 1, False)])
async def test_a_reply_to_the_bot_addresses_it(fake: FakeDiscord, read: Read, author: int, addressed: bool) -> None:
    earlier = fake.write.message("earlier", sender=author, where=GENERAL)
    reference = {"type": 0, "message_id": earlier["id"], "channel_id": str(GENERAL)}
    answer = fake.write.message("yes", where=GENERAL, type=19, message_reference=reference, referenced_message=earlier)
    parsed = taken(await read(answer))
    assert (parsed.addressed, parsed.quoted) == (addressed, True)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"content_type": "image/png"}, AttachmentKind.IMAGE),
        ({"content_type": "video/mp4"}, AttachmentKind.VIDEO),
        ({"content_type": "audio/ogg"}, AttachmentKind.AUDIO),
        ({"content_type": "text/plain; charset=utf-8"}, AttachmentKind.FILE),
        ({}, AttachmentKind.FILE),
    ],
)
async def test_a_file(fake: FakeDiscord, read: Read, fields: Obj, kind: AttachmentKind) -> None:
    file = {"id": "5", "filename": "a.bin", "size": 12, "url": "https://cdn/x", "proxy_url": "https://cdn/x", **fields}
    parsed = taken(await read(fake.write.message("/history", attachments=[file])))
    (attachment,) = parsed.attachments
    assert (attachment.kind, attachment.handle, attachment.name) == (kind, "https://cdn/x", "a.bin")
    assert attachment.size == 12
    assert parsed.text == "/history"


async def test_a_sticker_is_an_attachment(fake: FakeDiscord, read: Read) -> None:
    parsed = taken(await read(fake.write.message("", sticker_items=[{"id": "5", "name": "wave", "format_type": 1}])))
    assert [attachment.kind for attachment in parsed.attachments] == [AttachmentKind.STICKER]


@pytest.mark.parametrize(
    "fields",
    [
        {"author": user(ME)},
        {"author": user(99, bot=True)},
        {"webhook_id": "99"},
        {"type": 6},  # a message was pinned
        {"type": 7},  # somebody joined
        {"type": 18},  # a thread was opened
        {"type": 21},  # the copy of the message a thread began at
        {"type": 20},  # the answer to a slash command
    ],
)
async def test_notes_and_machines_are_ignored(fake: FakeDiscord, read: Read, fields: Obj) -> None:
    assert await read(fake.write.message("hello") | fields) is None


async def test_an_edit_is_ignored(fake: FakeDiscord, read: Read) -> None:
    await fake.gateway.dispatch("MESSAGE_UPDATE", edited := fake.write.message("edited"))
    last = taken(await read(fake.write.message("new")))
    assert last.id != edited["id"]


@pytest.mark.parametrize("argument", [None, "5", "two words"])
async def test_a_slash_command_reads_as_if_it_had_been_typed(
    fake: FakeDiscord, read: Read, argument: str | None
) -> None:
    picked = fake.write.slash("history", argument)
    parsed = taken(await read(picked))
    assert parsed.text == ("/history" if argument is None else f"/history {argument}")
    assert (parsed.kind, parsed.sender, parsed.chat.chat) == (ChatKind.DIRECT, str(TELLER), str(HOME))
    assert parsed.reply_to.route == f"{HOME}/command/{picked['id']}"
    assert parsed.addressed


@pytest.mark.parametrize("where", [GENERAL, VOICE, OUR_OLD_THREAD])
async def test_a_slash_command_in_a_server_is_a_groups(fake: FakeDiscord, read: Read, where: int) -> None:
    parsed = taken(await read(fake.write.slash("history", where=where)))
    assert (parsed.kind, parsed.chat.chat, parsed.addressed) == (ChatKind.GROUP, str(where), True)


async def test_a_slash_command_between_two_people_is_a_groups(fake: FakeDiscord, read: Read) -> None:
    parsed = taken(await read(fake.write.slash("history") | {"context": 2}))
    assert parsed.kind is ChatKind.GROUP


async def test_other_interactions_are_ignored(fake: FakeDiscord, read: Read) -> None:
    pressed = fake.write.slash("history") | {"type": 3, "data": {"custom_id": "x", "component_type": 2}}
    pressed["message"] = fake.write.message("with a button", sender=ME)
    assert await read(pressed) is None
    assert await read(fake.write.slash("history") | {"data": {"id": "1", "name": 7, "type": 1}}) is None

"""Telegram's way out, with the real SDK on a real socket: every outcome, drafts, edits, menus, files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges.delivery import Delivery, End
from bridges.message import (
    AttachmentKind,
    EditsMessages,
    FetchesAttachments,
    InboundAttachment,
    MenuEntry,
    NotSent,
    PublishesCommands,
    RetryAfter,
    SendOutcome,
    Sent,
    SentId,
    ShowsTyping,
    StreamsAnswers,
)
from bridges.split import split_lossless
from bridges.text.telegram import DRAFT_LIFE_SECONDS, DRAFT_SECONDS, GROUP_EDIT_SECONDS, TelegramChannel
from bridges.text.telegram_api import ANSWER_SECONDS, LONGEST_WAIT, UNREACHED_SECONDS
from tests.bridges.bench import eventually
from tests.channels.around import NotingClock, RecordingInbox
from tests.channels.telegram import channel_at, connected, place
from tests.fakes.clock import FakeClock
from tests.fakes.telegram import GROUP_ID, TELLER, FakeTelegram, How


@pytest.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as made:
        yield made


@pytest.fixture
async def channel(fake: FakeTelegram) -> AsyncIterator[TelegramChannel]:
    async with connected(fake) as made:
        yield made


def test_what_the_channel_can_do(channel: TelegramChannel) -> None:
    for capability in (EditsMessages, StreamsAnswers, ShowsTyping, FetchesAttachments, PublishesCommands):
        assert isinstance(channel, capability)


async def test_a_message_is_plain_text_without_preview(fake: FakeTelegram, channel: TelegramChannel) -> None:
    text = "*not bold* <b>nor this</b> https://example.org @everyone"
    outcome = await channel.send(place(), text)
    (said,) = fake.said
    assert outcome == Sent(SentId(str(said.id)))
    assert (said.chat, said.texts, said.thread) == (TELLER, [text], None)
    assert "parse_mode" not in said.params
    assert said.params["link_preview_options"] == '{"is_disabled": true}'


async def test_a_topic_is_answered_in_the_topic(fake: FakeTelegram, channel: TelegramChannel) -> None:
    await channel.send(place(f"{GROUP_ID}/9"), "hi")
    await channel.send(place(GROUP_ID), "hi")
    assert [(said.chat, said.thread) for said in fake.said] == [(GROUP_ID, 9), (GROUP_ID, None)]


OUTCOMES: list[tuple[How, SendOutcome, int]] = [
    ({"status": 429, "description": "Too Many Requests", "parameters": {"retry_after": 7}}, RetryAfter(7.0), 0),
    ({"status": 429, "description": "Too Many Requests: retry later"}, RetryAfter(UNREACHED_SECONDS), 0),
    ({"status": 403, "description": "Forbidden: bot was blocked by the user"}, NotSent.BLOCKED, 0),
    ({"status": 403, "description": "Forbidden: user is deactivated"}, NotSent.BLOCKED, 0),
    ({"status": 403, "description": "Forbidden: bot was kicked from the supergroup chat"}, NotSent.BLOCKED, 0),
    ({"status": 400, "description": "Bad Request: chat not found"}, NotSent.BLOCKED, 0),
    ({"status": 400, "description": "Bad Request: TOPIC_CLOSED"}, NotSent.BLOCKED, 0),
    ({"status": 400, "description": "Bad Request: message is too long"}, NotSent.TOO_LONG, 0),
    ({"status": 400, "description": "Bad Request: something new"}, NotSent.REJECTED, 0),
    ({"status": 401, "description": "Unauthorized"}, NotSent.REAUTHENTICATE, 0),
    ({"status": 500, "description": "Internal Server Error"}, NotSent.UNKNOWN, 0),
    ({"status": 404, "page": "<html>Not here</html>"}, NotSent.UNKNOWN, 0),
    ({"status": 403, "page": "<html>Forbidden</html>"}, NotSent.UNKNOWN, 0),
    ({"status": 200, "page": "<html>Welcome</html>", "effect": True}, NotSent.UNKNOWN, 1),
    ({"status": 429, "description": "x", "parameters": {"retry_after": 10**9}}, RetryAfter(LONGEST_WAIT), 0),
    ({"status": 502}, NotSent.UNKNOWN, 0),
    ({"status": 502, "effect": True}, NotSent.UNKNOWN, 1),
    ({"drop": True}, NotSent.UNKNOWN, 0),
    ({"drop": True, "effect": True}, NotSent.UNKNOWN, 1),
]


@pytest.mark.parametrize(("how", "outcome", "arrived"), OUTCOMES)
async def test_how_a_send_can_end(
    fake: FakeTelegram, channel: TelegramChannel, how: How, outcome: SendOutcome, arrived: int
) -> None:
    fake.fail("sendMessage", **how)
    assert await channel.send(place(), "hi") == outcome
    assert len(fake.said) == arrived
    assert fake.count("sendMessage") == 1, "the channel repeats nothing by itself"


async def test_a_server_that_is_not_there_got_nothing_and_may_be_tried_again() -> None:
    async with FakeTelegram() as fake, connected(fake) as channel:
        await fake.__aexit__(None)
        assert await channel.send(place(), "hi") == RetryAfter(UNREACHED_SECONDS)


async def test_a_send_that_is_never_answered_may_have_arrived(fake: FakeTelegram) -> None:
    clock = FakeClock()
    async with connected(fake, clock) as channel:
        fake.fail("sendMessage", hold=asyncio.Event())
        sending = asyncio.create_task(channel.send(place(), "hi"))
        await fake.until(lambda: fake.count("sendMessage") == 1)
        await clock.advance(ANSWER_SECONDS - 1)
        assert not sending.done()
        await clock.advance(1)
        assert await sending is NotSent.UNKNOWN


async def test_an_ambiguous_send_is_not_repeated_by_the_delivery(fake: FakeTelegram, channel: TelegramChannel) -> None:
    delivery = Delivery(channel, split_lossless)
    fake.fail("sendMessage", drop=True, effect=True)
    report = await delivery.deliver(place(), ["one", "two"])
    assert report.end is End.UNKNOWN
    assert fake.texts(TELLER) == ["one"]
    await delivery.close(0)


async def test_a_group_that_became_a_supergroup_is_followed(fake: FakeTelegram, channel: TelegramChannel) -> None:
    how: How = {
        "status": 400,
        "description": "Bad Request: group chat was upgraded to a supergroup chat",
        "parameters": {"migrate_to_chat_id": GROUP_ID},
    }
    fake.fail("sendMessage", **how)
    assert isinstance(await channel.send(place(-5), "hi"), Sent)
    assert fake.texts(GROUP_ID) == ["hi"]
    for target in (GROUP_ID, -6):
        how["parameters"] = {"migrate_to_chat_id": target}
        fake.fail("sendMessage", **how)
    assert await channel.send(place(-5), "hi") is NotSent.BLOCKED
    assert fake.count("sendMessage") == 4, "a group is followed once"


async def test_limits_are_those_of_the_platform(fake: FakeTelegram, channel: TelegramChannel) -> None:
    full = "😀" * (channel.limits.text // 2)
    assert isinstance(await channel.send(place(), full), Sent)
    assert await channel.send(place(), full + "x") is NotSent.TOO_LONG


async def test_a_cancelled_send_leaves_the_channel_usable(fake: FakeTelegram, channel: TelegramChannel) -> None:
    hold = asyncio.Event()
    fake.fail("sendMessage", hold=hold)
    sending = asyncio.create_task(channel.send(place(), "hi"))
    await fake.until(lambda: fake.count("sendMessage") == 1)
    sending.cancel()
    await asyncio.wait({sending})
    assert isinstance(await channel.send(place(), "again"), Sent)
    hold.set()


async def test_a_channel_sends_between_two_runs_and_not_before_the_first_or_after_the_last(fake: FakeTelegram) -> None:
    channel = channel_at(fake)
    assert await channel.send(place(), "too early") is NotSent.REJECTED
    task = asyncio.create_task(channel.run(inbox := RecordingInbox()))
    await inbox.until(lambda: inbox.ups == 1)
    task.cancel()
    await asyncio.wait({task})
    assert isinstance(await channel.send(place(), "between"), Sent)
    await channel.close()
    assert await channel.send(place(), "too late") is NotSent.REJECTED
    assert fake.texts(TELLER) == ["between"]


# -- answers that grow -------------------------------------------------------------------------------------------------


async def test_an_edit_replaces_the_text_and_may_change_nothing(fake: FakeTelegram, channel: TelegramChannel) -> None:
    sent = await channel.send(place(), "Hel")
    assert isinstance(sent, Sent)
    assert sent.id is not None
    for text in ("Hello", "Hello"):
        assert await channel.edit(place(), sent.id, text) == sent
    assert fake.said[0].texts == ["Hel", "Hello"]
    shown = next(call.params for call in fake.calls if call.method == "editmessagetext")
    assert shown["link_preview_options"] == '{"is_disabled": true}'
    assert "parse_mode" not in shown
    assert await channel.edit(place(), SentId("9999"), "x") is NotSent.REJECTED


async def test_edits_in_a_group_leave_room_for_replies(fake: FakeTelegram) -> None:
    clock = FakeClock()
    async with connected(fake, clock) as channel:
        group = place(GROUP_ID)
        sent = await channel.send(group, "1")
        assert isinstance(sent, Sent)
        assert sent.id is not None
        assert isinstance(await channel.edit(group, sent.id, "2"), Sent)
        assert await channel.edit(group, sent.id, "3") == RetryAfter(GROUP_EDIT_SECONDS)
        assert isinstance(await channel.edit(place(f"{GROUP_ID - 1}"), SentId("1"), "3"), NotSent)
        await clock.advance(GROUP_EDIT_SECONDS)
        assert isinstance(await channel.edit(group, sent.id, "3"), Sent)
        assert GROUP_EDIT_SECONDS * 20 > 60


async def test_a_draft_is_a_preview_and_the_answer_a_message(fake: FakeTelegram) -> None:
    clock = NotingClock()
    async with connected(fake, clock) as channel:
        first, second = await channel.begin(place()), await channel.begin(place())
        assert first is not None
        assert second is not None
        await first.update("Hel")
        await fake.until(lambda: len(fake.drafts) == 1)
        await second.update("other")
        await fake.until(lambda: len(fake.drafts) == 2)
        await first.update("Hell")
        await first.update("Hello " + "😀" * 5_000 + "x")
        await eventually(lambda: clock.naps == [DRAFT_SECONDS] * 2)
        await clock.advance(DRAFT_SECONDS)
        await fake.until(lambda: len(fake.drafts) == 3)
        for stream in (first, second):
            assert not isinstance(await stream.finish("Hello"), Sent), "the caller sends the answer"
    assert [(chat, text) for chat, _, text in fake.drafts[:2]] == [(TELLER, "Hel"), (TELLER, "other")]
    assert fake.drafts[2][2] == "😀" * (channel.limits.text // 2 - 1) + "x"
    numbers = [number for _, number, _ in fake.drafts]
    assert numbers[0] == numbers[2] != numbers[1]
    assert 0 not in numbers
    assert fake.said == []


async def test_a_draft_is_shown_again_before_it_fades(fake: FakeTelegram) -> None:
    clock = NotingClock()
    async with connected(fake, clock) as channel:
        stream = await channel.begin(place())
        assert stream is not None
        await stream.update("let me look")
        await fake.until(lambda: len(fake.drafts) == 1)
        await eventually(lambda: clock.naps == [DRAFT_SECONDS])
        await clock.advance(DRAFT_SECONDS + DRAFT_LIFE_SECONDS)
        await fake.until(lambda: len(fake.drafts) == 2)
        await stream.finish("")
    assert fake.drafts[0] == fake.drafts[1]


async def test_where_there_are_no_drafts_answers_grow_by_edits(fake: FakeTelegram, channel: TelegramChannel) -> None:
    assert await channel.begin(place(GROUP_ID)) is None, "no drafts in groups"
    fake.offers_drafts = False
    stream = await channel.begin(place())
    assert stream is not None
    await stream.update("Hello")
    await fake.until(lambda: fake.count("sendMessageDraft") == 1)

    async def given_up() -> bool:
        return await channel.begin(place()) is None

    await eventually(given_up)
    await stream.finish("Hello")


async def test_a_chat_that_takes_no_drafts_is_asked_once_and_others_keep_theirs(
    fake: FakeTelegram, channel: TelegramChannel
) -> None:
    fake.draftless.add(TELLER)
    stream = await channel.begin(place())
    assert stream is not None
    await stream.update("Hel")

    async def given_up() -> bool:
        return await channel.begin(place()) is None

    await eventually(given_up)
    await stream.update("Hello")
    await stream.finish("Hello")
    assert fake.count("sendMessageDraft") == 1
    other = await channel.begin(place(TELLER + 1))
    assert other is not None
    await other.update("Hello")
    await fake.until(lambda: bool(fake.drafts))
    await other.finish("Hello")


async def test_flood_control_of_drafts_is_obeyed(fake: FakeTelegram) -> None:
    clock = NotingClock()
    async with connected(fake, clock) as channel:
        fake.fail("sendMessageDraft", status=429, description="x", parameters={"retry_after": 9})
        stream = await channel.begin(place())
        assert stream is not None
        await stream.update("Hel")
        await fake.until(lambda: fake.count("sendMessageDraft") == 1)
        await stream.update("Hello")
        await eventually(lambda: clock.naps == [9.0])
        await clock.advance(8.9)
        assert fake.count("sendMessageDraft") == 1
        await clock.advance(0.1)
        await fake.until(lambda: bool(fake.drafts))
        assert fake.drafts[0][2] == "Hello"
        await stream.finish("Hello")


@pytest.mark.parametrize("text", [" \n", "x" + " " * 5_000])
async def test_a_blank_draft_is_not_sent(fake: FakeTelegram, channel: TelegramChannel, text: str) -> None:
    stream = await channel.begin(place())
    assert stream is not None
    await stream.update(text)
    await channel.typing(place())  # by the end of this call a draft would be there too
    await stream.update("Hello")
    await fake.until(lambda: bool(fake.drafts))
    await stream.finish("Hello")
    assert [shown for _, _, shown in fake.drafts] == ["Hello"]


@pytest.mark.parametrize("how", [{"status": 502}, {"drop": True}])
async def test_a_lost_draft_is_no_reason_to_give_drafts_up(
    fake: FakeTelegram, channel: TelegramChannel, how: How
) -> None:
    fake.fail("sendMessageDraft", **how)
    stream = await channel.begin(place())
    assert stream is not None
    await stream.update("Hello")
    await fake.until(lambda: fake.count("sendMessageDraft") == 1)
    await stream.update("Hello there")
    await fake.until(lambda: bool(fake.drafts))
    assert await channel.begin(place()) is not None
    await stream.finish("Hello there")


async def test_typing_never_fails(fake: FakeTelegram, channel: TelegramChannel) -> None:
    await channel.typing(place(f"{GROUP_ID}/9"))
    (call,) = [call for call in fake.calls if call.method == "sendchataction"]
    assert (call.params["action"], call.params["message_thread_id"]) == ("typing", "9")
    fake.fail("sendChatAction", drop=True)
    await channel.typing(place())


# -- menus and files ---------------------------------------------------------------------------------------------------


async def test_the_menu_is_published_per_language_and_the_first_for_everybody(
    fake: FakeTelegram, channel: TelegramChannel
) -> None:
    await channel.publish({"zh": (MenuEntry("help", "帮助"),), "en": (MenuEntry("help", "Show this help"),)})
    shown = {language: [(row["command"], row["description"]) for row in menu] for language, menu in fake.menus.items()}
    assert shown == {None: [("help", "帮助")], "zh": [("help", "帮助")], "en": [("help", "Show this help")]}


async def test_a_refused_menu_is_no_fault(fake: FakeTelegram, channel: TelegramChannel) -> None:
    fake.fail("setMyCommands", status=400, description="Bad Request: BOT_COMMAND_INVALID", times=None)
    await channel.publish({"en": (MenuEntry("help", "Show this help"),)})
    assert fake.menus == {}


def file(handle: str) -> InboundAttachment:
    return InboundAttachment(AttachmentKind.FILE, handle)


async def test_a_file_is_fetched_within_its_limit(fake: FakeTelegram, channel: TelegramChannel) -> None:
    data = bytes(range(256)) * 1_000
    fake.files["f"] = ("documents/file_1.bin", data)
    assert await channel.fetch(file("f"), len(data)) == data
    with pytest.raises(OSError, match="more than"):
        await channel.fetch(file("f"), len(data) - 1)


async def test_a_path_on_this_machine_is_not_read(fake: FakeTelegram, channel: TelegramChannel, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"of this machine")
    fake.files["f"] = (str(secret), b"of this machine")
    with pytest.raises(OSError, match="elsewhere"):
        await channel.fetch(file("f"), 100)


async def test_whatever_a_path_says_only_the_platform_is_asked(fake: FakeTelegram, channel: TelegramChannel) -> None:
    fake.files["f"] = ("https://elsewhere.example/x", b"from the platform")
    assert await channel.fetch(file("f"), 100) == b"from the platform"


async def test_a_file_that_is_gone_is_told_without_the_token(fake: FakeTelegram, channel: TelegramChannel) -> None:
    with pytest.raises(OSError, match="BadRequest"):
        await channel.fetch(file("gone"), 10)
    await fake.__aexit__(None)
    with pytest.raises(OSError, match="NetworkError") as caught:
        await channel.fetch(file("f"), 10)
    assert fake.token not in repr(caught.value)

"""Slack's way out, with the real SDK on a real socket: every outcome, edits, slash commands, files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from bridges.delivery import Delivery, End
from bridges.message import (
    AttachmentKind,
    EditsMessages,
    FetchesAttachments,
    InboundAttachment,
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
from bridges.text.slack import EDIT_SECONDS, EditQueue, SlackChannel
from bridges.text.slack_api import LOOKUP_SECONDS, UNNAMED_WAIT, UNREACHED_SECONDS, SlackApi
from tests.channels.around import RecordingInbox
from tests.channels.slack import channel_at, connected, place, running
from tests.fakes.clock import FakeClock
from tests.fakes.slack import CHANNEL, TELLER, FakeSlack, How, direct


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as made:
        yield made


@pytest.fixture
async def channel(fake: FakeSlack) -> AsyncIterator[SlackChannel]:
    async with connected(fake) as made:
        yield made


def test_what_the_channel_can_do(channel: SlackChannel) -> None:
    capabilities = (EditsMessages, FetchesAttachments, StreamsAnswers, ShowsTyping, PublishesCommands)
    has = [capability for capability in capabilities if isinstance(channel, capability)]
    assert has == [EditsMessages, FetchesAttachments], "a bot token of Slack's has nothing like the others"


async def test_a_message_is_plain_text_with_nothing_live_in_it(fake: FakeSlack, channel: SlackChannel) -> None:
    outcome = await channel.send(place(), "*not bold* <!channel> <@U1> & https://example.org @here")
    (said,) = fake.said
    assert outcome == Sent(SentId(said.ts))
    assert (said.channel, said.thread) == (direct(), None)
    assert said.texts == ["*not bold* &lt;!channel&gt; &lt;@U1&gt; &amp; https://example.org @here"]
    wanted = {"mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "parse": "none", "link_names": False}
    assert {key: said.params[key] for key in wanted} == wanted


async def test_a_thread_is_answered_in_the_thread(fake: FakeSlack, channel: SlackChannel) -> None:
    await channel.send(place(f"{CHANNEL}/1.000001"), "hello")
    assert (fake.said[0].channel, fake.said[0].thread) == (CHANNEL, "1.000001")


OUTCOMES: list[tuple[How, SendOutcome]] = [
    ({"error": "ratelimited", "status": 429, "headers": {"Retry-After": "12"}}, RetryAfter(12.0)),
    ({"status": 429, "headers": {"Retry-After": "12"}}, RetryAfter(12.0)),
    ({"error": "rate_limited"}, RetryAfter(UNNAMED_WAIT)),
    ({"status": 429, "headers": {"Retry-After": "soon"}}, RetryAfter(UNNAMED_WAIT)),
    ({"error": "channel_not_found"}, NotSent.BLOCKED),
    ({"error": "not_in_channel"}, NotSent.BLOCKED),
    ({"error": "is_archived"}, NotSent.BLOCKED),
    ({"error": "user_disabled"}, NotSent.BLOCKED),
    ({"error": "messages_tab_disabled"}, NotSent.BLOCKED),
    ({"error": "invalid_auth"}, NotSent.REAUTHENTICATE),
    ({"error": "token_revoked"}, NotSent.REAUTHENTICATE),
    ({"error": "token_expired"}, NotSent.REAUTHENTICATE),
    ({"error": "account_inactive"}, NotSent.REAUTHENTICATE),
    ({"error": "msg_too_long"}, NotSent.TOO_LONG),
    ({"error": "invalid_arguments"}, NotSent.REJECTED),
    ({"error": "a_word_of_next_year"}, NotSent.REJECTED),
    ({"error": "internal_error"}, NotSent.UNKNOWN),
    ({"error": "fatal_error", "status": 500}, NotSent.UNKNOWN),
    ({"status": 503}, NotSent.UNKNOWN),
    ({"page": "<html>Welcome</html>", "effect": True}, NotSent.UNKNOWN),
    ({"page": "[]", "effect": True}, NotSent.UNKNOWN),
    ({"page": '{"ok": tr', "effect": True}, NotSent.UNKNOWN),
    ({"page": '{"ok": true}', "effect": True}, Sent(None)),
    ({"drop": True}, NotSent.UNKNOWN),
    ({"drop": True, "effect": True}, NotSent.UNKNOWN),
]


@pytest.mark.parametrize(("how", "outcome"), OUTCOMES, ids=str)
async def test_outcomes_of_a_send(fake: FakeSlack, channel: SlackChannel, how: How, outcome: SendOutcome) -> None:
    fake.fail("chat.postMessage", **how)
    assert await channel.send(place(), "hello") == outcome
    assert fake.count("chat.postMessage") == 1, "the channel itself repeats nothing"
    assert len(fake.said) == bool(how.get("effect"))


async def test_a_server_that_is_not_there_got_nothing(fake: FakeSlack) -> None:
    async with FakeSlack() as gone:
        channel = channel_at(gone)
        async with running(channel, RecordingInbox()):
            pass
    assert await channel.send(place(), "hello") == RetryAfter(UNREACHED_SECONDS)
    await channel.close()
    assert await channel.send(place(), "hello") is NotSent.REJECTED


async def test_an_answer_that_never_comes_leaves_it_open(
    fake: FakeSlack, channel: SlackChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = channel._api
    assert api is not None
    monkeypatch.setattr(api._client, "timeout", 0.05)
    fake.fail("chat.postMessage", hold=asyncio.Event(), effect=True)
    assert await channel.send(place(), "hello") is NotSent.UNKNOWN


async def test_an_ambiguous_segment_is_not_sent_twice_and_ends_the_reply(
    fake: FakeSlack, channel: SlackChannel
) -> None:
    fake.fail("chat.postMessage", drop=True, effect=True)
    clock = FakeClock()
    delivery = Delivery(channel, split_lossless, clock=clock)
    report = await delivery.deliver(place(), ("one", "two"))
    assert report.end is End.UNKNOWN
    assert fake.texts(direct()) == ["one"]
    await clock.advance(channel.limits.gap)
    await delivery.close(0)


async def test_a_cancelled_send_leaves_nothing_open(fake: FakeSlack, channel: SlackChannel) -> None:
    fake.fail("chat.postMessage", hold=asyncio.Event())
    sending = asyncio.create_task(channel.send(place(), "hello"))
    await fake.until(lambda: fake.count("chat.postMessage") == 1)
    sending.cancel()
    await asyncio.wait({sending})
    assert sending.cancelled()
    assert isinstance(await channel.send(place(), "again"), Sent)


# -- edits -------------------------------------------------------------------------------------------------------------


async def test_an_answer_grows_by_edits(fake: FakeSlack, channel: SlackChannel) -> None:
    sent = await channel.send(place(), "Hel")
    assert isinstance(sent, Sent)
    assert sent.id is not None
    assert await channel.edit(place(), sent.id, "Hello <you>") == sent
    assert fake.said[0].texts == ["Hel", "Hello &lt;you&gt;"]


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        (How(error="message_not_found"), NotSent.REJECTED),
        (How(error="edit_window_closed"), NotSent.WINDOW_CLOSED),
        (How(error="msg_too_long"), NotSent.TOO_LONG),
        (How(error="ratelimited", status=429, headers={"Retry-After": "3"}), RetryAfter(3.0)),
    ],
    ids=str,
)
async def test_outcomes_of_an_edit(fake: FakeSlack, channel: SlackChannel, how: How, outcome: SendOutcome) -> None:
    fake.fail("chat.update", **how)
    assert await channel.edit(place(), SentId("1.000001"), "hello") == outcome


async def test_what_fits_the_limit_can_be_edited_when_a_tenth_of_it_grows_by_escaping(
    fake: FakeSlack, channel: SlackChannel
) -> None:
    text = "abcdefghi<" * (channel.limits.text // 10)
    sent = await channel.send(place(), "…")
    assert isinstance(sent, Sent)
    assert sent.id is not None
    assert isinstance(await channel.edit(place(), sent.id, text), Sent)


async def test_edits_of_all_answers_together_keep_the_pace_and_every_turn_comes() -> None:
    clock = FakeClock()
    queue = EditQueue(clock)
    messages = [SentId(str(number)) for number in range(3)]
    assert [round(queue.wait(each), 3) for each in messages] == [0, EDIT_SECONDS, 2 * EDIT_SECONDS]
    await clock.advance(EDIT_SECONDS)
    assert queue.wait(messages[0]) == pytest.approx(2 * EDIT_SECONDS), "it had its turn"
    assert queue.wait(messages[1]) == 0
    await clock.advance(EDIT_SECONDS)
    assert queue.wait(messages[2]) == 0


async def test_the_last_edit_waits_its_turn_and_is_not_given_up(fake: FakeSlack) -> None:
    clock = FakeClock()
    async with connected(fake, clock) as channel:
        sent = await channel.send(place(), "Hel")
        assert isinstance(sent, Sent)
        assert sent.id is not None
        assert await channel.edit(place(), sent.id, "Hello") == sent
        sleepers = clock.sleepers
        last = asyncio.create_task(channel.edit(place(), sent.id, "Hello you"))
        await clock.sleeping(sleepers + 1)
        assert fake.said[0].texts[-1] == "Hello"
        await clock.advance(EDIT_SECONDS)
        assert await last == sent
        assert fake.said[0].texts[-1] == "Hello you"


async def test_when_the_queue_is_long_the_caller_comes_again(fake: FakeSlack) -> None:
    clock = FakeClock()
    async with connected(fake, clock) as channel:
        waiting = [asyncio.create_task(channel.edit(place(), SentId(f"1.{number}"), "x")) for number in range(5)]
        await clock.sleeping(len(waiting))
        wait = await channel.edit(place(), SentId("1.9"), "x")
        assert isinstance(wait, RetryAfter)
        assert wait.seconds == pytest.approx(5 * EDIT_SECONDS)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)


# -- slash commands ----------------------------------------------------------------------------------------------------


async def test_a_command_picked_in_the_bots_chat_is_answered_there(fake: FakeSlack) -> None:
    inbox = RecordingInbox()
    channel = channel_at(fake)
    async with running(channel, inbox):
        for _ in range(2):
            await fake.taken(await fake.pick("/history", "4"))
        message = inbox.messages[0]
        assert (message.text, message.kind) == ("/history 4", "direct")
        assert isinstance(await channel.send(message.reply_to, "the past"), Sent)
    assert fake.texts(direct()) == ["the past"]
    assert fake.said[0].only_for is None
    assert fake.count("conversations.info") == 1, "asked once"


async def test_the_chat_of_two_other_people_is_not_the_bots(fake: FakeSlack) -> None:
    fake.strangers_chats.add("D0OTHERS")
    inbox = RecordingInbox()
    channel = channel_at(fake)
    async with running(channel, inbox):
        await fake.taken(await fake.pick("/history", channel="D0OTHERS"))
        message = inbox.messages[0]
        assert message.kind == "group"
        assert await channel.send(message.reply_to, "not here") == Sent(None)
    assert [(said.texts, said.only_for) for said in fake.said] == [(["not here"], TELLER)]


async def test_when_nobody_can_say_whose_chat_it_is_it_is_a_group(fake: FakeSlack) -> None:
    fake.fail("conversations.info", error="missing_scope")
    inbox = RecordingInbox()
    async with running(channel_at(fake), inbox):
        await fake.taken(await fake.pick("/history"))
        await fake.taken(await fake.pick("/history"))
    assert [message.kind for message in inbox.messages] == ["group", "direct"]


@pytest.mark.parametrize(
    "how", [How(hold=asyncio.Event()), How(status=200, page='{"ok": true, "channel": []}')], ids=str
)
async def test_a_question_whose_chat_it_is_holds_up_no_acknowledgement(
    fake: FakeSlack, monkeypatch: pytest.MonkeyPatch, how: How
) -> None:
    inbox, channel = RecordingInbox(), channel_at(fake)
    async with running(channel, inbox):
        api = channel._api
        assert api is not None
        assert api._lookups.timeout == LOOKUP_SECONDS <= 2, "Slack waits 3 seconds"
        monkeypatch.setattr(api._lookups, "timeout", 0.05)
        fake.fail("conversations.info", **how)
        await fake.taken(await fake.pick("/history"))
    assert [message.kind for message in inbox.messages] == ["group"]


async def test_a_chat_that_was_written_in_needs_no_question(fake: FakeSlack) -> None:
    inbox = RecordingInbox()
    async with running(channel_at(fake), inbox):
        await fake.say("hello")
        await fake.taken(await fake.pick("/history"))
    assert inbox.messages[1].kind == "direct"
    assert inbox.messages[1].chat == inbox.messages[0].chat
    assert fake.count("conversations.info") == 0


async def test_a_command_picked_in_a_channel_is_answered_to_its_sender_alone(fake: FakeSlack) -> None:
    inbox = RecordingInbox()
    channel = channel_at(fake)
    async with running(channel, inbox):
        await fake.taken(await fake.pick("/help", channel=CHANNEL, name="general"))
        target = inbox.messages[0].reply_to
        outcomes = [await channel.send(target, f"<{number}>") for number in range(6)]
    assert outcomes == [Sent(None)] * 5 + [NotSent.WINDOW_CLOSED]
    assert {said.only_for for said in fake.said} == {TELLER}
    assert fake.said[0].texts == ["&lt;0&gt;"]
    assert fake.count("conversations.info") == 0, "a channel is no private chat, whoever is in it"


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        (How(status=429, headers={"Retry-After": "5"}), RetryAfter(5.0)),
        (How(status=500), NotSent.UNKNOWN),
        (How(drop=True), NotSent.UNKNOWN),
    ],
    ids=str,
)
async def test_outcomes_at_a_commands_own_address(fake: FakeSlack, how: How, outcome: SendOutcome) -> None:
    inbox = RecordingInbox()
    channel = channel_at(fake)
    async with running(channel, inbox):
        await fake.taken(await fake.pick("/help", channel=CHANNEL, name="general"))
        fake.fail("respond", **how)
        assert await channel.send(inbox.messages[0].reply_to, "hello") == outcome


async def test_a_command_of_another_version_is_acknowledged_and_runs_nothing(fake: FakeSlack) -> None:
    inbox = RecordingInbox()
    async with running(channel_at(fake), inbox):
        await fake.taken(await fake.pick("/forgotten", "words"))
    assert inbox.messages == []


# -- files -------------------------------------------------------------------------------------------------------------


async def test_a_file_is_fetched_with_the_bots_token(fake: FakeSlack, channel: SlackChannel) -> None:
    fake.files["notes"] = ("text/plain", b"content")
    assert await channel.fetch(file(fake, "notes"), 7) == b"content"
    with pytest.raises(OSError, match="more than 6 bytes"):
        await channel.fetch(file(fake, "notes"), 6)


async def test_a_sign_in_page_is_no_file(fake: FakeSlack, channel: SlackChannel) -> None:
    fake.files["notes"] = ("text/html; charset=utf-8", b"<html>Sign in</html>")
    with pytest.raises(OSError, match="page in its place"):
        await channel.fetch(file(fake, "notes"), 100)


@pytest.mark.parametrize(
    "address", ["http://files.slack.com/f", "https://files.slack.com.example.org/f", "file:///f", ""]
)
async def test_token_and_replies_go_to_slack_only(address: str) -> None:
    api = SlackApi("xoxb-fake", None, FakeClock())
    with pytest.raises(OSError, match="elsewhere"):
        await api.fetch(address, 100)
    assert await api.respond(address, "the past") is NotSent.REJECTED, "nor does a reply go elsewhere"


def file(fake: FakeSlack, name: str) -> InboundAttachment:
    return InboundAttachment(AttachmentKind.FILE, f"http://{urlsplit(fake.api).netloc}/files/{name}")

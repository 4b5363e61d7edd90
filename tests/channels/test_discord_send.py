"""Discord's way out, with the real SDK on a real socket: every outcome, threads, edits, files."""

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
    NotSent,
    PublishesCommands,
    RetryAfter,
    SendOutcome,
    Sent,
    SentId,
    ShowsTyping,
)
from bridges.split import split_lossless
from bridges.text.discord import DiscordChannel
from bridges.text.discord_calls import ATTEMPT_SECONDS, BANNED_SECONDS, UNREACHED_SECONDS
from bridges.text.discord_threads import REMEMBERED, OwnThreads
from i18n import Language
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.channels.discord import HOME, channel_at, connected, pass_pause, place, running
from tests.contract.desk import desk_at
from tests.contract.rows.discord import DiscordPlatform
from tests.fakes.clock import FakeClock
from tests.fakes.discord import GENERAL, ME, TELLER, FakeDiscord, How
from tests.fakes.discord.payloads import thread
from tests.fakes.harness import FakeHarness

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
SEND = r"POST /channels/\d+/messages$"
OPEN = "/threads$"


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


@pytest.fixture
async def channel(fake: FakeDiscord, inbox: RecordingInbox) -> AsyncIterator[DiscordChannel]:
    async with connected(fake, inbox=inbox) as made:
        yield made


def test_what_the_channel_can_do(channel: DiscordChannel) -> None:
    for capability in (EditsMessages, ShowsTyping, FetchesAttachments, PublishesCommands):
        assert isinstance(channel, capability)


async def test_a_message_notifies_nobody_and_shows_no_preview(fake: FakeDiscord, channel: DiscordChannel) -> None:
    text = f"@everyone <@{TELLER}> https://example.org"
    outcome = await channel.send(place(), text)
    (said,) = fake.said
    assert outcome == Sent(SentId(str(said.id)))
    assert (said.channel, said.texts) == (HOME, [text])
    assert said.params["allowed_mentions"] == {"parse": []}
    assert said.params["flags"] == 1 << 2, "no previews"
    assert said.params["enforce_nonce"] is True
    assert len(str(said.params["nonce"])) <= 25


async def test_its_own_message_comes_back_and_is_none(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    await channel.send(place(), "mine")
    await fake.deliver(fake.write.message("yours"))
    await inbox.heard(1)
    assert [message.text for message in inbox.messages] == ["yours"]


OUTCOMES: list[tuple[How, SendOutcome]] = [
    ({"status": 403, "code": 50007}, NotSent.BLOCKED),
    ({"status": 403, "code": 50013}, NotSent.BLOCKED),
    ({"status": 403, "code": 50001}, NotSent.BLOCKED),
    ({"status": 403, "code": 0}, NotSent.BLOCKED),
    ({"status": 404, "code": 10003}, NotSent.BLOCKED),
    ({"status": 400, "code": 50083}, NotSent.BLOCKED),
    ({"status": 400, "code": 160005}, NotSent.BLOCKED),
    ({"status": 400, "code": 50035}, NotSent.TOO_LONG),
    ({"status": 413, "code": 40005}, NotSent.TOO_LONG),
    ({"status": 400, "code": 20009}, NotSent.REJECTED),
    ({"status": 401, "code": 0}, NotSent.REAUTHENTICATE),
    ({"status": 429, "headers": {"Via": "1.1 google"}, "body": {"retry_after": 99.0}}, RetryAfter(99.0)),
    ({"status": 429}, RetryAfter(BANNED_SECONDS)),
]


@pytest.mark.parametrize(("how", "outcome"), OUTCOMES)
async def test_how_a_send_can_be_refused(
    fake: FakeDiscord, channel: DiscordChannel, how: How, outcome: SendOutcome
) -> None:
    fake.fail(SEND, **how)
    assert await channel.send(place(), "hi") == outcome
    assert fake.said == []
    assert fake.count(SEND) == 1


async def test_a_short_rate_limit_is_waited_out(fake: FakeDiscord, channel: DiscordChannel) -> None:
    fake.fail(SEND, status=429, headers={"Via": "1.1 google"}, body={"retry_after": 0.05})
    assert isinstance(await channel.send(place(), "hi"), Sent)


async def test_many_sends_at_once_keep_the_stated_limit_and_their_order(
    fake: FakeDiscord, channel: DiscordChannel
) -> None:
    fake.limits.set(5, 0.2)
    await asyncio.gather(*(channel.send(place(), str(number)) for number in range(8)))
    assert fake.texts(HOME) == [str(number) for number in range(8)]
    assert fake.limits.enforced == 0


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize("how", [{"drop": True}, {"status": 503}])
async def test_a_send_whose_answer_was_lost_is_repeated_and_arrives_once(
    fake: FakeDiscord, how: How, effect: bool
) -> None:
    clock = FakeClock()
    async with connected(fake, clock) as channel:
        fake.fail(SEND, effect=effect, **how)  # type: ignore[misc]  # the rows above do not say effect
        sending = asyncio.create_task(channel.send(place(), "hi"))
        await pass_pause(clock, sending)
        outcome = await sending
        (said,) = fake.said
        assert outcome == Sent(SentId(str(said.id)))
        assert fake.count(SEND) == 2


async def test_a_send_that_stays_unanswered_is_given_up(fake: FakeDiscord) -> None:
    clock = FakeClock()
    hold = asyncio.Event()
    async with connected(fake, clock) as channel:
        fake.fail(SEND, hold=hold, times=None)
        sending = asyncio.create_task(channel.send(place(), "hi"))
        for number in (1, 2):
            await fake.until(lambda: fake.count(SEND) == number)  # noqa: B023 - awaited before the next round
            await eventually(lambda: clock.sleepers == 2)
            await clock.advance(ATTEMPT_SECONDS)
            await eventually(lambda: clock.sleepers == 2 or sending.done())
            await clock.advance(1)
        assert await sending is NotSent.UNKNOWN
        hold.set()


async def test_a_server_that_is_not_there_got_nothing_and_may_be_tried_again() -> None:
    async with FakeDiscord() as fake, connected(fake) as channel:
        await fake.__aexit__(None)
        assert await channel.send(place(), "hi") == RetryAfter(UNREACHED_SECONDS)


async def test_the_delivery_sends_in_order_and_ends_at_a_refusal(fake: FakeDiscord, channel: DiscordChannel) -> None:
    delivery = Delivery(channel, split_lossless)
    fake.fail(SEND, status=403, code=50007, after=2)
    report = await delivery.deliver(place(), ["one", "two", "three", "four"])
    assert report.end is End.BLOCKED
    assert fake.texts(HOME) == ["one", "two"]
    await delivery.close(0)


async def test_limits_are_within_those_of_the_platform(fake: FakeDiscord, channel: DiscordChannel) -> None:
    assert isinstance(await channel.send(place(), "x" * channel.limits.text), Sent)
    assert await channel.send(place(), "x" * channel.limits.text + "x") is NotSent.TOO_LONG
    assert isinstance(await channel.send(place(), "😀" * (channel.limits.text // 2)), Sent)


async def test_a_cancelled_send_leaves_the_channel_usable(fake: FakeDiscord, channel: DiscordChannel) -> None:
    hold = asyncio.Event()
    fake.fail(SEND, hold=hold)
    sending = asyncio.create_task(channel.send(place(), "hi"))
    await fake.until(lambda: fake.count(SEND) == 1)
    sending.cancel()
    await asyncio.wait({sending})
    assert isinstance(await channel.send(place(), "again"), Sent)
    hold.set()


async def test_a_channel_sends_between_two_runs_and_not_before_the_first_or_after_the_last(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    channel = channel_at(fake)
    assert await channel.send(place(), "too early") is NotSent.REJECTED
    async with running(channel, inbox):
        await fake.gateway.close(4003)
        await fake.until(lambda: not fake.gateway.links)
    assert isinstance(await channel.send(place(), "between"), Sent)
    await channel.close()
    assert await channel.send(place(), "too late") is NotSent.REJECTED
    assert await channel.edit(place(), SentId("1"), "too late") is NotSent.REJECTED
    await channel.typing(place())
    await channel.publish({})
    assert fake.texts(HOME) == ["between"]


async def test_typing_never_fails(fake: FakeDiscord, channel: DiscordChannel) -> None:
    await channel.typing(place())
    assert fake.count(f"POST /channels/{HOME}/typing") == 1
    fake.fail("/typing", drop=True)
    await channel.typing(place())
    assert fake.count("/typing") == 2


async def test_an_edit_replaces_the_text(fake: FakeDiscord, channel: DiscordChannel) -> None:
    sent = await channel.send(place(), "Hel")
    assert isinstance(sent, Sent)
    assert sent.id is not None
    for text in ("Hello", "Hello"):
        assert await channel.edit(place(), sent.id, text) == sent
    assert fake.said[0].texts == ["Hel", "Hello", "Hello"]
    (edit, _) = [call for call in fake.calls if call.name.startswith("PATCH ")]
    assert edit.params["allowed_mentions"] == {"parse": []}
    assert await channel.edit(place(), SentId("9999"), "x") is NotSent.REJECTED


# -- threads -----------------------------------------------------------------------------------------------------------


async def asked(fake: FakeDiscord, inbox: RecordingInbox, text: str = "hello") -> int:
    """Let somebody mention the bot in a text channel; return the message's id."""
    message = fake.write.message(f"<@{ME}> {text}", where=GENERAL)
    await fake.deliver(message)
    await inbox.until(lambda: bool(inbox.messages) and inbox.messages[-1].id == message["id"])
    return int(str(message["id"]))


async def test_the_first_reply_opens_a_thread_and_all_go_there(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    at = await asked(fake, inbox, "fix the login\nplease")
    target = inbox.messages[-1].reply_to
    await channel.typing(target)
    sent = await channel.send(target, "one")
    assert isinstance(sent, Sent)
    assert sent.id is not None
    await channel.send(target, "two")
    await channel.edit(target, sent.id, "first")
    assert fake.texts(at) == ["first", "two"]
    assert fake.texts(GENERAL) == []
    assert fake.count(OPEN) == 1
    assert fake.threads[at]["name"] == "fix the login"
    assert fake.count(f"POST /channels/{at}/typing") == 1


async def test_in_a_thread_of_ours_nobody_needs_to_name_us(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    at = await asked(fake, inbox)
    first = inbox.messages[-1]
    await channel.send(first.reply_to, "hi")
    await fake.deliver(fake.write.message("and then?", where=at))
    second = (await inbox.heard(2))[-1]
    assert (second.addressed, second.chat) == (True, first.chat)
    await channel.send(second.reply_to, "then this")
    assert fake.texts(at) == ["hi", "then this"]
    assert fake.count(OPEN) == 1


@pytest.mark.parametrize("text", ["", "\n\n", "x" * 500, "👨‍👩‍👧" * 100])
async def test_a_thread_always_has_a_name_the_platform_takes(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, text: str
) -> None:
    at = await asked(fake, inbox, text)
    await channel.send(inbox.messages[-1].reply_to, "hi")
    assert fake.texts(at) == ["hi"]
    assert fake.threads[at]["name"]


async def test_a_thread_whose_opening_was_not_answered_is_still_ours(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    async with connected(fake, clock, inbox=inbox) as channel:
        at = await asked(fake, inbox)
        fake.fail(OPEN, drop=True, effect=True)
        sending = asyncio.create_task(channel.send(inbox.messages[-1].reply_to, "hi"))
        await pass_pause(clock, sending)
        assert isinstance(await sending, Sent)
        assert fake.texts(at) == ["hi"]
        assert at in opened(channel)


async def test_a_thread_that_a_person_opened_first_is_used_and_stays_theirs(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    at = await asked(fake, inbox)
    fake.threads[at] = thread(at, owner=TELLER)
    await channel.send(inbox.messages[-1].reply_to, "hi")
    assert fake.texts(at) == ["hi"]
    assert at not in opened(channel)


@pytest.mark.parametrize("code", [50013, 160006, 10008])
async def test_where_no_thread_can_be_opened_the_channel_hears_it(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, code: int
) -> None:
    await asked(fake, inbox)
    fake.fail(OPEN, status=403, code=code, times=None)
    for text in ("one", "two"):
        assert isinstance(await channel.send(inbox.messages[-1].reply_to, text), Sent)
    assert fake.texts(GENERAL) == ["one", "two"]
    assert fake.count(OPEN) == 1


async def test_a_thread_that_can_be_opened_later_is_not_given_up(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    at = await asked(fake, inbox)
    fake.fail(OPEN, status=429, headers={"Via": "1.1 google"}, body={"retry_after": 40.0})
    assert await channel.send(inbox.messages[-1].reply_to, "hi") == RetryAfter(40.0)
    assert isinstance(await channel.send(inbox.messages[-1].reply_to, "hi"), Sent)
    assert fake.texts(at) == ["hi"]


def opened(channel: DiscordChannel) -> OwnThreads:
    assert channel._api is not None
    return channel._api.threads


async def test_so_many_threads_are_remembered_and_a_full_disk_forgets_none() -> None:
    cursors = MemoryCursors()
    threads = OwnThreads(cursors)
    for number in range(REMEMBERED + 5):
        await threads.add(number)
    cursors.full = True
    await threads.add(REMEMBERED + 5)
    assert REMEMBERED + 5 in threads
    again = OwnThreads(cursors)
    await again.load()
    assert [number in again for number in (4, 5, REMEMBERED + 4, REMEMBERED + 5)] == [False, True, True, False]


# -- files -------------------------------------------------------------------------------------------------------------


async def test_an_image_reaches_the_model(tmp_path: Path) -> None:
    async with (
        FakeDiscord() as fake,
        FakeHarness() as host,
        desk_at(host, DiscordPlatform(fake), tmp_path, Language.EN) as desk,
    ):
        host.world.image_models.add(host.dialect.model)
        fake.attachments["a.png"] = PNG
        url = f"{fake.files}a.png"
        shown = {"id": "5", "filename": "a.png", "size": len(PNG), "url": url, "proxy_url": url}
        await fake.deliver(fake.write.message("what is it?", attachments=[shown | {"content_type": "image/png"}]))
        await fake.until(lambda: fake.texts(HOME) == ["You said: what is it?"])
        await desk.settled()
        assert "image/png" in str([list(session.log) for session in host.world.sessions.values()])


def file(url: str) -> InboundAttachment:
    return InboundAttachment(AttachmentKind.FILE, url)


async def test_a_file_is_fetched_within_its_limit(fake: FakeDiscord, channel: DiscordChannel) -> None:
    data = bytes(range(256)) * 1_000
    fake.attachments["a.bin"] = data
    assert await channel.fetch(file(f"{fake.files}a.bin"), len(data)) == data
    with pytest.raises(OSError, match="not fetched"):
        await channel.fetch(file(f"{fake.files}a.bin"), len(data) - 1)
    with pytest.raises(OSError, match="404"):
        await channel.fetch(file(f"{fake.files}gone"), 100)


@pytest.mark.parametrize(
    "url", ["https://evil.example/x", "https://cdn.discordapp.com.evil.example/x", "http://cdn.discordapp.com/x", ""]
)
async def test_nothing_is_fetched_from_elsewhere(fake: FakeDiscord, url: str) -> None:
    channel = DiscordChannel("ops", token="t", api=None, gateway=None, cursors=MemoryCursors(), clock=FakeClock())
    with pytest.raises(OSError, match="UntrustedHost"):
        await channel.fetch(file(url), 10)

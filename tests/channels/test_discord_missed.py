"""What people write while Discord has no session of ours: read later, in order, once, and within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.message import Acceptance
from bridges.text import discord_gateway
from bridges.text.discord_missed import CATCH_UP_SECONDS, MOST
from bridges.text.discord_seen import REMEMBERED, Seen
from harness_client.clock import SYSTEM_CLOCK, Clock
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.channels.discord import HOME, channel_at, place, running
from tests.fakes.clock import FakeClock
from tests.fakes.discord import GENERAL, ME, TELLER, FakeDiscord, dm

OTHER = TELLER + 1


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


def texts(inbox: RecordingInbox) -> list[str]:
    return [message.text for message in inbox.messages]


class Bot:
    """One bot, whose processes come and go."""

    def __init__(self, fake: FakeDiscord, inbox: RecordingInbox, clock: Clock = SYSTEM_CLOCK) -> None:
        self.fake = fake
        self.inbox = inbox
        self.clock = clock
        self.cursors = MemoryCursors()

    async def hears(self, *texts: str, where: int | None = None, sender: int = TELLER) -> None:
        """Run one process until it took what is written now."""
        channel = channel_at(self.fake, self.clock, cursors=self.cursors)
        before = len(self.inbox.messages)
        async with running(channel, self.inbox):
            await self.writes(*texts, where=where, sender=sender)
            await self.inbox.heard(before + len(texts))
            await eventually(lambda: not channel._waiting)
        await channel.close()
        self.fake.gateway.sessions.clear()

    async def catches_up(self, count: int) -> None:
        """Run one process until so many messages were taken in all."""
        channel = channel_at(self.fake, self.clock, cursors=self.cursors)
        async with running(channel, self.inbox):
            await self.inbox.heard(count)
            await eventually(lambda: not channel._waiting)
        await channel.close()
        self.fake.gateway.sessions.clear()

    async def writes(self, *texts: str, where: int | None = None, sender: int = TELLER) -> None:
        await self.fake.deliver(*(self.fake.write.message(text, where=where, sender=sender) for text in texts))


@pytest.fixture
def bot(fake: FakeDiscord, inbox: RecordingInbox) -> Bot:
    return Bot(fake, inbox)


async def test_what_was_written_while_the_program_was_away_is_taken_by_the_next_one(
    bot: Bot, inbox: RecordingInbox
) -> None:
    await bot.hears("before")
    await bot.writes("one", "two")
    await bot.catches_up(3)
    assert texts(inbox) == ["before", "one", "two"]
    assert {message.chat.chat for message in inbox.messages} == {str(HOME)}
    await bot.hears("after")
    assert texts(inbox) == ["before", "one", "two", "after"], "nothing is taken twice"


async def test_an_ended_session_loses_nothing_and_keeps_the_order(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    bot = Bot(fake, inbox, clock)
    hold = asyncio.Event()
    async with running(channel, inbox):
        await bot.writes("before")
        await inbox.heard(1)
        await eventually(lambda: bool(channel._seen))
        await fake.gateway.say(9, False)
        await bot.writes("meanwhile")
        fake.fail(f"GET /channels/{HOME}$", hold=hold)
        await eventually(lambda: clock.sleepers == 2)
        await clock.advance(5)
        await fake.until(lambda: fake.count(f"GET /channels/{HOME}$") == 1)
        await bot.writes("after")
        await fake.gateway.taken()
        assert texts(inbox) == ["before"], "what is new waits for what is older"
        hold.set()
        await inbox.heard(3)
    assert texts(inbox) == ["before", "meanwhile", "after"]
    await channel.close()


async def test_a_mention_in_a_channel_and_what_is_said_in_a_thread_of_ours_are_read_too(
    fake: FakeDiscord, bot: Bot, inbox: RecordingInbox
) -> None:
    await bot.hears(f"<@{ME}> hello", where=GENERAL)
    (first,) = inbox.messages
    channel = channel_at(fake, cursors=bot.cursors)
    async with running(channel, RecordingInbox()):
        await channel.send(first.reply_to, "in a thread")
    await channel.close()
    thread = int(first.chat.chat)
    await bot.writes("not for the bot", where=GENERAL)
    await bot.writes(f"<@{ME}> again", where=GENERAL)
    await bot.writes("and then?", where=thread)
    await bot.catches_up(3)
    assert texts(inbox) == ["hello", "again", "and then?"]
    assert inbox.messages[1].chat.chat == inbox.messages[1].id, "it gets a thread of its own"
    assert inbox.messages[2].chat == first.chat


async def test_nothing_is_read_before_the_session_has_told_of_its_servers(
    fake: FakeDiscord, bot: Bot, inbox: RecordingInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its server nobody knows whether a thread may be opened."""
    monkeypatch.setattr(discord_gateway, "SETTLED_SECONDS", 2.0)
    await bot.hears(f"<@{ME}> hello", where=GENERAL)
    await bot.writes(f"<@{ME}> again", where=GENERAL)
    fake.gateway.hold_guild = asyncio.Event()
    channel = channel_at(fake, cursors=bot.cursors)
    async with running(channel, inbox):
        for _ in range(20):  # as long as reading would take
            await channel.typing(place())
        fake.gateway.hold_guild.set()
        await inbox.heard(2)
    await channel.close()
    assert inbox.messages[1].chat.chat == inbox.messages[1].id, "it gets a thread of its own"


async def test_nothing_is_asked_where_nothing_is_new(fake: FakeDiscord, bot: Bot) -> None:
    await bot.hears(f"<@{ME}> hello", where=GENERAL)
    await bot.hears("hello")
    calls = fake.count("GET /channels")
    await bot.hears("next", sender=OTHER)
    asked = [call.name for call in fake.calls if call.name.startswith("GET /channels")][calls:]
    assert not [name for name in asked if str(GENERAL) in name]
    assert sum(name.endswith("/messages") for name in asked) == 1, "of a direct chat nothing is told"


async def test_a_chat_in_which_nothing_was_ever_taken_is_not_read(
    fake: FakeDiscord, bot: Bot, inbox: RecordingInbox
) -> None:
    inbox.answers.append(Acceptance.DENIED)
    await bot.hears("let me in")
    await bot.writes("please")
    await bot.hears("hello", sender=OTHER)
    assert texts(inbox) == ["let me in", "hello"]
    assert fake.count("GET /channels") == 0


async def test_a_chat_that_cannot_be_read_costs_no_other(fake: FakeDiscord, bot: Bot, inbox: RecordingInbox) -> None:
    await bot.hears("hello")
    await bot.hears("hello", sender=OTHER)
    await bot.writes("one")
    await bot.writes("two", sender=OTHER)
    fake.unreadable.add(dm(OTHER))
    await bot.catches_up(3)
    assert texts(inbox)[2:] == ["one"]
    asked = fake.count("GET /channels")
    await bot.hears("three")
    assert fake.count(f"GET /channels/{dm(OTHER)}") == 1, "it is not asked for again"
    assert fake.count("GET /channels") > asked


@pytest.mark.parametrize("body", [{"id": 1}, {"id": "1", "type": 99}, {"id": "x", "type": 1, "recipients": 3}])
async def test_a_chat_that_makes_no_sense_ends_nothing(
    fake: FakeDiscord, bot: Bot, inbox: RecordingInbox, body: dict[str, object]
) -> None:
    await bot.hears("hello")
    fake.fail(f"GET /channels/{HOME}$", status=201, body=body)
    await bot.hears("next")
    assert texts(inbox) == ["hello", "next"]


async def test_one_chat_gives_only_its_newest_messages(bot: Bot, inbox: RecordingInbox) -> None:
    await bot.hears("first")
    await bot.writes(*map(str, range(MOST + 5)))
    await bot.catches_up(1 + MOST)
    assert texts(inbox)[1:] == [str(number) for number in range(5, MOST + 5)]


async def test_what_is_older_than_a_day_is_left_alone(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    bot = Bot(fake, inbox)
    await bot.hears("hello")
    old = fake.write.message("old")
    day_old = int(str(old["id"])) - (25 * 3_600_000 << 22)
    old["id"] = str(day_old)
    bot.cursors.values["seen"] = bot.cursors.values["seen"][:8] + (day_old - 1).to_bytes(8)
    fake.messages[HOME].insert(0, old)
    await bot.catches_up(2)
    assert texts(inbox) == ["hello", "hello"], "the id is the same: the claim makes a duplicate of it"


async def test_reading_that_takes_too_long_is_given_up(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    bot = Bot(fake, inbox, clock)
    await bot.hears("hello")
    hold = asyncio.Event()
    fake.fail(f"GET /channels/{HOME}$", hold=hold)
    channel = channel_at(fake, clock, cursors=bot.cursors)
    async with running(channel, inbox):
        await fake.until(lambda: fake.count(f"GET /channels/{HOME}$") == 1)
        await bot.writes("next")
        await clock.advance(CATCH_UP_SECONDS)
        await inbox.heard(2)
    assert texts(inbox) == ["hello", "next"]
    hold.set()
    await channel.close()


async def test_a_slash_command_makes_a_chat_known(fake: FakeDiscord, bot: Bot, inbox: RecordingInbox) -> None:
    channel = channel_at(fake, cursors=bot.cursors)
    async with running(channel, inbox):
        await fake.pick(fake.write.slash("status"))
        await inbox.heard(1)
        await eventually(lambda: not channel._waiting)
        await channel.send(place(), "fine")
    await channel.close()
    fake.gateway.sessions.clear()
    await bot.writes("and now?")
    await bot.catches_up(2)
    assert texts(inbox) == ["/status", "and now?"]


async def test_so_many_chats_are_remembered_and_a_full_disk_forgets_none() -> None:
    cursors = MemoryCursors()
    seen = Seen(cursors)
    assert not seen
    for number in range(REMEMBERED + 5):
        await seen.taken(100 + number, number)
    cursors.full = True
    await seen.taken(500, 7)
    seen.passed(8, 600)
    seen.passed(1, 600)
    assert seen.chats()[:2] == [(7, 500), (REMEMBERED + 4, 204)]
    assert (8, 600) in seen.chats()
    assert 1 not in dict(seen.chats())
    again = Seen(cursors)
    await again.load()
    assert len(again.chats()) == REMEMBERED
    assert dict(again.chats())[7] == 107
    for broken in (b"", b"abc", cursors.values["seen"][:-3]):
        cursors.values["seen"] = broken
        await Seen(cursors).load()

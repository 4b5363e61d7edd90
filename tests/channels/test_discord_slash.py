"""Discord's slash commands: published from the command table, answered within 3 seconds, each answered once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bridges.message import Acceptance, MenuEntry, NotSent, ReplyTarget, RetryAfter, Sent, SentId
from bridges.text.discord import DiscordChannel
from bridges.text.discord_slash import REMEMBERED, SIGN_SECONDS
from commands.catalog import COMMANDS
from commands.help import menu
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.channels.around import RecordingInbox
from tests.channels.discord import HOME, channel_at, connected, pass_pause, running
from tests.contract.desk import desk_at
from tests.contract.rows.discord import DiscordPlatform
from tests.fakes.clock import FakeClock
from tests.fakes.discord import GENERAL, TELLER, FakeDiscord, How, Obj
from tests.fakes.discord.server import Asked
from tests.fakes.harness import FakeHarness

CALLBACK = "/callback$"


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def channel(fake: FakeDiscord, inbox: RecordingInbox, clock: FakeClock) -> AsyncIterator[DiscordChannel]:
    async with connected(fake, clock, inbox=inbox) as made:
        yield made


async def picked(fake: FakeDiscord, inbox: RecordingInbox, where: int | None = None) -> tuple[Asked, ReplyTarget]:
    """Let somebody pick a command; return it once it was accepted, and where its reply goes."""
    asked = await fake.pick(fake.write.slash("history", "5", where=where))
    await inbox.until(lambda: bool(inbox.messages) and inbox.messages[-1].id == str(asked.id))
    return asked, inbox.messages[-1].reply_to


async def test_a_quick_reply_is_the_answer_itself(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock
) -> None:
    asked, target = await picked(fake, inbox)
    assert isinstance(await channel.send(target, "one"), Sent)
    assert isinstance(await channel.send(target, "two"), Sent)
    assert [(said.texts, said.command, said.channel) for said in fake.said] == [
        (["one"], asked.id, HOME),
        (["two"], None, HOME),
    ]
    assert fake.said[0].params["flags"] == 1 << 2, "no previews"
    assert fake.said[0].params["allowed_mentions"] == {"parse": []}
    assert "nonce" in fake.said[1].params, "what follows the answer is an ordinary message"
    await clock.advance(SIGN_SECONDS)
    assert fake.count(CALLBACK) == 1
    assert not asked.deferred


async def test_a_slow_reply_gets_a_sign_of_life_within_three_seconds(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock
) -> None:
    assert SIGN_SECONDS < 3
    asked, target = await picked(fake, inbox)
    await eventually(lambda: clock.sleepers == 2)  # the watchdog, and the sign
    await clock.advance(SIGN_SECONDS)
    await fake.until(lambda: asked.deferred)
    assert isinstance(await channel.send(target, "one"), Sent)
    assert isinstance(await channel.send(target, "two"), Sent)
    assert [(said.texts, said.command) for said in fake.said] == [(["one"], asked.id), (["two"], None)]
    assert fake.said[0].params["flags"] == 1 << 2, "no previews"
    assert fake.said[0].params["allowed_mentions"] == {"parse": []}
    assert not asked.deferred, "nobody is left looking at a bot that thinks"


async def test_a_sign_on_its_way_is_waited_for(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock
) -> None:
    asked, target = await picked(fake, inbox)
    hold = asyncio.Event()
    fake.fail(CALLBACK, hold=hold)
    await eventually(lambda: clock.sleepers == 2)
    await clock.advance(SIGN_SECONDS)
    await fake.until(lambda: fake.count(CALLBACK) == 1)
    sending = asyncio.create_task(channel.send(target, "one"))
    await asyncio.sleep(0)
    assert fake.said == []
    hold.set()
    assert isinstance(await sending, Sent)
    assert [(said.texts, said.command) for said in fake.said] == [(["one"], asked.id)]


async def test_a_sign_that_arrived_unheard_does_not_cost_the_reply(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock
) -> None:
    asked, target = await picked(fake, inbox)
    fake.fail(CALLBACK, drop=True, effect=True)
    await eventually(lambda: clock.sleepers == 2)
    await clock.advance(SIGN_SECONDS)
    await fake.until(lambda: asked.deferred)
    assert isinstance(await channel.send(target, "one"), Sent)
    assert [(said.texts, said.command) for said in fake.said] == [(["one"], asked.id)]


async def test_a_command_that_is_too_old_to_answer_is_answered_by_a_message(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    asked, target = await picked(fake, inbox)
    asked.expired = True
    assert isinstance(await channel.send(target, "late"), Sent)
    assert [(said.texts, said.command) for said in fake.said] == [(["late"], None)]


async def test_after_a_restart_a_command_is_answered_by_a_message(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    async with connected(fake, inbox=inbox):
        _, target = await picked(fake, inbox, GENERAL)
    async with connected(fake) as again:
        assert isinstance(await again.send(target, "late"), Sent)
    assert fake.texts(GENERAL) == ["late"]


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize("how", [{"drop": True}, {"status": 503}])
async def test_an_answer_whose_fate_was_unknown_is_given_again_and_seen_once(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock, how: How, effect: bool
) -> None:
    asked, target = await picked(fake, inbox)
    fake.fail(CALLBACK, effect=effect, **how)  # type: ignore[misc]  # the rows above do not say effect
    sending = asyncio.create_task(channel.send(target, "one"))
    await pass_pause(clock, sending)
    outcome = await sending
    (said,) = fake.said
    assert (said.texts[-1], said.command) == ("one", asked.id)
    assert outcome == Sent(SentId(str(said.id)))


async def test_a_text_put_in_the_place_of_a_sign_that_was_lost_is_put_there_again(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock
) -> None:
    asked, target = await picked(fake, inbox)
    await eventually(lambda: clock.sleepers == 2)
    await clock.advance(SIGN_SECONDS)
    await fake.until(lambda: asked.deferred)
    fake.fail("@original$", drop=True, effect=True)
    sending = asyncio.create_task(channel.send(target, "one"))
    await pass_pause(clock, sending)
    assert isinstance(await sending, Sent)
    assert [(said.texts[-1], said.command) for said in fake.said] == [("one", asked.id)]


async def test_an_answer_outlives_the_link_its_command_came_by(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox):
        asked, target = await picked(fake, inbox)
    assert isinstance(await channel.send(target, "one"), Sent)
    assert [(said.texts, said.command) for said in fake.said] == [(["one"], asked.id)]
    await channel.close()


async def test_an_answer_that_was_deleted_is_followed_by_a_message(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    _, target = await picked(fake, inbox)
    fake.fail(CALLBACK, status=400, code=40060)
    assert isinstance(await channel.send(target, "one"), Sent)
    assert [(said.texts, said.command) for said in fake.said] == [(["one"], None)]


@pytest.mark.parametrize("told", [{"resource": 3}, {"resource": {"message": {"id": 5}}}, {"interaction": {}}])
async def test_an_answer_of_the_platform_that_says_little_leaves_nothing_sent_twice(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock, told: Obj
) -> None:
    _, target = await picked(fake, inbox)
    fake.fail(CALLBACK, status=201, body=told, effect=True)
    sending = asyncio.create_task(channel.send(target, "one"))
    await pass_pause(clock, sending)
    assert isinstance(await sending, Sent)
    assert len(fake.said) == 1


@pytest.mark.parametrize(
    ("how", "outcome"),
    [({"status": 403, "code": 50013}, NotSent.BLOCKED), ({"status": 400, "code": 1}, NotSent.REJECTED)],
)
async def test_a_refused_answer_ends_like_any_send(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, how: How, outcome: NotSent
) -> None:
    _, target = await picked(fake, inbox)
    fake.fail(CALLBACK, **how)
    assert await channel.send(target, "one") is outcome
    assert fake.said == []


async def test_an_answer_that_has_to_wait_is_still_the_answer(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    asked, target = await picked(fake, inbox)
    fake.fail(CALLBACK, status=429)
    assert isinstance(await channel.send(target, "one"), RetryAfter)
    assert isinstance(await channel.send(target, "one"), Sent)
    assert [said.command for said in fake.said] == [asked.id]


async def test_a_stranger_sees_no_sign_of_life(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox, clock: FakeClock
) -> None:
    inbox.answers.append(Acceptance.DENIED)
    asked, target = await picked(fake, inbox)
    await fake.gateway.taken()
    await clock.advance(SIGN_SECONDS + 1)
    assert fake.count(CALLBACK) == 0
    assert isinstance(await channel.send(target, "your pairing code"), Sent)
    assert fake.said[0].command == asked.id


async def test_two_commands_at_once_get_their_own_answers(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    first, first_target = await picked(fake, inbox)
    second, second_target = await picked(fake, inbox)
    await asyncio.gather(channel.send(second_target, "2"), channel.send(first_target, "1"))
    assert {said.texts[0]: said.command for said in fake.said} == {"1": first.id, "2": second.id}


async def test_only_so_many_commands_wait(fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox) -> None:
    await picked(fake, inbox)
    assert channel._api is not None
    commands = channel._api.commands
    for number in range(REMEMBERED + 10):
        commands.arrived(SimpleNamespace(id=number, application_id=1, token="t"))  # type: ignore[arg-type]  # the part that is used
    assert len(commands._pending) == REMEMBERED


async def test_typing_shows_where_the_command_was_picked(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    _, target = await picked(fake, inbox)
    await channel.typing(target)
    assert fake.count(f"POST /channels/{HOME}/typing") == 1


# -- publishing --------------------------------------------------------------------------------------------------------


def menus() -> dict[str, tuple[MenuEntry, ...]]:
    return {str(language): menu(COMMANDS.values(), Words(language)) for language in Language}


async def test_the_whole_table_is_published_in_all_languages(fake: FakeDiscord, channel: DiscordChannel) -> None:
    await channel.publish(menus())
    published = {str(row["name"]): row for row in fake.commands}
    assert list(published) == [entry.name for entry in menus()["zh"]]
    for chinese, english in zip(menus()["zh"], menus()["en"], strict=True):
        row = published[chinese.name]
        assert row["description"] == chinese.summary
        translated = row["description_localizations"]
        assert isinstance(translated, dict)
        assert translated["en-US"] == translated["en-GB"] == english.summary
        assert translated["zh-CN"] == chinese.summary
        options = row["options"]
        assert isinstance(options, list)
        assert len(options) == (chinese.parameter is not None)
        for option in options:
            assert (option["type"], option["required"], option["description"]) == (3, False, chinese.parameter)
            assert option["description_localizations"]["en-US"] == english.parameter


async def test_publishing_again_replaces_what_was_published(fake: FakeDiscord, channel: DiscordChannel) -> None:
    await channel.publish(menus())
    await channel.publish({"en": (MenuEntry("help", "Show this help"),)})
    assert [row["name"] for row in fake.commands] == ["help"]


async def test_what_is_published_is_within_the_platforms_bounds(fake: FakeDiscord, channel: DiscordChannel) -> None:
    entry = MenuEntry("history", "x" * 300, "y" * 300)
    await channel.publish({"en": (entry,), "xx": (MenuEntry("history", "unknown language"),)})
    (row,) = fake.commands
    options = row["options"]
    assert isinstance(options, list)
    assert [len(str(each["description"])) for each in (row, *options)] == [100, 100]
    assert len(COMMANDS) <= 100


@pytest.mark.parametrize("how", [{"status": 403, "code": 50001}, {"status": 400, "code": 50035}, {"drop": True}])
async def test_commands_that_cannot_be_published_are_no_fault(
    fake: FakeDiscord, channel: DiscordChannel, how: How
) -> None:
    fake.fail("PUT /applications/", times=None, **how)  # type: ignore[misc]  # the rows above do not say times
    await channel.publish(menus())
    assert fake.commands == []


async def test_a_command_this_process_never_published_is_taken_too(
    fake: FakeDiscord, channel: DiscordChannel, inbox: RecordingInbox
) -> None:
    del channel
    await fake.pick(fake.write.slash("status", sender=TELLER))
    (message,) = await inbox.heard(1)
    assert message.text == "/status"


async def test_a_picked_history_reads_like_a_typed_one(tmp_path: Path) -> None:
    async with (
        FakeDiscord() as fake,
        FakeHarness() as host,
        desk_at(host, DiscordPlatform(fake), tmp_path, Language.EN) as desk,
    ):
        await desk.bind(messages=8)
        (typed,) = await desk.ask("/history 2")
        asked = await fake.pick(fake.write.slash("history", "2"))
        await fake.until(lambda: asked.said is not None)
        in_group = await fake.pick(fake.write.slash("history", where=GENERAL))
        await fake.until(lambda: in_group.said is not None)
        await desk.settled()
        assert asked.said is not None
        assert in_group.said is not None
        assert asked.said.texts == [typed]
        assert in_group.said.texts == [desk.words(Key.HISTORY_PRIVATE_ONLY)]
        await fake.until(lambda: len(fake.commands) == len(menus()["en"]))

"""Discord's way in, with the real SDK on real sockets: links that break, sessions that end, tokens that die."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator

import pytest

from bridges.message import Acceptance, ChannelStopped, Stop
from bridges.state import BotKey
from bridges.supervise import Link, Supervisor
from bridges.text.discord import WAITING
from bridges.text.discord_gateway import (
    DAY_SECONDS,
    DEAF_SECONDS,
    IDENTIFIES,
    LONGEST_WAIT,
    LOOK_SECONDS,
    LOST_SECONDS,
    Pace,
)
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.channels.discord import channel_at, place, running
from tests.fakes.clock import FakeClock
from tests.fakes.discord import FakeDiscord, How


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


async def write(fake: FakeDiscord, *texts: str) -> None:
    await fake.deliver(*(fake.write.message(text) for text in texts))


def texts(inbox: RecordingInbox) -> list[str]:
    return [message.text for message in inbox.messages]


async def test_only_what_is_needed_is_asked_for(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox):
        (session,) = fake.gateway.sessions.values()
    assert session.intents == (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15), "servers, messages in both, their content"
    await channel.close()


async def test_messages_are_handed_over_one_by_one_in_their_order(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox):
        await write(fake, *map(str, range(20)))
        await inbox.heard(20)
    assert texts(inbox) == [str(number) for number in range(20)]
    await channel.close()


async def test_what_could_not_be_written_down_is_tried_again_by_the_next_run(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    inbox.answers += [Acceptance.ACCEPTED, OSError("no space left")]
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await write(fake, "1", "2", "3")
        await asyncio.wait({task}, timeout=10)
        assert isinstance(task.exception(), OSError)
    assert texts(inbox) == ["1"]
    async with running(channel, inbox):
        await inbox.heard(3)
    assert texts(inbox) == ["1", "2", "3"]
    await channel.close()


async def test_too_many_waiting_messages_are_no_reason_to_grow(
    fake: FakeDiscord, inbox: RecordingInbox, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox.answers.append(OSError("no space left"))
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await write(fake, "first")
        await asyncio.wait({task}, timeout=10)
    message = channel._waiting[0]
    channel._waiting.extend([message] * (WAITING - 1))
    assert not channel._take(message)
    assert len(channel._waiting) == WAITING
    assert "one is lost" in capsys.readouterr().out
    await channel.close()


# -- who may not come in -----------------------------------------------------------------------------------------------


async def test_a_wrong_token_stops_the_bot_and_is_not_told(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    channel = channel_at(fake, token="wrong.token.entirely")
    with pytest.raises(ChannelStopped, match="developer portal") as caught:
        await channel.run(inbox)
    assert caught.value.why is Stop.NEEDS_LOGIN
    assert "wrong.token" not in "".join(traceback.format_exception(caught.value))
    await channel.close()


async def test_a_token_that_is_reset_stops_the_bot(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await fake.gateway.close(4004)
        await asyncio.wait({task}, timeout=10)
        error = task.exception()
    assert isinstance(error, ChannelStopped)
    assert error.why is Stop.NEEDS_LOGIN
    await channel.close()


async def test_a_missing_intent_stops_the_bot_and_says_where_to_switch_it_on(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    fake.gateway.content_intent = False
    channel = channel_at(fake)
    with pytest.raises(ChannelStopped, match="Message Content Intent") as caught:
        await channel.run(inbox)
    assert caught.value.why is Stop.MISCONFIGURED
    await channel.close()


@pytest.mark.parametrize("code", [4010, 4011, 4012, 4013])
async def test_what_reconnecting_cannot_cure_stops_the_bot(fake: FakeDiscord, inbox: RecordingInbox, code: int) -> None:
    fake.gateway.answer_identify = code
    channel = channel_at(fake)
    with pytest.raises(ChannelStopped) as caught:
        await channel.run(inbox)
    assert caught.value.why is Stop.MISCONFIGURED
    await channel.close()


@pytest.mark.parametrize("how", [{"status": 503}, {"drop": True, "times": 2}, {"status": 403}])
async def test_an_api_that_fails_at_the_login_is_tried_again_later(
    fake: FakeDiscord, inbox: RecordingInbox, how: How
) -> None:
    fake.fail("GET /users/@me", **how)
    channel = channel_at(fake)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        await channel.run(inbox)
    async with running(channel, inbox):
        assert inbox.ups == 1
    await channel.close()


async def test_a_gateway_that_refuses_at_first_ends_the_run_with_a_clear_error(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    fake.gateway.upgrade_status = 502
    channel = channel_at(fake)
    with pytest.raises(ConnectionError, match="gateway cannot be reached"):
        await channel.run(inbox)
    fake.gateway.upgrade_status = None
    async with running(channel, inbox):
        assert inbox.ups == 1
    await channel.close()


async def test_an_event_the_sdk_cannot_read_ends_the_run_with_a_clear_error(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await fake.gateway.dispatch("MESSAGE_CREATE", {"id": "1"})
        await asyncio.wait({task}, timeout=10)
        with pytest.raises(ConnectionError, match="or understood"):
            task.result()
    await channel.close()


# -- links that break --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["asked to reconnect", "resumable end", "4000", "1000", "4009", "cut"])
async def test_a_broken_link_is_resumed_without_loss_or_repetition(
    fake: FakeDiscord, inbox: RecordingInbox, how: str
) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await write(fake, "before")
        await inbox.heard(1)
        match how:
            case "asked to reconnect":
                await fake.gateway.say(7)
            case "resumable end":
                await fake.gateway.say(9, True)
            case "cut":
                fake.gateway.cut()
            case code:
                await fake.gateway.close(int(code))
        await write(fake, "meanwhile")
        await fake.until(lambda: fake.gateway.resumes == 1)
        await write(fake, "after")
        await inbox.heard(3)
        assert not task.done()
    assert texts(inbox) == ["before", "meanwhile", "after"]
    assert (inbox.ups, fake.gateway.identifies) == (1, 1)
    await channel.close()


async def test_a_session_that_ended_for_good_is_followed_by_a_new_one_and_the_loss_is_told(
    fake: FakeDiscord, inbox: RecordingInbox, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    async with running(channel, inbox):
        await fake.gateway.say(9, False)
        await write(fake, "lost: no session is open")
        await eventually(lambda: clock.sleepers == 2)  # the watchdog, and the distance between two new sessions
        assert fake.gateway.identifies == 1
        await clock.advance(5)
        await fake.until(lambda: bool(fake.gateway.sessions))
        await write(fake, "heard")
        await inbox.heard(1)
    assert texts(inbox) == ["heard"]
    assert "was not delivered" in capsys.readouterr().out
    await channel.close()


async def test_a_storm_of_closes_is_no_storm_of_connections(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    fake.gateway.close_after_hello = 4000
    task = asyncio.create_task(channel.run(inbox))
    await fake.until(lambda: fake.gateway.connects == 5)
    for wait in (1, 2, 4, 8, 16):
        await eventually(lambda: clock.sleepers == 2)
        before = fake.gateway.connects
        await clock.advance(wait - 0.5)
        assert fake.gateway.connects == before
        await clock.advance(0.5)
        await fake.until(lambda: fake.gateway.connects == before + 1)  # noqa: B023 - awaited before the next round
    fake.gateway.close_after_hello = None
    task.cancel()
    await asyncio.wait({task})
    await channel.close()


async def test_the_pace_grows_to_its_bound_and_recovers() -> None:
    clock = FakeClock(autojump=True)
    pace = Pace(clock)
    waits: list[float] = []
    async with clock:
        for _ in range(40):
            began = clock.monotonic()
            await pace.connect()
            waits.append(clock.monotonic() - began)
        assert waits[:8] == [0, 0, 0, 0, 0, 1, 2, 4]
        assert max(waits) <= LONGEST_WAIT
        assert sum(waits) / len(waits) > 5, "ten hours of it are no flood"
        await clock.sleep(60)
        began = clock.monotonic()
        await pace.connect()
        assert clock.monotonic() == began


async def test_a_day_has_only_so_many_new_sessions() -> None:
    clock = FakeClock(autojump=True)
    pace = Pace(clock)
    async with clock:
        began = clock.monotonic()
        for number in range(2 * IDENTIFIES + 10):
            await pace.ready()
            pace.identify()
            if number == IDENTIFIES - 1:
                assert clock.monotonic() == began
        assert clock.monotonic() >= began + 2 * DAY_SECONDS
        for _ in range(IDENTIFIES):
            try:
                pace.identify()
            except ConnectionRefusedError:
                break
        else:
            pytest.fail("nothing held the sessions back")


async def test_a_deaf_link_is_noticed_within_a_minute_and_resumed(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    supervisor = Supervisor(BotKey("discord", "ops"), channel, inbox, redact=str, clock=clock, chance=lambda: 0.0)
    task = asyncio.create_task(supervisor.run())
    await inbox.until(lambda: inbox.ups == 1)
    await write(fake, "before")
    await inbox.heard(1)
    fake.gateway.silent = True
    await write(fake, "unheard")
    assert DEAF_SECONDS + LOOK_SECONDS < 60
    await clock.advance(DEAF_SECONDS + LOOK_SECONDS)
    await fake.until(lambda: fake.gateway.connects == 2)
    fake.gateway.cut()  # the link that was opened meanwhile heard no greeting
    fake.gateway.silent = False
    await fake.until(lambda: fake.gateway.resumes == 1)
    await inbox.heard(2)
    assert texts(inbox) == ["before", "unheard"]
    assert (supervisor.health.link, fake.gateway.identifies) == (Link.UP, 1)
    task.cancel()
    await asyncio.wait({task})


async def test_a_link_that_stays_deaf_ends_the_run(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    async with running(channel, inbox) as task:
        fake.gateway.silent = True
        for _ in range(int(LOST_SECONDS / LOOK_SECONDS) + 1):
            await clock.advance(LOOK_SECONDS)
        await eventually(lambda: clock.sleepers == 1 or task.done())  # the goodbye that nobody answers
        await clock.advance(10)
        await asyncio.wait({task}, timeout=10)
        with pytest.raises(ConnectionError, match="nothing heard from Discord"):
            task.result()
    await channel.close()


# -- start and stop ----------------------------------------------------------------------------------------------------


async def test_starting_and_stopping_five_times_gives_each_message_once(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    channel = channel_at(fake)
    for number in range(5):
        async with running(channel, inbox):
            await write(fake, str(number))
            await inbox.heard(number + 1)
        fake.gateway.sessions.clear()
    assert texts(inbox) == ["0", "1", "2", "3", "4"]
    assert not fake.gateway.links
    await channel.close()
    await channel.close()


async def test_a_run_that_is_cancelled_ends_at_once_and_says_goodbye(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        began = time.monotonic()
        task.cancel()
        await asyncio.wait({task}, timeout=5)
        assert time.monotonic() - began < 2
    await fake.until(lambda: not fake.gateway.links)
    await channel.close()


async def test_two_bots_beside_each_other_keep_apart(fake: FakeDiscord) -> None:
    first, second = RecordingInbox(), RecordingInbox()
    channels = channel_at(fake), channel_at(fake)
    async with running(channels[0], first), running(channels[1], second):
        await write(fake, "hello")
        await first.heard(1)
        await second.heard(1)
        for channel in channels:
            await channel.send(place(), "hi")
    for channel in channels:
        await channel.close()
    assert fake.texts(int(place().route)) == ["hi", "hi"]


async def test_the_threads_we_opened_are_known_after_a_restart(fake: FakeDiscord) -> None:
    cursors = MemoryCursors()
    channel = channel_at(fake, cursors=cursors)
    asked = fake.write.message("hello", where=int(place(8).route))
    async with running(channel, RecordingInbox()):
        await channel.send(place(8, thread_at=int(str(asked["id"]))), "opened")
    await channel.close()
    fake.threads.clear()
    fake.gateway.tells_guild = False
    again, inbox = channel_at(fake, cursors=cursors), RecordingInbox()
    async with running(again, inbox):
        await fake.deliver(fake.write.message("more", where=int(str(asked["id"]))))
        (message,) = await inbox.heard(1)
    assert message.addressed
    await again.close()

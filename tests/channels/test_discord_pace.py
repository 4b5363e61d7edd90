"""Discord's pace and patience, with a clock that the tests move: storms, daily limits, links that went silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.state import BotKey
from bridges.supervise import Link, Supervisor
from bridges.text.discord_calls import LOGIN_SECONDS
from bridges.text.discord_gateway import (
    DAY_SECONDS,
    DEAF_SECONDS,
    IDENTIFIES,
    LONGEST_WAIT,
    LOOK_SECONDS,
    LOST_SECONDS,
    Pace,
    TooManySessions,
)
from tests.bridges.bench import eventually
from tests.channels.around import RecordingInbox
from tests.channels.discord import channel_at, running
from tests.fakes.clock import FakeClock
from tests.fakes.discord import FakeDiscord


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
            except TooManySessions:
                break
        else:
            pytest.fail("nothing held the sessions back")


async def test_a_bot_that_had_its_sessions_of_the_day_waits_for_the_next(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    async with running(channel, inbox) as task:
        assert channel._pace is not None
        channel._pace._identifies.extend([clock.monotonic()] * IDENTIFIES)
        await fake.gateway.say(9, False)
        with pytest.raises(ConnectionError, match="too many new sessions"):
            await task
    again = asyncio.create_task(channel.run(inbox))
    await eventually(lambda: clock.sleepers == 1)
    await clock.advance(DAY_SECONDS - 1)
    assert (inbox.ups, fake.gateway.identifies) == (1, 1)
    await clock.advance(1)
    await inbox.until(lambda: inbox.ups == 2)
    again.cancel()
    await asyncio.wait({again})
    await channel.close()


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


async def test_an_api_that_never_answers_the_login_is_given_up(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    hold = asyncio.Event()
    fake.fail("GET /users/@me", hold=hold)
    task = asyncio.create_task(channel.run(inbox))
    await fake.until(lambda: fake.count("GET /users/@me") == 1)
    await clock.advance(LOGIN_SECONDS)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        await task
    hold.set()

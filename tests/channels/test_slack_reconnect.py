"""Slack's link, lost in every way, started and stopped: the real SDK on real sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from bridges.log import Redactor
from bridges.supervise import Link
from bridges.text.slack_link import DEAF_SECONDS, FREE_OPENINGS, PATIENCE_SECONDS
from tests.channels.around import NotingClock, RecordingInbox
from tests.channels.slack import (
    NEVER,
    HeldInbox,
    channel_at,
    running,
    running_task,
    supervised,
    supervision,
)
from tests.fakes.clock import FakeClock
from tests.fakes.slack import FakeSlack


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


# -- how links are lost ------------------------------------------------------------------------------------------------


async def test_a_refused_upgrade_asks_for_a_new_address(fake: FakeSlack, inbox: RecordingInbox) -> None:
    fake.sockets.refuse = 1
    clock = FakeClock()
    async with running_task(channel_at(fake, clock), inbox):
        await fake.until(lambda: fake.sockets.handshakes >= 3)
        assert fake.count("apps.connections.open") == 1, "the SDK by itself would use the same address for ever"
        await clock.advance(PATIENCE_SECONDS + 2)
        await inbox.until(lambda: inbox.ups == 1)
        await fake.say("hello")
    assert len(inbox.messages) == 1


@pytest.mark.parametrize("how", ["close", "cut", "warning", "refresh_requested", "too_many_websockets"])
async def test_a_link_that_ends_is_followed_by_another(fake: FakeSlack, how: str) -> None:
    inbox = HeldInbox()
    async with running(channel_at(fake), inbox):
        pending = await fake.deliver(fake.write.message("1"))
        await inbox.asked.wait()
        if how == "close":
            await fake.sockets.close()
        elif how == "cut":
            fake.sockets.cut()
        else:
            await fake.sockets.disconnect(how)
        await inbox.until(lambda: inbox.ups == 2)
        inbox.go.set()
        await fake.taken(pending)
        await fake.say("2")
        await fake.until(lambda: len(fake.sockets.open) == 1)
    assert {message.text for message in inbox.messages} == {"1", "2"}, "nothing is lost; the intake knows duplicates"


async def test_missing_pongs_are_noticed_by_the_sdk(fake: FakeSlack, inbox: RecordingInbox) -> None:
    async with running(channel_at(fake), inbox):
        fake.sockets.deaf = True
        pending = await fake.deliver(fake.write.message("hello"))
        await fake.until(lambda: fake.sockets.handshakes >= 2)
        fake.sockets.deaf = False
        await fake.taken(pending)


async def test_a_deaf_link_is_noticed_within_a_minute_and_reopened(fake: FakeSlack, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    supervisor = supervised(channel_at(fake, clock, ping=NEVER), inbox, clock)
    async with supervision(supervisor):
        await inbox.until(lambda: inbox.ups == 1)
        await clock.sleeping()
        fake.sockets.deaf = True
        await clock.advance(DEAF_SECONDS + 2)
        await clock.advance(2)  # for the farewell nobody answers, and for the back-off
        fake.sockets.deaf = False
        await clock.advance(60 - DEAF_SECONDS - 4)
        await inbox.until(lambda: inbox.ups == 2)
        await fake.say("hello")
        assert supervisor.health.link is Link.UP
    assert DEAF_SECONDS < 60


async def test_a_storm_of_closes_is_met_ever_more_slowly(fake: FakeSlack, inbox: RecordingInbox) -> None:
    fake.sockets.hang_up = True
    clock = NotingClock()
    async with running_task(channel_at(fake, clock), inbox), asyncio.timeout(10):
        opened = FREE_OPENINGS
        for pause in (1.0, 2.0, 4.0, 8.0):
            await fake.until(lambda opened=opened: fake.count("apps.connections.open") == opened)  # type: ignore[misc]  # mypy reads no default
            await clock.sleeping(2)  # the watchdog, and whoever would like to open a link
            assert pause in clock.naps
            await clock.advance(pause)
            opened += 1


# -- start and stop ----------------------------------------------------------------------------------------------------


async def test_started_five_times_it_has_one_link_and_leaves_no_task(fake: FakeSlack, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    before = asyncio.all_tasks()
    for _ in range(5):
        async with running(channel, inbox):
            await fake.until(lambda: len(fake.sockets.open) == 1)
    async with running(channel, inbox):
        await fake.say("hello")
        await fake.until(lambda: len(fake.sockets.open) == 1)
    await channel.close()
    await fake.until(lambda: not fake.sockets.open)
    assert [message.text for message in inbox.messages] == ["hello"]
    left = {task for task in asyncio.all_tasks() - before if "bridges" in repr(task) or "slack" in repr(task)}
    assert not left


async def test_stopping_while_a_message_is_taken_leaves_no_task(fake: FakeSlack) -> None:
    inbox = HeldInbox()
    before = asyncio.all_tasks()
    async with running(channel_at(fake), inbox):
        envelope = await fake.deliver(fake.write.message("hello"))
        await inbox.asked.wait()
    assert not envelope.acknowledged
    assert inbox.messages == []
    assert not {task for task in asyncio.all_tasks() - before if "slack" in repr(task)}


async def test_ten_hours_of_reconnects(fake: FakeSlack, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    async with supervision(supervised(channel_at(fake, clock, ping=NEVER), inbox, clock)):
        for hour in range(10):
            await inbox.until(lambda hour=hour: inbox.ups > hour)  # type: ignore[misc]  # mypy reads no default
            await clock.sleeping()
            await fake.say(f"hour {hour}")
            ups = inbox.ups
            await clock.advance(3_600)  # on this clock no ping is due in time: the link counts as deaf
            await inbox.until(lambda ups=ups: inbox.ups > ups)  # type: ignore[misc]  # mypy reads no default
            await fake.until(lambda: len(fake.sockets.open) == 1)
    assert [message.text for message in inbox.messages] == [f"hour {hour}" for hour in range(10)]


async def test_the_log_knows_no_token_no_ticket_and_no_message(
    fake: FakeSlack, inbox: RecordingInbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    redact = Redactor({fake.bot_token, fake.app_token})
    fake.sockets.refuse = 1
    clock = FakeClock()
    async with running_task(channel_at(fake, clock, hide=redact.hide), inbox):
        await fake.until(lambda: fake.sockets.handshakes >= 2)
        await clock.advance(PATIENCE_SECONDS + 2)
        await inbox.until(lambda: inbox.ups == 1)
        inbox.answers.append(OSError("no space left"))
        await fake.deliver(fake.write.message("the secret words"))
        await fake.say("hello")
    assert "ticket-1" in caplog.text, "the SDK prints the address; if it no longer does, hiding it is idle"
    logged = redact(caplog.text)
    for secret in (fake.bot_token, fake.app_token, "ticket-", "secret words"):
        assert secret not in logged

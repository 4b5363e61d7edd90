"""Slack's link, with the real SDK on real sockets: claims, acknowledgements, log-in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from bridges.message import ChannelStopped, NotSent, Sent, Stop
from tests.channels.around import NotingClock, RecordingInbox
from tests.channels.slack import HeldInbox, channel_at, fate, place, running, running_task
from tests.fakes.clock import FakeClock
from tests.fakes.slack import BOT_ID, BOT_USER, FakeSlack, Obj


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


# -- claims and acknowledgements ---------------------------------------------------------------------------------------


async def test_an_event_is_acknowledged_only_after_it_was_accepted(fake: FakeSlack) -> None:
    inbox = HeldInbox()
    async with running(channel_at(fake), inbox):
        envelope = await fake.deliver(fake.write.message("hello"))
        await inbox.asked.wait()
        assert not envelope.acknowledged
        inbox.go.set()
        await fake.taken(envelope)
    assert [message.text for message in inbox.messages] == ["hello"]


async def test_what_could_not_be_claimed_is_not_acknowledged(fake: FakeSlack, inbox: RecordingInbox) -> None:
    inbox.answers.append(OSError("no space left"))
    async with running(channel_at(fake), inbox):
        lost = await fake.deliver(fake.write.message("1"))
        await fake.say("2")  # handed on after the first one, so that one is through
        assert not lost.acknowledged
        await fake.sockets.resend(lost)
        await fake.taken(lost)
    assert [message.text for message in inbox.messages] == ["2", "1"]


async def test_a_picked_command_that_could_not_be_claimed_is_not_acknowledged(
    fake: FakeSlack, inbox: RecordingInbox
) -> None:
    inbox.answers.append(OSError("no space left"))
    async with running(channel_at(fake), inbox):
        lost = await fake.pick("/help")
        await fake.say("2")
    assert not lost.acknowledged


UNINTERESTING: list[Obj] = [
    {"type": "reaction_added", "user": "U1", "item": {"type": "message", "channel": "C1", "ts": "1.1"}},
    {"type": "channel_created", "channel": {"id": "C1", "name": "new", "creator": "U1"}},
    {"type": "member_joined_channel", "user": BOT_USER, "channel": "C1"},
    {"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1.1", "message": {"text": "new words"}},
    {"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1.1", "deleted_ts": "1.0"},
    {"type": "app_home_opened", "user": "U1", "channel": "D1"},
    {"type": "something_of_next_year"},
]


@pytest.mark.parametrize("event", UNINTERESTING, ids=lambda event: str(event.get("subtype") or event["type"]))
async def test_an_event_nobody_wants_is_acknowledged_all_the_same(
    fake: FakeSlack, inbox: RecordingInbox, event: Obj
) -> None:
    async with running(channel_at(fake), inbox):
        await fake.taken(await fake.deliver(event))
    assert inbox.messages == []


async def test_an_interaction_nobody_wants_is_acknowledged(fake: FakeSlack, inbox: RecordingInbox) -> None:
    body: Obj = {"type": "block_actions", "team": {"id": "T1"}, "user": {"id": "U1"}, "actions": [{"action_id": "a"}]}
    async with running(channel_at(fake), inbox):
        await fake.taken(await fake.sockets.deliver(body, "interactive"))
    assert inbox.messages == []


NONSENSE: list[Obj] = [
    {"ts": 7},
    {"user": {"id": "U1"}},
    {"user": ["U1"]},
    {"channel": {"id": "C1"}},
    {"bot_id": ["B1"]},
    {"text": {"words": "the secret words"}},
    {"files": "the secret words"},
    {"thread_ts": 1.5},
    {"subtype": ["x"]},
]


@pytest.mark.parametrize("change", NONSENSE, ids=str)
async def test_a_payload_that_makes_no_sense_is_acknowledged_left_out_and_not_logged(
    fake: FakeSlack, inbox: RecordingInbox, caplog: pytest.LogCaptureFixture, change: Obj
) -> None:
    async with running(channel_at(fake), inbox):
        await fake.taken(await fake.deliver(fake.write.message("the secret words") | change))
        await fake.say("hello")
    assert [message.text for message in inbox.messages] == ["hello"]
    assert "secret words" not in caplog.text


async def test_events_are_handed_on_in_the_order_they_came(fake: FakeSlack) -> None:
    inbox = HeldInbox()
    async with running(channel_at(fake), inbox):
        envelopes = [await fake.deliver(fake.write.message(str(number))) for number in range(20)]
        await inbox.asked.wait()
        inbox.go.set()
        for envelope in envelopes:
            await fake.taken(envelope)
    assert [message.text for message in inbox.messages] == [str(number) for number in range(20)]


async def test_one_mention_that_arrives_as_two_events_has_one_id(fake: FakeSlack, inbox: RecordingInbox) -> None:
    async with running(channel_at(fake), inbox):
        event = fake.write.message("@ThisBot hello", kind="channel")
        for each in (fake.write.mention(event), event):
            await fake.taken(await fake.deliver(each))
    first, second = inbox.messages
    assert first.id == second.id
    assert first.reply_to == second.reply_to


@pytest.mark.parametrize("mark", [{"user": BOT_USER}, {"bot_id": BOT_ID}, {"bot_id": "B0OTHER"}], ids=str)
async def test_what_programs_say_is_dropped_by_id(fake: FakeSlack, inbox: RecordingInbox, mark: Obj) -> None:
    async with running(channel_at(fake), inbox):
        await fake.taken(await fake.deliver(fake.write.message("hello") | mark))
        await fake.say("hello")
    assert len(inbox.messages) == 1


async def test_a_failing_log_in_at_the_first_event_swallows_nothing(fake: FakeSlack, inbox: RecordingInbox) -> None:
    fake.fail("auth.test", error="internal_error", after=1, times=None)
    async with running(channel_at(fake), inbox):
        await fake.say("hello")
    assert len(inbox.messages) == 1


# -- log-in ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("which", "word"), [("app_token", "xapp"), ("bot_token", "xoxb")])
async def test_a_wrong_token_stops_with_a_word_on_which(
    fake: FakeSlack, inbox: RecordingInbox, which: str, word: str
) -> None:
    wrong = "wrong-token-fake"
    tokens = {"bot_token": fake.bot_token, "app_token": fake.app_token} | {which: wrong}
    channel = channel_at(fake, bot_token=tokens["bot_token"], app_token=tokens["app_token"])
    async with running(channel, inbox) as task:
        stopped = await fate(task)
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.NEEDS_LOGIN
    assert word in str(stopped)
    assert wrong not in str(stopped)
    assert inbox.ups == 0


async def test_an_app_token_that_is_revoked_later_stops_the_channel(fake: FakeSlack, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    async with running(channel_at(fake, clock), inbox) as task:
        fake.fail("apps.connections.open", error="token_revoked", times=None)
        await fake.sockets.close()
        stopped = await fate(task, clock)
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.NEEDS_LOGIN


async def test_a_bot_token_that_is_revoked_later_stops_the_channel_at_the_next_answer(
    fake: FakeSlack, inbox: RecordingInbox
) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    async with running(channel, inbox) as task:
        fake.fail("chat.postMessage", error="token_revoked")
        fake.fail("auth.test", error="token_revoked")
        assert await channel.send(place(), "hello") is NotSent.REAUTHENTICATE
        stopped = await fate(task, clock)
    assert isinstance(stopped, ChannelStopped)
    assert (stopped.why, "xoxb" in str(stopped)) == (Stop.NEEDS_LOGIN, True)


async def test_a_token_refused_once_by_mistake_is_no_reason_to_stop(fake: FakeSlack, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    async with running(channel, inbox) as task:
        fake.fail("chat.postMessage", error="invalid_auth")
        assert await channel.send(place(), "hello") is NotSent.REAUTHENTICATE
        await clock.sleeping()
        await clock.advance(1)
        await fake.until(lambda: fake.count("auth.test") == 2)
        await clock.sleeping()
        assert not task.done()
        assert isinstance(await channel.send(place(), "hello"), Sent)


async def test_socket_mode_that_is_switched_off_stops_the_channel(fake: FakeSlack, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    async with running(channel_at(fake, clock), inbox) as task:
        await fake.sockets.disconnect("link_disabled")
        stopped = await fate(task, clock)
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.MISCONFIGURED


@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
@pytest.mark.parametrize("status", [500, 503])
async def test_a_server_in_trouble_is_no_reason_to_stop(
    fake: FakeSlack, inbox: RecordingInbox, method: str, status: int
) -> None:
    fake.fail(method, status=status)
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        assert isinstance(await fate(task), ConnectionError)
    async with running(channel, inbox):
        await fake.say("hello")


async def test_the_wait_that_slack_asks_for_before_a_link_is_kept(fake: FakeSlack, inbox: RecordingInbox) -> None:
    fake.fail("apps.connections.open", error="ratelimited", status=429, headers={"Retry-After": "17"})
    clock = NotingClock()
    async with running_task(channel_at(fake, clock), inbox) as task:
        await clock.sleeping()
        assert clock.naps[-1] == 17
        await clock.advance(17)
        assert isinstance(await fate(task), ConnectionError)


def test_the_sdk_is_loaded_only_by_a_bot_that_runs() -> None:
    code = (
        "import sys\n"
        "from bridges.text.slack import SlackChannel\n"
        "from harness_client.clock import SYSTEM_CLOCK\n"
        "SlackChannel('ops', bot_token='b', app_token='a', api=None, commands=(), clock=SYSTEM_CLOCK, hide=print)\n"
        "print(sorted({'slack_bolt', 'slack_sdk'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert done.stdout.strip() == "[]"

"""Discord's way in, with the real SDK on real sockets: links that break, sessions that end, tokens that die."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator

import pytest

from bridges.message import Acceptance, ChannelStopped, Stop
from bridges.text.discord import WAITING
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.channels.discord import channel_at, place, running
from tests.fakes.clock import FakeClock
from tests.fakes.discord import FakeDiscord, How
from tests.guards.sources import ROOT


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


@pytest.mark.parametrize(
    "how", [{"status": 503}, {"drop": True, "times": 2}, {"status": 403}, {"status": 503, "after": 1}]
)
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


@pytest.mark.parametrize("how", ["asked to reconnect", "resumable end", "4000", "1000", "4008", "4009", "cut"])
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


async def test_a_session_that_ended_for_good_is_followed_by_a_new_one(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    async with running(channel, inbox):
        await fake.gateway.say(9, False)
        await write(fake, "lost: nobody knows of this chat")
        await eventually(lambda: clock.sleepers == 2)  # the watchdog, and the distance between two new sessions
        assert fake.gateway.identifies == 1
        await clock.advance(5)
        await fake.until(lambda: bool(fake.gateway.sessions))
        await write(fake, "heard")
        await inbox.heard(1)
    assert texts(inbox) == ["heard"]
    await channel.close()


async def test_a_session_is_resumed_where_the_server_said(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    fake.gateway.resume_at = "/elsewhere"
    channel = channel_at(fake)
    async with running(channel, inbox):
        await fake.gateway.say(7)
        await fake.until(lambda: fake.gateway.resumes == 1)
        await write(fake, "heard")
        await inbox.heard(1)
    assert fake.gateway.asked_at == ["/", "/elsewhere"]
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


@pytest.mark.parametrize("logins", [0, 1])
async def test_a_run_that_is_cancelled_at_its_login_leaves_nothing_open(
    fake: FakeDiscord, inbox: RecordingInbox, logins: int
) -> None:
    hold = asyncio.Event()
    fake.fail("GET /users/@me", hold=hold, after=logins)
    channel = channel_at(fake)
    task = asyncio.create_task(channel.run(inbox))
    await fake.until(lambda: fake.count("GET /users/@me") == logins + 1)
    task.cancel()
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()
    hold.set()
    await channel.close()


async def test_a_run_that_is_cancelled_before_it_was_greeted_leaves_nothing_open(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    fake.gateway.silent = True
    channel = channel_at(fake)
    task = asyncio.create_task(channel.run(inbox))
    await fake.until(lambda: len(fake.gateway.links) == 1)
    task.cancel()
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()
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


async def test_the_sdk_is_loaded_by_the_first_run_and_not_before() -> None:
    loaded = "import sys, bridges.channels, bridges.text.discord; sys.exit('discord' in sys.modules)"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", loaded, cwd=ROOT)
    assert await child.wait() == 0


async def test_a_fault_of_ours_in_an_event_is_logged_without_what_was_said(
    fake: FakeDiscord, inbox: RecordingInbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> bool:
        raise LookupError("secret words")

    channel = channel_at(fake)
    async with running(channel, inbox):
        monkeypatch.setattr(channel, "_take", broken)
        await write(fake, "secret words")
        await fake.gateway.taken()
        monkeypatch.undo()
        await write(fake, "next")
        await inbox.heard(1)
    told = capsys.readouterr()
    assert "event not understood" in told.out
    assert "LookupError" in told.out
    assert "secret" not in told.out + told.err
    await channel.close()

"""Telegram's way in, with the real SDK on a real socket."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator

import pytest

from bridges.http import BODY_LIMIT
from bridges.message import Acceptance, ChannelStopped, Stop
from bridges.state import BotKey
from bridges.supervise import LONGEST_DELAY, Link, Supervisor
from bridges.text.telegram import POLL_SECONDS
from bridges.text.telegram_api import DEAF_SECONDS
from tests.bridges.bench import eventually
from tests.channels.around import NotingClock, RecordingInbox
from tests.channels.telegram import channel_at, running
from tests.fakes.clock import FakeClock
from tests.fakes.telegram import FakeTelegram, How, Obj


@pytest.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


def hello(fake: FakeTelegram, text: str = "hello") -> Obj:
    return fake.write.update(fake.write.message(text))


async def test_an_update_is_confirmed_after_it_was_accepted(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    inbox.answers.append(OSError("no space left"))
    update = hello(fake)
    await fake.deliver(update)
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await asyncio.wait({task})
        assert isinstance(task.exception(), OSError)
    assert fake.pending == [update], "what was not written down stays with the platform"
    async with running(channel, inbox):
        await fake.taken(update)
    assert [message.text for message in inbox.messages] == ["hello"]
    await channel.close()


async def test_no_update_after_the_one_that_failed_is_confirmed(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    first, second = hello(fake, "1"), hello(fake, "2")
    inbox.answers += [Acceptance.ACCEPTED, OSError("no space left")]
    await fake.deliver(first, second)
    channel = channel_at(fake)
    for _ in range(2):
        async with running(channel, inbox) as task:
            await asyncio.wait({task}, timeout=0 if inbox.messages[1:] else 5)
    async with running(channel, inbox):
        await fake.taken(second)
    assert [message.text for message in inbox.messages][:1] == ["1"]
    assert inbox.messages[-1].text == "2"
    await channel.close()


async def test_a_batch_in_the_wrong_order_is_put_right(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    fake.shuffle = True
    await fake.deliver(*(hello(fake, str(number)) for number in range(5)))
    channel = channel_at(fake)
    async with running(channel, inbox):
        await inbox.heard(5)
        await fake.until(lambda: not fake.pending)
    assert [message.text for message in inbox.messages] == ["0", "1", "2", "3", "4"]
    await channel.close()


async def test_no_start_names_an_offset(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    for number in range(2):
        update = hello(fake, str(number))
        await fake.deliver(update)
        async with running(channel, inbox):
            await fake.taken(update)
        polls = [call.params for call in fake.calls if call.method == "getupdates"]
        assert "offset" not in polls[0]
        fake.calls.clear()
    await channel.close()


async def test_ids_that_start_anew_after_a_quiet_week_are_heard(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox):
        await fake.deliver(hello(fake))
        await inbox.heard(1)
    await fake.until(lambda: True)
    fake.pending.clear()
    await fake.deliver(fake.write.update(fake.write.message("small id"), id_=3))
    async with running(channel, inbox):
        await inbox.heard(2)
    assert inbox.messages[-1].text == "small id"
    await channel.close()


SECRET = "the secret words"

NONSENSE: list[Obj] = [
    {"message": SECRET},
    {"message": {}},
    {"message": {"text": SECRET}},
    {"date": 2**62, "text": SECRET},
    {"date": SECRET},
    {"text": {"words": SECRET}},
    {"text": [SECRET]},
    {"text": SECRET, "entities": [{"type": "mention", "offset": "0", "length": 3}]},
    {"text": SECRET, "entities": [{"type": "mention", "offset": 2**80, "length": 3}]},
    {"text": SECRET, "entities": {"type": SECRET}},
    {"text": SECRET, "from": 7},
    {"text": SECRET, "chat": None},
    {"photo": SECRET},
    {"document": {"file_name": SECRET}},
]


@pytest.mark.parametrize("change", NONSENSE, ids=lambda change: json.dumps(change)[:60])
async def test_an_update_that_makes_no_sense_holds_up_nothing_and_is_not_logged(
    fake: FakeTelegram, inbox: RecordingInbox, caplog: pytest.LogCaptureFixture, change: Obj
) -> None:
    caplog.set_level(logging.INFO)
    update = hello(fake)
    message = update["message"]
    assert isinstance(message, dict)
    bad = update | change if "message" in change else update | {"message": message | change}
    good = hello(fake, "good")
    await fake.deliver(bad, good)
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await fake.taken(good)
        assert not task.done()
    assert fake.pending == [], "both are confirmed"
    assert inbox.messages[-1].text == "good"
    assert SECRET not in caplog.text
    await channel.close()


@pytest.mark.parametrize(
    "page",
    [
        f'{{"ok": true, "result": "{SECRET}"}}',
        f'{{"ok": true, "result": ["{SECRET}"]}}',
        f'{{"ok": true, "result": [{{"message": "{SECRET}"}}]}}',
        f'{{"ok": true, "result": [{{"update_id": true, "message": "{SECRET}"}}]}}',
        f'{{"ok": true, "said": "{SECRET}"}}',
        f'["{SECRET}"]',
        f"<html>{SECRET}</html>",
        "",
        pytest.param('{"result": [' + " " * BODY_LIMIT + "]}", id="endless"),
        pytest.param('{"result": ' + "[" * 200_000, id="deep"),
    ],
)
@pytest.mark.parametrize("status", [200, 404, 401, 403, 503])
async def test_what_is_no_answer_ends_the_run_and_is_neither_logged_nor_believed(
    fake: FakeTelegram, inbox: RecordingInbox, caplog: pytest.LogCaptureFixture, page: str, status: int
) -> None:
    caplog.set_level(logging.INFO)
    fake.fail("getUpdates", status=status, page=page)
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        await asyncio.wait({task}, timeout=10)
        assert isinstance(task.exception(), ConnectionError), "it comes again, after a back-off"
    assert SECRET not in caplog.text + str(task.exception())
    async with running(channel, inbox):
        await fake.deliver(hello(fake))
        await inbox.heard(1)
    await channel.close()


async def test_a_proxy_that_answers_in_telegrams_place_does_not_stop_the_bot(
    fake: FakeTelegram, inbox: RecordingInbox
) -> None:
    channel = channel_at(fake)
    for status in (401, 404):
        fake.fail("getMe", status=status, page="<html><h1>Not here</h1></html>")
        with pytest.raises(ConnectionError, match="not Telegram"):
            await channel.run(inbox)
    async with running(channel, inbox) as task:
        assert not task.done()
    await channel.close()


async def test_flood_control_of_the_log_in_is_obeyed(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    clock = NotingClock()
    fake.fail("getMe", status=429, description="Too Many Requests", parameters={"retry_after": 500})
    channel = channel_at(fake, clock)
    task = asyncio.create_task(channel.run(inbox))
    await eventually(lambda: clock.naps == [500.0])
    await clock.advance(499)
    assert not task.done()
    await clock.advance(1)
    await asyncio.wait({task}, timeout=10)
    with pytest.raises(ConnectionError, match="more slowly"):
        task.result()
    await channel.close()


async def test_ids_that_start_anew_while_the_bot_runs_are_heard_and_confirmed(
    fake: FakeTelegram, inbox: RecordingInbox
) -> None:
    fake.longest_poll = 0.02
    channel = channel_at(fake)
    async with running(channel, inbox):
        await fake.deliver(first := hello(fake))
        await fake.taken(first)
        polls = fake.count("getUpdates")
        await fake.until(lambda: fake.count("getUpdates") >= polls + 3)
        await fake.deliver(small := fake.write.update(fake.write.message("small id"), id_=3))
        await fake.taken(small)
        last = [call.params.get("offset") for call in fake.calls if call.method == "getupdates"]
        assert last[-2:] == [None, "4"], "what was confirmed is not named again: it could be above what comes"
    assert [message.text for message in inbox.messages] == ["hello", "small id"]
    await channel.close()


async def test_only_messages_are_asked_for(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox):
        poll = next(call.params for call in fake.calls if call.method == "getupdates")
    assert poll["allowed_updates"] == '["message"]'
    await channel.close()


async def test_a_webhook_gives_way_and_drops_nothing(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    fake.webhook = "https://elsewhere.example/hook"
    await fake.deliver(hello(fake))
    channel = channel_at(fake)
    async with running(channel, inbox):
        await inbox.heard(1)
    await channel.close()


async def test_a_wrong_token_stops_the_bot_and_is_not_told(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    channel = channel_at(fake, token="1:wrong-token")
    with pytest.raises(ChannelStopped, match="@BotFather") as caught:
        await channel.run(inbox)
    assert caught.value.why is Stop.NEEDS_LOGIN
    assert "wrong-token" not in "".join(traceback.format_exception(caught.value))
    await channel.close()


async def test_a_token_taken_back_stops_the_bot(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    async with running(channel, inbox) as task:
        fake.fail("getUpdates", status=401, description="Unauthorized", times=None)
        await fake.deliver(hello(fake))
        await asyncio.wait({task}, timeout=10)
        assert isinstance(task.exception(), ChannelStopped)
    await channel.close()


async def test_another_poller_is_no_reason_to_stop_for_good(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    channel, other = channel_at(fake), channel_at(fake)
    async with running(channel, inbox) as task, running(other, RecordingInbox()):
        await asyncio.wait({task}, timeout=10)
        with pytest.raises(ConnectionError, match="another program"):
            task.result()
    await channel.close()
    await other.close()


async def test_flood_control_of_polls_is_obeyed(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    clock = NotingClock()
    fake.fail("getUpdates", status=429, description="Too Many Requests", parameters={"retry_after": 30})
    channel = channel_at(fake, clock)
    task = asyncio.create_task(channel.run(inbox))
    await fake.until(lambda: fake.count("getUpdates") == 1)
    await eventually(lambda: clock.naps == [30.0])
    await clock.advance(29)
    assert fake.count("getUpdates") == 1
    await clock.advance(1)
    await inbox.until(lambda: inbox.ups == 1)
    task.cancel()
    await asyncio.wait({task})
    await channel.close()


@pytest.mark.parametrize("how", [{"status": 502}, {"drop": True}, {"status": 500, "description": "oops"}])
async def test_a_failed_poll_ends_the_run_without_losing_anything(
    fake: FakeTelegram, inbox: RecordingInbox, how: How
) -> None:
    channel = channel_at(fake)
    update = hello(fake)
    async with running(channel, inbox) as task:
        fake.fail("getUpdates", **how)
        await fake.deliver(update)
        await asyncio.wait({task}, timeout=0.2)
        if task.done():
            assert isinstance(task.exception(), ConnectionError)
    async with running(channel, inbox):
        await fake.taken(update)
    assert {message.text for message in inbox.messages} == {"hello"}
    await channel.close()


async def test_a_deaf_link_is_noticed_within_a_minute_and_opened_again(
    fake: FakeTelegram, inbox: RecordingInbox
) -> None:
    clock = FakeClock()
    channel = channel_at(fake, clock)
    supervisor = Supervisor(BotKey("telegram", "ops"), channel, inbox, redact=str, clock=clock, chance=lambda: 0.0)
    task = asyncio.create_task(supervisor.run())
    await inbox.until(lambda: inbox.ups == 1)
    await fake.until(lambda: fake.count("getUpdates") == 2)
    silent = asyncio.Event()
    fake.fail("getUpdates", hold=silent)
    await fake.deliver(hello(fake))  # the poll under way brings it; the next one meets silence
    await fake.until(lambda: fake.count("getUpdates") == 3)
    assert POLL_SECONDS + DEAF_SECONDS < 60
    await eventually(lambda: clock.sleepers == 1)
    await clock.advance(POLL_SECONDS + DEAF_SECONDS + 1)
    await inbox.until(lambda: inbox.ups == 2)
    await fake.deliver(hello(fake, "again"))
    await inbox.until(lambda: inbox.messages[-1].text == "again")
    assert supervisor.health.link is Link.UP
    silent.set()
    task.cancel()
    await asyncio.wait({task})


async def test_starting_and_stopping_five_times_gives_each_message_once(
    fake: FakeTelegram, inbox: RecordingInbox
) -> None:
    channel = channel_at(fake)
    for number in range(5):
        async with running(channel, inbox):
            update = hello(fake, str(number))
            await fake.deliver(update)
            await fake.taken(update)
    assert [message.text for message in inbox.messages] == ["0", "1", "2", "3", "4"]
    await channel.close()
    await channel.close()


async def test_a_poll_that_is_cancelled_ends_at_once(fake: FakeTelegram, inbox: RecordingInbox) -> None:
    channel = channel_at(fake)
    for _ in range(10):
        async with running(channel, inbox) as task:
            task.cancel()
            async with asyncio.timeout(5):
                await asyncio.wait({task})
    await channel.close()


async def test_ten_hours_without_the_platform_cost_little_and_end_by_themselves(
    fake: FakeTelegram, inbox: RecordingInbox
) -> None:
    clock = NotingClock()
    channel = channel_at(fake, clock)
    supervisor = Supervisor(BotKey("telegram", "ops"), channel, inbox, redact=str, clock=clock, chance=lambda: 1.0)
    fake.fail("getMe", status=502, times=None)
    task = asyncio.create_task(supervisor.run())
    tasks = losses = 0
    end = clock.monotonic() + 10 * 3600
    while clock.monotonic() < end:
        await clock.napping(losses := losses + 1)
        tasks = max(tasks, len(asyncio.all_tasks()))
        await clock.advance(LONGEST_DELAY)
    assert supervisor.health.error == "ConnectionError: NetworkError"
    assert 0 < fake.count("getMe") <= 10 * 3600 / LONGEST_DELAY + 10
    assert len(asyncio.all_tasks()) <= tasks <= 20
    await clock.napping(losses + 1)
    fake.forgive()
    await fake.deliver(hello(fake))
    await clock.advance(LONGEST_DELAY)
    await inbox.heard(1)
    task.cancel()
    await asyncio.wait({task})

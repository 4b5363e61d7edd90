"""WeCom: the life of a link: subscribing, heartbeats, being replaced, and every way a connection ends."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import pytest

from bridges.http import CONNECT_SECONDS
from bridges.message import ChannelStopped, Sent, Stop
from bridges.state import BotKey
from bridges.supervise import Link, Supervisor
from bridges.wecom.channel import REFUSALS
from bridges.wecom.connection import BEAT_SECONDS, SUBSCRIBE_SECONDS, Ended, Refused
from tests.bridges.bench import eventually
from tests.channels.wecom import Line, line_on, platform
from tests.fakes.wecom import BOT_ID, SECRET, FakeWeCom, Fault, Obj


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeCom]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeWeCom) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


async def again(line: Line) -> None:
    """Run once more, as the supervisor does, and see that messages flow."""
    await line.start()
    await line.says("after")
    assert line.inbox.messages[-1].text == "after"


async def beat(fake: FakeWeCom, line: Line) -> None:
    """Let the time of one heartbeat pass, and its answer arrive."""
    before = fake.pings
    await line.clock.advance(BEAT_SECONDS)
    await eventually(lambda: fake.pings == before + 1)
    await fake.read()


async def test_the_bot_subscribes(fake: FakeWeCom, line: Line) -> None:
    (frame,) = fake.frames
    assert (frame["cmd"], frame["body"]) == ("aibot_subscribe", {"bot_id": BOT_ID, "secret": SECRET})
    assert line.inbox.ups == 1


async def test_a_callback_may_come_before_the_subscription_is_confirmed(fake: FakeWeCom) -> None:
    fake.eager = True
    await fake.says("early")
    async with line_on(fake) as line:
        assert [message.text for message in await line.inbox.heard()] == ["early"]


async def test_a_wrong_secret_stops_the_bot_at_the_third_refusal(fake: FakeWeCom) -> None:
    line = Line(fake, secret="wrong-fake")
    for _ in range(REFUSALS - 1):
        await line.start()
        assert isinstance(await line.ended(), Refused)
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.MISCONFIGURED
    assert "wrong-fake" not in str(stopped)
    await line.channel.close()


async def test_a_busy_platform_says_nothing_about_the_secret(fake: FakeWeCom) -> None:
    line = Line(fake)
    fake.fail("aibot_subscribe", *[Fault(code=45009)] * REFUSALS)
    for _ in range(REFUSALS):
        await line.start()
        assert isinstance(await line.ended(), Refused)
    await again(line)
    await line.stop()
    await line.channel.close()


async def test_a_success_forgets_earlier_refusals(fake: FakeWeCom) -> None:
    line = Line(fake)
    for _ in range(2):
        fake.fail("aibot_subscribe", *[Fault(code=40001)] * (REFUSALS - 1))
        for _ in range(REFUSALS - 1):
            await line.start()
            assert isinstance(await line.ended(), Refused)
        await again(line)
        await line.lose()
    await line.channel.close()


async def test_a_secret_that_changes_while_the_bot_runs_stops_it(fake: FakeWeCom, line: Line) -> None:
    fake.secret = "rotated-fake"
    await line.lose()
    ends = []
    for _ in range(REFUSALS):
        await line.start()
        ends.append(type(await line.ended()))
    assert ends == [Refused, Refused, ChannelStopped]


async def test_no_answer_to_the_subscription_ends_the_run(fake: FakeWeCom) -> None:
    fake.mute = True
    line = Line(fake)
    line.begin()
    await eventually(lambda: bool(fake.frames))
    await line.clock.advance(SUBSCRIBE_SECONDS + 1)
    assert str(await line.ended()) == "no answer to the subscription"
    await line.channel.close()


async def test_heartbeats_go_on_and_are_answered(fake: FakeWeCom, line: Line) -> None:
    for _ in range(4):
        await beat(fake, line)
    assert line.task is not None
    assert not line.task.done()


async def test_two_heartbeats_without_an_answer_end_the_link(fake: FakeWeCom, line: Line) -> None:
    fake.silent_heart = True
    for _ in range(2):
        await beat(fake, line)
    await line.clock.advance(BEAT_SECONDS)
    assert str(await line.ended()) == "no answer to 2 heartbeats"
    fake.silent_heart = False
    await again(line)


@pytest.mark.parametrize("leaves_open", [False, True])
async def test_a_replaced_bot_stops_and_does_not_fight(fake: FakeWeCom, line: Line, leaves_open: bool) -> None:
    fake.leaves_open = leaves_open
    async with line_on(fake) as other:
        stopped = await line.ended()
        assert isinstance(stopped, ChannelStopped)
        assert stopped.why is Stop.REPLACED
        assert (await other.says("to the other")).text == "to the other"
    assert fake.subscribed == 2


async def test_the_supervisor_leaves_a_replaced_bot_alone(fake: FakeWeCom) -> None:
    line = Line(fake)
    supervisor = Supervisor(BotKey("wecom", "bot"), line.channel, line.inbox, redact=str, clock=line.clock)
    task = asyncio.create_task(supervisor.run())
    await eventually(lambda: supervisor.health.link is Link.UP)
    await fake.event("disconnected_event")
    await asyncio.wait_for(task, 10)
    assert (supervisor.health.link, supervisor.health.why) == (Link.STOPPED, Stop.REPLACED)
    assert fake.connections == 1


@pytest.mark.parametrize("code", [1000, 1001, 1011, 4000])
async def test_a_closed_link_is_made_anew(fake: FakeWeCom, line: Line, code: int) -> None:
    await fake.close(code)
    assert isinstance(await line.ended(), Ended)
    await again(line)


async def test_a_reset_is_a_lost_connection(fake: FakeWeCom, line: Line) -> None:
    fake.abort()
    assert isinstance(await line.ended(), Ended)
    await again(line)


@pytest.mark.parametrize("status", [401, 502])
async def test_a_refused_upgrade_is_a_lost_connection(fake: FakeWeCom, status: int) -> None:
    fake.statuses.append(status)
    line = Line(fake)
    await line.start()
    assert str(await line.ended()) == f"refused: HTTP {status}"
    await again(line)
    await line.stop()
    await line.channel.close()


async def test_a_host_that_is_not_there_or_does_not_answer(fake: FakeWeCom) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fake.url = f"ws://127.0.0.1:{silent.getsockname()[1]}"
        line = Line(fake)
        line.begin()
        await line.clock.sleeping()
        await line.clock.advance(CONNECT_SECONDS + 1)
        assert str(await line.ended()) == "no connection: TimeoutError"
    await line.start()
    assert str(await line.ended()).startswith("no connection: ")
    await line.channel.close()


async def test_a_message_that_could_not_be_claimed_is_the_first_of_the_next_run(fake: FakeWeCom, line: Line) -> None:
    line.inbox.answers.append(OSError("disk full"))
    await fake.says("one")
    assert isinstance(await line.ended(), OSError)
    await line.start()
    await fake.says("two")
    assert [message.text for message in await line.inbox.heard(2)] == ["one", "two"]


async def test_a_message_delivered_twice_keeps_its_id(fake: FakeWeCom, line: Line) -> None:
    frame = await fake.says("hi")
    await fake.deliver(fake.again(frame))
    one, two = await line.inbox.heard(2)
    assert one.id == two.id
    assert one.reply_to.route != two.reply_to.route


async def test_odd_frames_harm_nothing(fake: FakeWeCom, line: Line) -> None:
    await fake.tell(json.dumps({"cmd": "aibot_msg_callback", "headers": {"req_id": "x"}, "body": {"msgid": 7}}))
    await fake.tell(json.dumps({"cmd": "something_new", "headers": {"req_id": "y"}, "body": []}))
    await fake.tell(json.dumps({"headers": {"req_id": "nobody asked"}, "errcode": 0}))
    await fake.event("enter_chat")
    await fake.event("feedback_event")
    assert (await line.says("fine")).text == "fine"


async def test_control_characters_inside_strings_are_read(fake: FakeWeCom, line: Line) -> None:
    frame = fake.callback({"msgtype": "text", "text": {"content": "one TAB two"}})
    await fake.tell(json.dumps(frame).replace(" TAB ", "\t"))
    assert [message.text for message in await line.inbox.heard()] == ["one\ttwo"]


@pytest.mark.parametrize("data", ["{", "[]", '{"headers": 7}', "[" * 100_000])
async def test_a_frame_that_is_none_is_a_lost_connection(fake: FakeWeCom, line: Line, data: str) -> None:
    await fake.tell(data)
    assert isinstance(await line.ended(), Ended)
    await again(line)


@pytest.mark.parametrize("frame", [
    {"cmd": "aibot_msg_callback", "headers": {"req_id": "r"}, "body": None},
    {"cmd": "aibot_msg_callback", "headers": {}, "body": {"msgid": "m", "from": {"userid": "u"}}},
    {"cmd": "aibot_msg_callback", "headers": {"req_id": "\ud800"}, "body": {"msgid": "m", "from": {"userid": "u"}}},
    {"cmd": "aibot_event_callback", "headers": {"req_id": "r"}, "body": {"event": "disconnected_event"}},
    {"cmd": "aibot_event_callback", "headers": {"req_id": "r"}, "body": {"event": {"eventtype": "enter_chat"}}},
    {"cmd": "what", "headers": {"req_id": "r"}, "body": [[[]]]},
    {"headers": {"req_id": "never-sent"}, "errcode": 0},
    {"headers": {"req_id": "never-sent"}, "errcode": None},
    {"headers": {}},
    {},
])  # fmt: skip
async def test_odd_frames_are_passed_over(fake: FakeWeCom, line: Line, frame: Obj) -> None:
    await fake.tell(json.dumps(frame))
    assert (await line.says("fine")).text == "fine"
    assert line.task is not None
    assert not line.task.done()


async def test_five_starts_give_one_reply(fake: FakeWeCom, line: Line) -> None:
    for _ in range(5):
        await line.stop()
        await line.start()
    message = await line.says()
    assert isinstance(await line.channel.send(message.reply_to, "once"), Sent)
    assert (len(line.inbox.messages), fake.texts()) == (1, ["once"])
    assert fake.subscribed == 1


async def test_a_bot_that_stops_can_still_finish_its_replies(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    await line.stop()
    assert isinstance(await line.channel.send(message.reply_to, "the last one"), Sent)
    await line.channel.close()
    assert fake.texts() == ["the last one"]


async def test_what_ended_the_connection_between_two_runs_is_not_overlooked(fake: FakeWeCom, line: Line) -> None:
    await line.stop()
    await fake.event("disconnected_event")
    await line.start()
    assert isinstance(await line.ended(), ChannelStopped)


async def test_more_messages_than_may_wait_are_not_kept(
    fake: FakeWeCom, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.wecom.channel.WAITING", 2)
    line.inbox.answers.append(OSError("disk full"))
    for text in ("one", "two", "three"):
        await fake.tell(json.dumps(fake.callback({"msgtype": "text", "text": {"content": text}})))
    await line.ended()
    await line.start()
    await line.says("four")
    assert "one" in [message.text for message in line.inbox.messages]


async def test_what_waits_to_be_taken_on_is_bounded(
    fake: FakeWeCom, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.wecom.channel.WAITING", 3)
    line.inbox.answers.append(OSError("disk full"))
    await fake.says("0")
    await line.ended()
    for number in range(1, 6):
        await fake.says(str(number))
    await fake.read()
    await line.start()
    assert [message.text for message in await line.inbox.heard(3)] == ["0", "1", "2"]
    assert (await line.says("later")).text == "later"

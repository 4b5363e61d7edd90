"""Feishu: the life of a link, with the real SDK: every way it begins, ends, and begins again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from bridges.feishu.channel import CONNECT_SECONDS, DEAF_SECONDS
from bridges.feishu.link import Deaf, LinkEnded
from bridges.feishu.pipe import Why
from bridges.feishu.rest import Refused
from bridges.feishu.sdk import DISCOVERY_BYTES
from bridges.http import CallFailed
from bridges.message import ChannelStopped, Stop
from tests.bridges.bench import eventually
from tests.channels.around import SlowInbox
from tests.channels.feishu import Line, line_on, platform
from tests.fakes.feishu import ALICE, Delivery, FakeFeishu, Fault, message
from tests.fakes.feishu.frame import DATA, Frame


@pytest.fixture
async def fake() -> AsyncIterator[FakeFeishu]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeFeishu) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


async def again(line: Line) -> None:
    """Run once more, as the supervisor does, and see that messages flow."""
    await line.start()
    assert (await line.says("after")).text == "after"


# -- in ----------------------------------------------------------------------------------------------------------------


async def test_a_message_is_acknowledged_once_it_is_taken(fake: FakeFeishu, line: Line) -> None:
    delivery = await fake.says("hi")
    await asyncio.wait_for(delivery.acknowledged.wait(), 10)
    assert delivery.code == 200
    assert [each.text for each in line.inbox.messages] == ["hi"]


async def test_nothing_is_acknowledged_before_it_is_taken_and_nobody_else_waits(fake: FakeFeishu, line: Line) -> None:
    slow = line.inbox = SlowInbox()
    await line.stop()
    await line.start()
    first, second = await fake.says("one"), await fake.says("two")
    await slow.asked.wait()
    async with platform() as elsewhere, line_on(elsewhere) as other:
        await other.says("to another bot of the same process")
    assert not first.acknowledged.is_set()
    assert not second.acknowledged.is_set()
    slow.free.set()
    for delivery in (first, second):
        await asyncio.wait_for(delivery.acknowledged.wait(), 10)
    assert [each.text for each in slow.messages] == ["one", "two"], "in the order they were said"


async def test_what_could_not_be_claimed_comes_again(fake: FakeFeishu, line: Line) -> None:
    line.inbox.answers.append(OSError("disk full"))
    delivery = await fake.says("hi")
    await asyncio.wait_for(delivery.acknowledged.wait(), 10)
    assert delivery.code == 500
    await fake.gateway.again()
    await asyncio.wait_for(delivery.acknowledged.wait(), 10)
    assert delivery.code == 200
    assert [each.text for each in line.inbox.messages] == ["hi"]


async def test_the_id_is_the_messages_and_not_the_events(fake: FakeFeishu, line: Line) -> None:
    event = message({"text": "hi"})
    await fake.deliver(event)
    await fake.deliver({**event, "header": {"event_id": "another", "event_type": "im.message.receive_v1"}})
    one, two = await line.inbox.heard(2)
    assert one.id == two.id


@pytest.mark.parametrize("parts", [2, 3, 64])
async def test_an_event_in_several_frames(fake: FakeFeishu, line: Line, parts: int) -> None:
    text = "长" * 50_000
    delivery = await fake.deliver(message({"text": text}), parts=parts)
    await asyncio.wait_for(delivery.acknowledged.wait(), 10)
    assert line.inbox.messages[0].text == text


@pytest.mark.parametrize(
    "odd",
    [
        {"sum": "2", "seq": "2"},
        {"sum": "2", "seq": "-1"},
        {"sum": "x"},
        {"sum": "0"},
        {"sum": "65", "seq": "0"},
        {"sum": "99999999999999999999", "seq": "0"},
        {"seq": "first"},
        {"type": "card"},
        {"type": "hologram"},
    ],
)
async def test_a_part_that_fits_nowhere_is_left_out_and_the_link_stays(
    fake: FakeFeishu, line: Line, odd: dict[str, str]
) -> None:
    headers = {"type": "event", "message_id": "push-odd", "sum": "1", "seq": "0", "trace_id": "t", **odd}
    payload = json.dumps(message({"text": "odd"})).encode()
    await fake.gateway.sockets[-1].send_bytes(Frame(DATA, headers, payload).encode())
    await fake.gateway.sockets[-1].send_bytes(Frame(DATA, {}, payload).encode())
    assert (await line.says("even")).text == "even"
    assert [each.text for each in line.inbox.messages] == ["even"]


async def test_parts_that_come_twice_and_in_another_order_are_one_event(fake: FakeFeishu, line: Line) -> None:
    first, second, third = Delivery("push-mixed", json.dumps(message({"text": "hi"})).encode(), 3).frames()
    for frame in (third, first, first, third, second):
        await fake.gateway.sockets[-1].send_bytes(frame.encode())
    await line.says("next")
    assert [each.text for each in line.inbox.messages] == ["hi", "next"]


async def test_events_nobody_asked_for_are_acknowledged(fake: FakeFeishu, line: Line) -> None:
    for event in (
        {"schema": "2.0", "header": {"event_type": "im.message.message_read_v1"}, "event": {}},
        {"header": {"event_type": "im.message.receive_v1"}, "event": {"broken": True}},
    ):
        delivery = await fake.deliver(dict(event))
        await asyncio.wait_for(delivery.acknowledged.wait(), 10)
        assert delivery.code == 200
    assert line.inbox.messages == []


async def test_a_frame_that_is_none_harms_nothing(fake: FakeFeishu, line: Line) -> None:
    await fake.gateway.sockets[-1].send_bytes(b"\xff\xff\xff")
    await fake.gateway.sockets[-1].send_str("hello")
    assert (await line.says("still here")).text == "still here"


async def test_hundreds_at_once_are_all_taken_or_come_again(fake: FakeFeishu, line: Line) -> None:
    deliveries = [await fake.says(str(number)) for number in range(600)]
    for delivery in deliveries:
        await asyncio.wait_for(delivery.acknowledged.wait(), 30)
    while left := [each for each in deliveries if each.code != 200]:
        await fake.gateway.again()
        for delivery in left:
            await asyncio.wait_for(delivery.acknowledged.wait(), 30)
    assert {each.text for each in line.inbox.messages} == {str(number) for number in range(600)}


# -- beginnings --------------------------------------------------------------------------------------------------------


async def test_who_we_are_is_asked_and_tokens_are_kept_out_of_the_log(fake: FakeFeishu, line: Line) -> None:
    assert fake.calls == ["token", "info", "discover"]
    assert line.hidden == fake.tokens
    assert line.inbox.ups == 1


async def test_who_we_are_is_asked_once_however_often_the_link_is_lost(fake: FakeFeishu, line: Line) -> None:
    for _ in range(3):
        fake.gateway.cut()
        await line.ended()
        await line.start()
    assert fake.calls.count("info") == 1, "a tenant that pays nothing has 10,000 calls a month"


async def test_a_wrong_secret_stops_the_bot_and_says_so(fake: FakeFeishu) -> None:
    fake.rotate()
    line = Line(fake)
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.MISCONFIGURED
    assert "app_secret" in str(stopped)
    await line.channel.close()


async def test_an_app_that_is_no_bot_is_told_so(fake: FakeFeishu) -> None:
    fake.is_bot = False
    line = Line(fake)
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert "bot" in str(stopped)
    await line.channel.close()


@pytest.mark.parametrize("code", [10003, 403, 514, 1000040344])
async def test_a_discovery_refused_for_good_stops_the_bot(fake: FakeFeishu, code: int) -> None:
    fake.fail("discover", Fault(code=code))
    line = Line(fake)
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.MISCONFIGURED
    assert str(code) in str(stopped)
    await line.channel.close()


@pytest.mark.parametrize(
    ("headers", "outcome"),
    [
        ({"Handshake-Status": "403", "Handshake-Msg": "no", "Handshake-Autherrcode": "1"}, ChannelStopped),
        ({"Handshake-Status": "514", "Handshake-Msg": "no", "Handshake-Autherrcode": "1000040350"}, Why.FULL),
        ({"Handshake-Status": "514", "Handshake-Msg": "no", "Handshake-Autherrcode": "1000040343"}, Why.LOST),
        ({"Handshake-Status": "514", "Handshake-Msg": "no"}, Why.LOST),
        ({}, Why.LOST),
    ],
)
async def test_every_refused_handshake(
    fake: FakeFeishu, headers: dict[str, str], outcome: Why | type[ChannelStopped]
) -> None:
    fake.gateway.refusals.append(headers)
    line = Line(fake)
    await line.start()
    ended = await line.ended()
    if isinstance(outcome, Why):
        assert isinstance(ended, LinkEnded)
        assert ended.why is outcome
        await again(line)
        await line.stop()
    else:
        assert isinstance(ended, outcome)
    await line.channel.close()


@pytest.mark.parametrize(
    ("call", "fault", "error"),
    [
        ("token", Fault(status=500), CallFailed),
        ("token", Fault(body=b"<html>"), CallFailed),
        ("token", Fault(body=b'{"code": 0, "tenant_access_token": ""}'), CallFailed),
        ("token", Fault(status=400, code=99991400), Refused),
        ("info", Fault(status=502), CallFailed),
        ("info", Fault(status=400, code=11205), Refused),
        ("discover", Fault(status=502), LinkEnded),
        ("discover", Fault(code=1), LinkEnded),
        ("discover", Fault(code=1000040343), LinkEnded),
        ("discover", Fault(drop=True), LinkEnded),
        ("discover", Fault(body=b"<html>"), LinkEnded),
        ("discover", Fault(status=307, headers=(("Location", "/callback/ws/endpoint"),)), LinkEnded),
        ("discover", Fault(body=b'{"code": 0, "data": {"URL": "http://127.0.0.1:1/x"}}'), LinkEnded),
    ],
)
async def test_a_bad_moment_passes(fake: FakeFeishu, call: str, fault: Fault, error: type[Exception]) -> None:
    fake.fail(call, fault)
    line = Line(fake)
    await line.start()
    ended = await line.ended()
    assert isinstance(ended, error)
    assert "fake" not in str(ended), "no secret, no ticket"
    assert fake.gateway.handshakes == 0, "what it said was not followed"
    await again(line)
    await line.stop()
    await line.channel.close()


async def test_a_discovery_is_not_read_without_end(fake: FakeFeishu) -> None:
    long = {"code": 0, "msg": "x" * DISCOVERY_BYTES, "data": fake.gateway.discovered(fake.url)}
    fake.fail("discover", Fault(body=json.dumps(long).encode()))
    line = Line(fake)
    await line.start()
    assert isinstance(await line.ended(), LinkEnded)
    assert fake.gateway.handshakes == 0
    await line.channel.close()


async def test_a_discovery_that_never_answers_is_given_up_and_holds_up_nobody(fake: FakeFeishu) -> None:
    async with line_on(fake) as other:
        fake.fail("discover", Fault(hang=True))
        line = Line(fake)
        task = asyncio.create_task(line.channel.run(line.inbox))
        await eventually(lambda: fake.calls.count("discover") == 2)
        assert (await other.says("quick")).text == "quick", "the other bots of the process go on"
        await line.clock.advance(CONNECT_SECONDS)
        await asyncio.wait({task}, timeout=10)
        assert isinstance(task.exception(), Deaf)
        await line.channel.close()


# -- ends --------------------------------------------------------------------------------------------------------------


async def test_a_close_in_order_and_a_reset_are_lost_links(fake: FakeFeishu, line: Line) -> None:
    await fake.gateway.close()
    assert isinstance(await line.ended(), LinkEnded)
    await again(line)
    fake.gateway.cut()
    assert isinstance(await line.ended(), LinkEnded)
    await again(line)


async def test_what_was_said_meanwhile_comes_with_the_next_link(fake: FakeFeishu, line: Line) -> None:
    await fake.gateway.close()
    await line.ended()
    await fake.says("meanwhile")
    await line.start()
    assert [each.text for each in await line.inbox.heard()] == ["meanwhile"]


async def test_a_platform_that_hears_nothing_is_noticed(fake: FakeFeishu, line: Line) -> None:
    await eventually(lambda: fake.gateway.pings >= 1)
    fake.gateway.deaf = True
    await line.clock.sleeping()
    await line.clock.advance(DEAF_SECONDS)
    assert isinstance(await line.ended(), Deaf)
    fake.gateway.deaf = False
    await again(line)


@pytest.mark.parametrize("conf", [{}, {"PingInterval": 0}, {"PingInterval": 9_999_999}, {"ReconnectCount": 0}])
async def test_whatever_pace_the_platform_asks_for_harms_nothing(fake: FakeFeishu, conf: dict[str, int]) -> None:
    fake.gateway.pong = json.dumps(conf).encode()
    async with line_on(fake) as line:
        await eventually(lambda: fake.gateway.pings >= 1)
        await line.says("one")
        fake.gateway.cut()
        assert isinstance(await line.ended(), LinkEnded)
        await again(line)


async def test_a_secret_that_is_changed_meanwhile_ends_a_bot_that_could_not_reply(fake: FakeFeishu, line: Line) -> None:
    asked = await line.says()
    fake.rotate()
    await line.channel.send(asked.reply_to, "hi")
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.MISCONFIGURED


async def test_started_five_times_it_hears_each_message_once(fake: FakeFeishu, line: Line) -> None:
    for _ in range(4):
        await line.stop()
        await line.start()
    await line.says("hi")
    assert [each.text for each in line.inbox.messages] == ["hi"]
    assert len(fake.gateway.sockets) == 1


async def test_a_bot_that_is_stopped_has_left_the_platform(fake: FakeFeishu, line: Line) -> None:
    await line.stop()
    await eventually(lambda: not fake.gateway.sockets)
    await fake.says("anybody?", sender=ALICE)
    assert line.inbox.messages == []

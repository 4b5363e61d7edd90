"""QQ: the life of a link: tokens, sessions, heartbeats, and every way a connection ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from bridges.http import CallFailed
from bridges.message import ChannelStopped, Stop
from bridges.qq.gateway import GUILDS, HELLO_SECONDS, LONGEST_BEAT, PRIVATE, RESUMES, After, Ended
from bridges.qq.rest import Refused
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors
from tests.channels.qq import Line, platform
from tests.fakes.qq import BOT_ID, FakeQQ, Fault

BEAT = 41.25


@pytest.fixture
async def fake() -> AsyncIterator[FakeQQ]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeQQ) -> AsyncIterator[Line]:
    async with Line(fake).started() as line:
        yield line


async def again(line: Line) -> None:
    """Run once more, as the supervisor does, and see that messages flow."""
    await line.start()
    await line.says("after")
    assert line.inbox.messages[-1].text == "after"


async def beaten(fake: FakeQQ, times: int) -> None:
    await eventually(lambda: len(fake.gateway.beats) == times)


async def test_the_bot_introduces_itself(fake: FakeQQ, line: Line) -> None:
    (body,) = fake.gateway.identified
    assert body == {"token": "QQBot access-token-1-fake", "intents": 1107300352, "shard": [0, 1], "properties": {}}
    assert line.hidden == ["access-token-1-fake"]
    assert line.inbox.ups == 1


async def test_heartbeats_follow_hello_and_name_the_last_accepted_event(fake: FakeQQ, line: Line) -> None:
    await line.says()
    await eventually(lambda: line.cursors.writes[-1:] == ["session"])
    for count in (1, 2):
        await line.clock.advance(BEAT)
        await beaten(fake, count)
        await line.says()
    assert fake.gateway.beats == [2, 3]


async def test_a_gateway_without_a_heart_is_noticed_and_the_session_resumed(fake: FakeQQ, line: Line) -> None:
    fake.gateway.silent_heart = True
    await line.clock.advance(BEAT)
    await eventually(lambda: bool(fake.gateway.beats))
    await line.clock.advance(BEAT)
    ended = await line.ended()
    assert isinstance(ended, Ended)
    assert ended.after is After.RESUME
    fake.gateway.silent_heart = False
    await again(line)
    assert len(fake.gateway.resumed) == 1


async def test_what_was_missed_comes_with_the_resume(fake: FakeQQ, line: Line) -> None:
    await line.says("before")
    await fake.gateway.close(4009)
    await line.ended()
    await fake.says("missed")
    await line.start()
    assert [message.text for message in await line.inbox.heard(2)] == ["before", "missed"]
    (body,) = fake.gateway.resumed
    assert (body["session_id"], body["seq"]) == ("session-1", 2)


async def test_a_new_process_resumes_the_session(fake: FakeQQ) -> None:
    cursors = MemoryCursors()
    async with Line(fake, cursors).started() as first:
        await first.says("before")
        await eventually(lambda: b'"seq":2' in cursors.values["session"])
    await fake.says("missed")
    async with Line(fake, cursors).started() as second:
        assert [message.text for message in await second.inbox.heard()] == ["missed"]
        message = await second.says(f"<@!{BOT_ID}> hello", kind="channels", chat="channel-1")
        assert message.text == "hello", "the bot's own id is known without READY"


async def test_an_event_that_could_not_be_claimed_comes_again(fake: FakeQQ, line: Line) -> None:
    await line.says("one")
    line.inbox.answers.append(OSError("disk full"))
    await fake.says("two")
    assert isinstance(await line.ended(), OSError)
    await line.start()
    assert [message.text for message in await line.inbox.heard(2)] == ["one", "two"]


async def test_an_event_delivered_twice_keeps_its_id(fake: FakeQQ, line: Line) -> None:
    event = await fake.says("hi")
    await fake.deliver(event)
    one, two = await line.inbox.heard(2)
    assert one.id == two.id == event["id"]


@pytest.mark.parametrize("code", [4001, 4002, 4006, 4007, 4900, 4902, 4913])
async def test_ends_that_need_a_new_session(fake: FakeQQ, line: Line, code: int) -> None:
    await line.says()
    await fake.gateway.close(code)
    assert isinstance(await line.ended(), Ended)
    assert b'"id":""' in line.cursors.values["session"], "nor does another process try"
    await again(line)
    assert (len(fake.gateway.identified), len(fake.gateway.resumed)) == (2, 0)


@pytest.mark.parametrize("code", [1000, 1001, 4000, 4005, 4009, 4999])
async def test_ends_after_which_the_session_goes_on(fake: FakeQQ, line: Line, code: int) -> None:
    await fake.gateway.close(code)
    assert isinstance(await line.ended(), Ended)
    await again(line)
    assert (len(fake.gateway.identified), len(fake.gateway.resumed)) == (1, 1)


async def test_a_reset_is_a_lost_connection(fake: FakeQQ, line: Line) -> None:
    fake.gateway.abort()
    assert isinstance(await line.ended(), Ended)
    await again(line)
    assert len(fake.gateway.resumed) == 1


async def test_a_wish_to_reconnect_is_followed(fake: FakeQQ, line: Line) -> None:
    await fake.gateway.tell({"op": 7})
    assert isinstance(await line.ended(), Ended)
    await again(line)
    assert len(fake.gateway.resumed) == 1


async def test_an_invalid_session_begins_a_new_one(fake: FakeQQ, line: Line) -> None:
    fake.gateway.expire()
    await fake.gateway.close(4009)
    await line.ended()
    await line.start()
    assert isinstance(await line.ended(), Ended)
    await again(line)
    assert (len(fake.gateway.resumed), len(fake.gateway.identified)) == (1, 2)


async def test_resumes_that_lead_to_nothing_end(fake: FakeQQ, line: Line) -> None:
    await fake.gateway.close(4009)
    for _ in range(RESUMES):
        await line.ended()
        fake.gateway.refusals.append(4009)
        await line.start()
    await line.ended()
    await again(line)
    assert (len(fake.gateway.resumed), len(fake.gateway.identified)) == (RESUMES, 2)


async def test_a_session_that_times_out_every_half_hour_goes_on_for_ever(fake: FakeQQ, line: Line) -> None:
    for number in range(RESUMES + 2):
        await line.clock.advance(BEAT)
        await beaten(fake, number + 1)
        await line.says()
        await fake.gateway.close(4009)
        await line.ended()
        await line.start()
    assert len(fake.gateway.identified) == 1


async def test_a_token_the_gateway_refuses_is_replaced(fake: FakeQQ, line: Line) -> None:
    fake.revoke()
    fake.valid.add("access-token-1-fake")
    await fake.gateway.close(4009)
    await line.ended()
    await line.start()
    ended = await line.ended()
    assert isinstance(ended, Ended)
    assert ended.after is After.NEW_TOKEN
    await again(line)
    assert len(fake.tokens) == 2


async def test_too_fast_is_answered_with_a_rest(fake: FakeQQ, line: Line) -> None:
    await fake.gateway.close(4008)
    await line.clock.sleeping(1)
    await eventually(lambda: not fake.gateway.ready)
    assert line.task is not None
    async with asyncio.timeout(10):
        while not line.task.done():
            await line.clock.advance(1)
            await asyncio.sleep(0.005)
    assert isinstance(await line.ended(), Ended)
    assert line.clock.monotonic() >= 1_000_000 + 30


async def test_without_a_right_to_guilds_private_chats_still_work(fake: FakeQQ) -> None:
    fake.gateway.granted = PRIVATE
    line = Line(fake)
    await line.start()
    assert isinstance(await line.ended(), Ended)
    await again(line)
    assert [body["intents"] for body in fake.gateway.identified] == [PRIVATE | GUILDS, PRIVATE]
    await line.stop()
    await line.channel.close()


@pytest.mark.parametrize("code", [4010, 4012, 4914, 4915])
async def test_ends_that_only_a_person_can_mend(fake: FakeQQ, line: Line, code: int) -> None:
    await fake.gateway.close(code)
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.MISCONFIGURED
    assert str(code) in str(stopped)


async def test_no_right_to_anything_stops(fake: FakeQQ) -> None:
    fake.gateway.granted = 0
    async with Line(fake).started() as line:
        await line.ended()
        await line.start()
        assert isinstance(await line.ended(), ChannelStopped)


async def test_a_wrong_secret_stops_with_what_to_do(fake: FakeQQ) -> None:
    line = Line(fake, secret="wrong-fake")
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert "client_secret" in str(stopped)
    assert "wrong-fake" not in str(stopped)
    await line.channel.close()


@pytest.mark.parametrize(
    ("name", "fault", "error"),
    [
        ("token", Fault(code=100001), Refused),
        ("token", Fault(status=500), CallFailed),
        ("token", Fault(body=b"<html>"), CallFailed),
        ("token", Fault(body=b'{"access_token": "x", "expires_in": "soon"}'), CallFailed),
        ("token", Fault(drop=True), CallFailed),
        ("gateway", Fault(status=404), Refused),
        ("gateway", Fault(status=503), CallFailed),
        ("gateway", Fault(body=b'{"url": "wss://example.org/"}'), Ended),
        ("gateway", Fault(body=b"{}"), Ended),
    ],
)
async def test_what_fails_at_the_beginning_is_tried_again(
    fake: FakeQQ, name: str, fault: Fault, error: type[Exception]
) -> None:
    fake.fail(name, fault)
    async with Line(fake).started() as line:
        failure = await line.ended()
        assert isinstance(failure, error)
        assert "127.0.0.1" not in str(failure)
        assert "fake" not in str(failure)
        await again(line)


@pytest.mark.parametrize("status", [403, 502])
async def test_a_refused_upgrade_is_tried_again(fake: FakeQQ, status: int) -> None:
    fake.gateway.statuses.append(status)
    async with Line(fake).started() as line:
        assert str(status) in str(await line.ended())
        await again(line)


async def test_a_gateway_that_says_nothing_is_left(fake: FakeQQ) -> None:
    fake.gateway.mute = True
    line = Line(fake)
    line.task = asyncio.create_task(line.channel.run(line.inbox))
    await eventually(lambda: fake.gateway.connections == 1)
    await line.clock.sleeping()
    await line.clock.advance(HELLO_SECONDS + 1)
    assert str(await line.ended()) == "no hello in time"
    fake.gateway.mute = False
    await again(line)
    await line.stop()
    await line.channel.close()


async def test_a_gateway_that_does_not_welcome_is_left(fake: FakeQQ) -> None:
    fake.gateway.unwelcoming = True
    line = Line(fake)
    line.task = asyncio.create_task(line.channel.run(line.inbox))
    await eventually(lambda: bool(fake.gateway.identified))
    await line.clock.sleeping()
    await line.clock.advance(HELLO_SECONDS + 1)
    assert str(await line.ended()) == "no welcome in time"
    await line.channel.close()


async def test_a_token_is_renewed_before_its_end(fake: FakeQQ) -> None:
    fake.life = "100"
    async with Line(fake).started() as line:
        await line.clock.advance(49)
        await fake.gateway.close(4009)
        await line.ended()
        await again(line)
        assert len(fake.tokens) == 1
        await line.clock.advance(2)
        await fake.gateway.close(4009)
        await line.ended()
        await again(line)
        assert len(fake.tokens) == 2


async def test_a_revoked_token_is_replaced_at_the_first_call(fake: FakeQQ, line: Line) -> None:
    fake.revoke()
    await fake.gateway.close(4009)
    await line.ended()
    await line.start()
    assert isinstance(await line.ended(), Ended), "the connection still had the old token"
    await again(line)


async def test_five_starts_give_one_connection(fake: FakeQQ, line: Line) -> None:
    for _ in range(5):
        await line.stop()
        await line.start()
    await line.says()
    assert len(line.inbox.messages) == 1
    assert len(fake.gateway.identified) == 1


async def test_odd_frames_and_events_harm_nothing(fake: FakeQQ, line: Line) -> None:
    await fake.gateway.dispatch("C2C_MESSAGE_CREATE", {"id": 7, "content": "secret"})
    await fake.gateway.dispatch("C2C_MESSAGE_CREATE", {"id": "x", "author": {}})
    await fake.gateway.dispatch("GROUP_ADD_ROBOT", {"group_openid": "g"})
    await fake.gateway.tell({"op": 99, "d": None})
    assert (await line.says("fine")).text == "fine"


async def test_a_frame_that_is_none_is_a_lost_connection(fake: FakeQQ, line: Line) -> None:
    await fake.gateway.tell({"op": "what"})
    assert isinstance(await line.ended(), Ended)
    await again(line)


async def test_an_event_that_cannot_be_read_is_not_resumed_for_ever(fake: FakeQQ, line: Line) -> None:
    await fake.gateway.dispatch("C2C_MESSAGE_CREATE", {"id": "x", "content": json.loads("[" * 900 + "]" * 900)})
    deep = fake.gateway.newest.log[-1]
    deep["s"] = "what"  # not even its number
    await fake.gateway.tell(deep)
    for _ in range(RESUMES + 1):
        assert isinstance(await line.ended(), Ended)
        await line.start()
    assert (await line.says("after")).text == "after"
    assert (len(fake.gateway.resumed), len(fake.gateway.identified)) == (RESUMES, 2)


@pytest.mark.parametrize("data", ["{", "[]", '{"op":0,"d":' + "[" * 100_000 + "]" * 100_000 + "}", '{"op":1e400}', ""])
async def test_no_text_of_the_gateway_is_more_than_a_lost_connection(fake: FakeQQ, line: Line, data: str) -> None:
    await fake.gateway.say(data)
    assert isinstance(await line.ended(), Ended)
    await again(line)


@pytest.mark.parametrize("interval", [0, -5, 1.5, 1e300])
async def test_no_heartbeat_interval_is_too_odd(fake: FakeQQ, interval: float) -> None:
    fake.gateway.interval_ms = interval
    async with Line(fake).started() as line:
        assert (await line.says("fine")).text == "fine"
        await line.clock.advance(LONGEST_BEAT)
        await eventually(lambda: bool(fake.gateway.beats))

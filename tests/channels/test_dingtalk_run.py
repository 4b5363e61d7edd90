"""DingTalk: the life of a link: tickets, acknowledgements, redelivery, and every way a connection ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator

import pytest

from bridges.dingtalk.link import BEAT_SECONDS, DEAF_SECONDS, Ended
from bridges.dingtalk.rest import Refused
from bridges.http import CALL_SECONDS, CONNECT_SECONDS, CallFailed, TimedOut, Unreached
from bridges.message import Acceptance, ChannelStopped, Stop
from tests.bridges.bench import eventually
from tests.channels.dingtalk import Line, line_on, platform
from tests.fakes.dingtalk import CLIENT_ID, SECRET, FakeDingTalk, Fault


@pytest.fixture
async def fake() -> AsyncIterator[FakeDingTalk]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeDingTalk) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


async def again(line: Line) -> None:
    """Run once more, as the supervisor does, and see that messages flow."""
    await line.start()
    assert (await line.says("after")).text == "after"


async def test_the_bot_subscribes_to_its_messages_and_tells_no_address(fake: FakeDingTalk, line: Line) -> None:
    (body,) = fake.opened
    assert body == {
        "clientId": CLIENT_ID,
        "clientSecret": SECRET,
        "subscriptions": [{"type": "CALLBACK", "topic": "/v1.0/im/bot/messages/get"}],
        "ua": "harness-im",
    }
    assert line.inbox.ups == 1


async def test_a_message_is_acknowledged_as_the_sdk_does_it(fake: FakeDingTalk, line: Line) -> None:
    frame = await fake.says()
    assert await fake.gateway.taken(frame) == {
        "code": 200,
        "headers": {"messageId": frame, "contentType": "application/json"},
        "message": "",
        "data": '{"response": "OK"}',
    }


async def test_nothing_is_acknowledged_before_it_is_safe(fake: FakeDingTalk, line: Line) -> None:
    line.inbox.answers.append(OSError("disk full"))
    data = fake.message("one")
    frame = await fake.gateway.callback(data)
    assert isinstance(await line.ended(), OSError)
    assert fake.gateway.answer(frame) is None
    await line.start()
    redelivered = await fake.gateway.callback(data)
    await fake.gateway.taken(redelivered)
    assert [message.text for message in line.inbox.messages] == ["one"]


async def test_what_is_delivered_again_under_another_frame_keeps_its_id(fake: FakeDingTalk, line: Line) -> None:
    data = fake.message()
    frames = [await fake.gateway.callback(data) for _ in range(2)]
    for frame in frames:
        await fake.gateway.taken(frame)
    one, two = line.inbox.messages
    assert one.id == two.id == data["msgId"]


async def test_what_is_denied_is_acknowledged_too(fake: FakeDingTalk, line: Line) -> None:
    line.inbox.answers.append(Acceptance.DENIED)
    await line.says()


async def test_pings_are_answered_with_their_own_data(fake: FakeDingTalk, line: Line) -> None:
    frame = await fake.gateway.system("ping", {"opaque": "o-1"})
    assert (await fake.gateway.taken(frame))["code"] == 200


async def test_a_disconnect_is_acknowledged_and_followed(fake: FakeDingTalk, line: Line) -> None:
    frame = await fake.gateway.system("disconnect", {"reason": "persistent connection is timeout"})
    await fake.gateway.taken(frame)
    assert str(await line.ended()) == "the gateway asks to connect anew"
    await again(line)
    assert len(fake.opened) == 2


async def test_messages_are_taken_on_in_order(fake: FakeDingTalk, line: Line) -> None:
    frames = [await fake.says(str(number)) for number in range(20)]
    await fake.gateway.taken(frames[-1])
    assert [message.text for message in line.inbox.messages] == [str(number) for number in range(20)]


async def test_odd_frames_harm_nothing(fake: FakeDingTalk, line: Line) -> None:
    for text in (
        "{",
        "[]",
        "7",
        '{"type":"CALLBACK"}',
        '{"type":"CALLBACK","headers":{"time":"x"},"data":"{"}',
        "[" * 99_999,
    ):
        await fake.gateway.tell(text)
    await fake.gateway.event("chat_update_title", {})
    await fake.gateway.callback({}, topic="/v1.0/card/instances/callback")
    unread = await fake.gateway.callback({"msgId": 7, "text": "secret"})
    await fake.gateway.taken(unread)
    assert (await line.says("fine")).text == "fine"


# -- ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [1000, 1001, 1011])
async def test_a_closed_connection_is_made_anew(fake: FakeDingTalk, line: Line, code: int) -> None:
    await fake.gateway.close(code)
    assert isinstance(await line.ended(), Ended)
    await again(line)


async def test_a_reset_is_a_lost_connection(fake: FakeDingTalk, line: Line) -> None:
    fake.gateway.abort()
    assert isinstance(await line.ended(), Ended)
    await again(line)


async def test_a_dead_connection_is_noticed_at_the_second_ping(fake: FakeDingTalk, line: Line) -> None:
    fake.gateway.dead = True
    await line.clock.advance(BEAT_SECONDS)
    await fake.gateway.read()
    await line.clock.advance(BEAT_SECONDS)
    assert str(await line.ended()) == f"no answer to a ping in {BEAT_SECONDS:g} s"
    fake.gateway.dead = False
    await again(line)


async def beat(fake: FakeDingTalk, line: Line) -> None:
    """Let the time of one ping pass, and its answer arrive."""
    await line.clock.advance(BEAT_SECONDS)
    await fake.gateway.read()
    await fake.gateway.read()


async def test_a_gateway_that_answers_pings_and_pushes_nothing_is_left(fake: FakeDingTalk, line: Line) -> None:
    for _ in range(int(DEAF_SECONDS / BEAT_SECONDS) - 1):
        await beat(fake, line)
    assert line.task is not None
    assert not line.task.done()
    await line.clock.advance(BEAT_SECONDS)
    assert str(await line.ended()) == f"the gateway sent nothing for {DEAF_SECONDS:g} s"
    await again(line)


async def test_a_gateway_that_pushes_its_own_pings_is_kept(fake: FakeDingTalk, line: Line) -> None:
    for _ in range(2 * int(DEAF_SECONDS / BEAT_SECONDS)):
        await fake.gateway.taken(await fake.gateway.system("ping", {"opaque": "o"}))
        await beat(fake, line)
    assert line.task is not None
    assert not line.task.done()


async def test_a_wrong_secret_stops_the_bot(fake: FakeDingTalk) -> None:
    line = Line(fake, secret="wrong-fake")
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.MISCONFIGURED
    assert "wrong-fake" not in str(stopped)
    await line.channel.close()


async def test_a_secret_that_changes_while_the_bot_runs_stops_it(fake: FakeDingTalk, line: Line) -> None:
    fake.secret = "rotated-fake"
    await fake.gateway.close()
    await line.ended()
    await line.start()
    assert isinstance(await line.ended(), ChannelStopped)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(status=502, body=b"<html>"), CallFailed),
        (Fault(status=500, code="ServiceUnavailable"), Refused),
        (Fault(status=429, code="Throttling"), Refused),
        (Fault(status=400, code="param.error"), Refused),
        (Fault(drop=True), CallFailed),
        (Fault(body=b"<html>"), CallFailed),
        (Fault(body=b"{}"), ConnectionError),
    ],
)
async def test_discovery_that_fails_is_tried_again(fake: FakeDingTalk, fault: Fault, error: type[Exception]) -> None:
    fake.fail("open", fault)
    line = Line(fake)
    await line.start()
    assert isinstance(await line.ended(), error)
    await again(line)
    await line.stop()
    await line.channel.close()


async def test_discovery_has_a_deadline_and_can_be_cancelled(fake: FakeDingTalk) -> None:
    fake.fail("open", Fault(hang=True), Fault(hang=True))
    line = Line(fake)
    line.begin()
    await eventually(lambda: fake.calls == ["open"])
    await line.clock.advance(CALL_SECONDS + 1)
    assert isinstance(await line.ended(), TimedOut)
    task = line.begin()
    await eventually(lambda: len(fake.calls) == 2)
    await line.stop()
    assert task.cancelled()
    await line.channel.close()


@pytest.mark.parametrize("status", [401, 502])
async def test_a_refused_upgrade_is_a_lost_connection(fake: FakeDingTalk, status: int) -> None:
    fake.gateway.statuses.append(status)
    line = Line(fake)
    await line.start()
    assert str(await line.ended()) == f"refused by the gateway: HTTP {status}"
    await again(line)
    await line.stop()
    await line.channel.close()


async def test_a_gateway_that_does_not_answer_or_is_not_there(fake: FakeDingTalk) -> None:
    line = Line(fake)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fake.endpoint = f"ws://127.0.0.1:{silent.getsockname()[1]}"
        line.begin()
        await eventually(lambda: len(fake.opened) == 1 and line.clock.sleepers > 0)
        await line.clock.advance(CONNECT_SECONDS + CALL_SECONDS)
        assert str(await line.ended()) == "no connection to the gateway: TimeoutError"
    await line.start()
    assert str(await line.ended()).startswith("no connection to the gateway: ")
    await line.channel.close()


@pytest.mark.parametrize("endpoint", ["wss://example.com/connect", "not an address", "wss://[::1/"])
async def test_a_gateway_elsewhere_is_not_asked(fake: FakeDingTalk, endpoint: str) -> None:
    fake.endpoint = endpoint
    line = Line(fake)
    await line.start()
    assert str(await line.ended()) == "the gateway is not on a host of DingTalk"
    await line.channel.close()


async def test_an_api_that_is_not_there(fake: FakeDingTalk) -> None:
    line = Line(fake)
    await fake.__aexit__()
    await line.start()
    assert isinstance(await line.ended(), Unreached)
    await line.channel.close()


async def test_five_starts_give_one_message(fake: FakeDingTalk, line: Line) -> None:
    for _ in range(5):
        await line.stop()
        await line.start()
    await line.says()
    assert len(line.inbox.messages) == 1


async def test_the_sdk_logs_through_us_and_on_no_handler_of_its_own(fake: FakeDingTalk, line: Line) -> None:
    await line.says()
    loggers = [
        logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("dingtalk_stream")
    ]
    assert loggers
    assert all(logger.handlers == [] and logger.level == logging.NOTSET for logger in loggers)


async def test_a_run_ends_at_once_when_it_is_cancelled(fake: FakeDingTalk, line: Line) -> None:
    line.inbox.answers.append(OSError("never read"))
    assert line.task is not None
    line.task.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait({line.task})
    assert line.task.cancelled()

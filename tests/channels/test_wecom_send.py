"""WeCom: bubbles and their one end, acknowledgements, when the bot writes of its own accord, and the pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.delivery import Delivery, End
from bridges.message import (
    EditsMessages,
    FetchesAttachments,
    InboundAttachment,
    NotSent,
    PublishesCommands,
    RationsReplies,
    RetryAfter,
    SendOutcome,
    Sent,
    ShowsTyping,
    StreamsAnswers,
)
from bridges.pace import Pace
from bridges.split import split_lossless
from bridges.wecom.connection import ACK_SECONDS, BEAT_SECONDS, PATIENCE_SECONDS, Unacknowledged
from bridges.wecom.outbox import (
    SLOWER_SECONDS,
    UNREACHED_SECONDS,
    WINDOWS,
    harmless,
)
from commands.model import AttachmentKind
from tests.bridges.bench import eventually
from tests.channels.wecom import GROUP, Line, line_on, platform
from tests.fakes.clock import FakeClock
from tests.fakes.wecom import FakeWeCom, Fault

FLOOD = 30_000_000
"""Bytes that fill every buffer of a socket."""
REPLY, ACTIVE = "aibot_respond_msg", "aibot_send_msg"


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeCom]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeWeCom) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


def commands(fake: FakeWeCom) -> list[object]:
    return [frame["cmd"] for frame in fake.frames if frame["cmd"] in {REPLY, ACTIVE}]


async def test_the_channel_can_what_the_platform_can(line: Line) -> None:
    assert isinstance(line.channel, StreamsAnswers)
    assert isinstance(line.channel, FetchesAttachments)
    for capability in (EditsMessages, ShowsTyping, PublishesCommands, RationsReplies):
        assert not isinstance(line.channel, capability)


@pytest.mark.parametrize("group", [None, GROUP])
async def test_a_message_is_a_bubble_that_is_finished_at_once(fake: FakeWeCom, line: Line, group: str | None) -> None:
    message = await line.says(group=group)
    one = await line.channel.send(message.reply_to, "one")
    two = await line.channel.send(message.reply_to, "two")
    assert [(said.chat, said.states, said.finished) for said in fake.said] == [
        (group or "alice", ["one"], True),
        (group or "alice", ["two"], True),
    ]
    assert [one, two] == [Sent(said.id) for said in fake.said]  # type: ignore[arg-type]  # the fake's ids are strings
    assert len({said.id for said in fake.said}) == 2


# -- when a request takes no reply -------------------------------------------------------------------------------------


async def test_an_old_request_is_answered_of_the_bots_own_accord(fake: FakeWeCom, line: Line) -> None:
    message = await line.says(group=GROUP)
    fake.expire()
    assert await line.channel.send(message.reply_to, "late") == Sent(None)
    assert fake.texts(GROUP) == ["late"]
    assert commands(fake) == [REPLY, ACTIVE]


@pytest.mark.parametrize("code", [846605, 846608, 600039])
async def test_codes_that_allow_a_message_of_its_own(fake: FakeWeCom, line: Line, code: int) -> None:
    message = await line.says()
    fake.fail(REPLY, Fault(code=code))
    assert await line.channel.send(message.reply_to, "hello") == Sent(None)
    assert fake.texts() == ["hello"]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (45009, RetryAfter(SLOWER_SECONDS)),
        (-1, RetryAfter(SLOWER_SECONDS)),
        (45002, NotSent.TOO_LONG),
        (93006, NotSent.BLOCKED),
        (40058, NotSent.REJECTED),
        (999_999, NotSent.REJECTED),
    ],
)
async def test_codes_that_do_not(fake: FakeWeCom, line: Line, code: int, outcome: SendOutcome) -> None:
    message = await line.says()
    fake.fail(REPLY, Fault(code=code))
    assert await line.channel.send(message.reply_to, "hello") == outcome
    assert commands(fake) == [REPLY]


async def test_a_chat_that_is_gone(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    fake.expire()
    fake.forget("alice")
    assert await line.channel.send(message.reply_to, "hello") is NotSent.BLOCKED


async def test_neither_way_is_open(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    fake.fail(REPLY, Fault(code=846605))
    fake.fail(ACTIVE, Fault(code=846605))
    assert await line.channel.send(message.reply_to, "hello") is NotSent.WINDOW_CLOSED


# -- acknowledgements --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accepted", [True, False])
async def test_no_acknowledgement_is_unknown_and_nothing_is_repeated(
    fake: FakeWeCom, line: Line, accepted: bool
) -> None:
    message = await line.says()
    fake.fail(REPLY, Fault(silent=True, accepted=accepted))
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, ("one", "two")))
    await eventually(lambda: commands(fake) == [REPLY])
    await line.clock.advance(ACK_SECONDS + 1)
    assert (await delivering).end is End.UNKNOWN
    assert commands(fake) == [REPLY]
    await delivery.close(0)


async def test_a_link_that_breaks_before_the_acknowledgement_is_unknown(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    fake.fail(REPLY, Fault(reset=True, accepted=True))
    assert await line.channel.send(message.reply_to, "once") is NotSent.UNKNOWN
    await line.ended()
    assert fake.texts() == ["once"]


async def test_of_one_request_one_frame_is_in_flight(fake: FakeWeCom, line: Line) -> None:
    fake.slow = 0.02
    message = await line.says()
    other = await line.says(group=GROUP)
    sends = [line.channel.send(message.reply_to, str(number)) for number in range(4)]
    outcomes = await asyncio.gather(*sends, line.channel.send(other.reply_to, "beside"))
    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert len(fake.texts()) == 4
    assert not fake.violations


async def test_a_send_that_is_given_up_leaves_the_request_usable(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    fake.fail(REPLY, Fault(silent=True))
    sending = asyncio.create_task(line.channel.send(message.reply_to, "one"))
    await eventually(lambda: commands(fake) == [REPLY])
    sending.cancel()
    await asyncio.wait({sending})
    assert isinstance(await line.channel.send(message.reply_to, "two"), Sent)


async def test_a_link_that_takes_nothing_in_is_given_up_at_once(fake: FakeWeCom, line: Line) -> None:
    fake.stall()
    assert line.channel._link is not None
    sending = asyncio.create_task(line.channel._link.line.request(ACTIVE, {"text": "x" * FLOOD}))
    await line.clock.sleeping(2)  # the heartbeat and the frame
    await line.clock.advance(ACK_SECONDS)
    with pytest.raises(Unacknowledged):
        await sending
    assert str(await line.ended()) == "the platform takes nothing in"
    await line.start()
    assert (await line.says("again")).text == "again"


async def test_a_heartbeat_that_finds_no_room_ends_the_link(fake: FakeWeCom, line: Line) -> None:
    fake.stall()
    assert line.channel._link is not None
    assert line.channel._link.line._connection is not None
    writer = line.channel._link.line._connection._socket._writer
    writer.transport.write(b"x" * FLOOD)
    writer._output_size = writer._limit  # the library waits for room at the next frame
    await line.clock.advance(BEAT_SECONDS + ACK_SECONDS)
    assert str(await line.ended()) == "the connection was lost"
    await line.start()
    assert (await line.says("again")).text == "again"


async def test_a_link_that_is_down_is_waited_for(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    await line.lose()
    sending = asyncio.create_task(line.channel.send(message.reply_to, "hello"))
    await line.clock.sleeping()
    await line.start()
    assert isinstance(await sending, Sent)
    await line.lose()
    sending = asyncio.create_task(line.channel.send(message.reply_to, "hello"))
    await line.clock.sleeping()
    await line.clock.advance(PATIENCE_SECONDS + 1)
    assert await sending == RetryAfter(UNREACHED_SECONDS)
    assert fake.texts() == ["hello"]


async def test_a_platform_that_forgot_us_is_asked_anew(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    fake.fail(REPLY, Fault(code=846609))
    assert await line.channel.send(message.reply_to, "hello") == RetryAfter(UNREACHED_SECONDS)
    assert str(await line.ended()) == "the platform forgot the subscription"
    await line.start()
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert fake.texts() == ["hello"]


async def test_nothing_is_sent_before_the_first_run_and_after_the_end(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    await line.channel.close()
    await line.channel.close()
    assert await line.channel.send(message.reply_to, "late") is NotSent.REJECTED
    assert await line.channel.begin(message.reply_to) is None
    with pytest.raises(OSError, match="not connected"):
        await line.channel.fetch(InboundAttachment(AttachmentKind.FILE, "{}"), 1)


# -- size and pace -----------------------------------------------------------------------------------------------------


def test_mentions_are_disarmed_and_nothing_breaks_the_encoding() -> None:
    assert harmless("<@all> a < b <@zhang> \ud800") == "＜@all> a < b ＜@zhang> ?"


async def test_thirty_a_minute_and_the_rest_waits(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    for number in range(30):
        assert isinstance(await line.channel.send(message.reply_to, str(number)), Sent)
    assert await line.channel.send(message.reply_to, "30") == RetryAfter(60)
    other = await line.says(group=GROUP)
    assert isinstance(await line.channel.send(other.reply_to, "elsewhere"), Sent)
    await line.clock.advance(60)
    assert isinstance(await line.channel.send(message.reply_to, "30"), Sent)


async def test_a_thousand_an_hour() -> None:
    clock = FakeClock()
    pace = Pace(clock, *WINDOWS)
    for _ in range(1_000):
        assert pace.wait("chat") == 0
        pace.count("chat")
        await clock.advance(2)
    assert pace.wait("chat") == 3_600 - 2_000
    await clock.advance(3_600)
    pace.count("other")
    assert list(pace._sent) == ["other"], "a chat that is still costs nothing"

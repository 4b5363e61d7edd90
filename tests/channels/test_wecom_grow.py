"""WeCom: answers that grow in a bubble, which ends exactly once on every path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.delivery import Delivery, End
from bridges.message import (
    InboundMessage,
    NotSent,
    RetryAfter,
    Sent,
)
from bridges.split import split_answer, split_lossless
from bridges.wecom.connection import ACK_SECONDS, BEAT_SECONDS
from bridges.wecom.outbox import (
    FINISH_TRIES,
    LEFT_OVER,
    LIFE_SECONDS,
    MAX_BYTES,
    OPEN_SECONDS,
    SLOWER_SECONDS,
    SPARED,
    UPDATE_SECONDS,
    Growing,
    harmless,
)
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors
from tests.channels.test_wecom_run import beat
from tests.channels.wecom import GROUP, Line, line_on, platform
from tests.fakes.wecom import FakeWeCom, Fault

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


async def begun(line: Line, fake: FakeWeCom, message: InboundMessage, text: str = "Hel") -> Growing:
    """Return an answer whose first state is shown."""
    growing = await line.channel.begin(message.reply_to)
    assert isinstance(growing, Growing)
    before = len(fake.said)
    await growing.update(text)
    await eventually(lambda: len(fake.said) == before + 1)
    return growing


async def pass_time(line: Line, fake: FakeWeCom) -> None:
    """Let the time between two states pass, after the one before was acknowledged."""
    await fake.read()
    await eventually(lambda: line.clock.sleepers == 2)  # the heartbeat and the pace
    await line.clock.advance(UPDATE_SECONDS)


async def shown(fake: FakeWeCom, text: str) -> None:
    await eventually(lambda: fake.texts() == [text])


async def tried(fake: FakeWeCom, count: int) -> None:
    """Wait until so many frames were answered."""
    await eventually(lambda: len(commands(fake)) == count)
    await fake.read()


async def test_an_answer_grows_in_one_bubble_and_ends_once(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    growing = await begun(line, fake, message)
    for text in ("Hello", "Hello th"):
        await growing.update(text)
        await pass_time(line, fake)
        await shown(fake, text)
    assert isinstance(await growing.finish("Hello there"), Sent)
    (said,) = fake.said
    assert (said.states, said.finished) == (["Hel", "Hello", "Hello th", "Hello there"], True)


async def test_states_in_between_are_left_out(fake: FakeWeCom, line: Line) -> None:
    growing = await begun(line, fake, await line.says())
    for number in range(50):
        await growing.update(str(number))
    await pass_time(line, fake)
    await eventually(lambda: fake.texts() == ["49"])
    await growing.finish("50")
    assert fake.said[0].states == ["Hel", "49", "50"]


async def test_two_answers_have_two_bubbles(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    first, second = await begun(line, fake, message, "one"), await begun(line, fake, message, "two")
    await asyncio.gather(first.finish("one."), second.finish("two."))
    assert sorted(fake.texts()) == ["one.", "two."]
    assert not fake.hanging


async def test_an_answer_that_never_showed_has_no_bubble(fake: FakeWeCom, line: Line) -> None:
    growing = await line.channel.begin((await line.says()).reply_to)
    assert growing is not None
    assert await growing.finish("hello") is NotSent.WINDOW_CLOSED
    assert not fake.said


async def test_an_end_waits_for_the_acknowledgement_before_it(fake: FakeWeCom, line: Line) -> None:
    fake.slow = 0.05
    growing = await line.channel.begin((await line.says()).reply_to)
    assert growing is not None
    await growing.update("Hel")
    await eventually(lambda: commands(fake) == [REPLY])
    assert isinstance(await growing.finish("Hello"), Sent)
    assert fake.said[0].states == ["Hel", "Hello"]


async def test_a_group_without_bubbles_gets_a_message(fake: FakeWeCom, line: Line) -> None:
    fake.no_bubbles.add(GROUP)
    message = await line.says(group=GROUP)
    growing = await line.channel.begin(message.reply_to)
    assert growing is not None
    await growing.update("Hel")
    await eventually(lambda: not line.channel._link.outbox.growing)  # type: ignore[union-attr]  # it runs
    await growing.update("Hello")
    assert await growing.finish("Hello") is NotSent.WINDOW_CLOSED
    assert await line.channel.send(message.reply_to, "Hello") == Sent(None)
    assert fake.texts(GROUP) == ["Hello"]


async def test_a_bubble_ends_before_the_platform_lets_it_hang(fake: FakeWeCom, line: Line) -> None:
    growing = await begun(line, fake, await line.says(), "still at work")
    await pass_time(line, fake)
    for _ in range(int(OPEN_SECONDS / BEAT_SECONDS)):  # the link stays warm meanwhile
        await beat(fake, line)
    await eventually(lambda: fake.said[0].finished)
    assert await growing.finish("done") is NotSent.WINDOW_CLOSED
    assert fake.said[0].states == ["still at work", "still at work"]


async def test_a_bubble_the_platform_ended_takes_no_end(fake: FakeWeCom, line: Line) -> None:
    growing = await begun(line, fake, await line.says())
    fake.fail(REPLY, Fault(code=846608))
    assert await growing.finish("Hello") is NotSent.WINDOW_CLOSED


async def test_an_end_that_was_refused_for_haste_comes_later(fake: FakeWeCom, line: Line) -> None:
    growing = await begun(line, fake, await line.says())
    fake.fail(REPLY, Fault(code=45009), Fault(code=45009))
    finishing = asyncio.create_task(growing.finish("Hello"))
    for count in (2, 3):
        await tried(fake, count)
        await line.clock.advance(SLOWER_SECONDS)
    assert isinstance(await finishing, Sent)
    assert not fake.hanging


async def test_an_end_is_not_tried_for_ever(fake: FakeWeCom, line: Line) -> None:
    growing = await begun(line, fake, await line.says())
    fake.fail(REPLY, *[Fault(code=45009)] * (FINISH_TRIES + 1))
    finishing = asyncio.create_task(growing.finish("Hello"))
    for count in range(1, FINISH_TRIES + 1):
        await tried(fake, 1 + count)
        await line.clock.advance(SLOWER_SECONDS)
    assert await finishing == RetryAfter(SLOWER_SECONDS)


async def test_an_end_without_an_acknowledgement_is_unknown(fake: FakeWeCom, line: Line) -> None:
    growing = await begun(line, fake, await line.says())
    fake.fail(REPLY, Fault(silent=True, accepted=True))
    finishing = asyncio.create_task(growing.finish("Hello"))
    await eventually(lambda: len(commands(fake)) == 2)
    await line.clock.advance(ACK_SECONDS + 1)
    assert await finishing is NotSent.UNKNOWN
    assert fake.said[0].states == ["Hel", "Hello"]


async def test_an_answer_goes_on_in_its_bubble_after_the_link_broke(fake: FakeWeCom, line: Line) -> None:
    growing = await begun(line, fake, await line.says())
    fake.abort()
    await line.ended()
    finishing = asyncio.create_task(growing.finish("Hello"))
    await line.start()
    assert isinstance(await finishing, Sent)
    assert fake.said[0].states == ["Hel", "Hello"]


async def test_closing_leaves_no_task_behind(fake: FakeWeCom, line: Line) -> None:
    await begun(line, fake, await line.says())
    assert line.channel._link is not None
    outbox = line.channel._link.outbox
    await line.channel.close()
    assert not outbox.growing


@pytest.mark.parametrize("text", ["字" * 30_000, "x" * 30_000, "<@all>" * 5_000, "🤖" * 9_000])
async def test_no_text_is_longer_than_the_platform_takes(fake: FakeWeCom, line: Line, text: str) -> None:
    message = await line.says()
    growing = await begun(line, fake, message, text)
    await growing.finish(split_answer(text, line.channel.limits)[0])
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    assert (await delivery.deliver(message.reply_to, (text,))).end is End.SENT
    sizes = [len(state.encode()) for said in fake.said for state in said.states]
    assert max(sizes) <= MAX_BYTES
    assert "".join(fake.texts()[1:]) == harmless(text)
    await delivery.close(0)


async def test_what_grows_leaves_room_for_ends_and_messages(fake: FakeWeCom, line: Line) -> None:
    message = await line.says()
    growing = await begun(line, fake, message, "0")
    for number in range(1, 25):
        await growing.update(str(number))
        await line.clock.advance(UPDATE_SECONDS)
        await fake.read()
    assert len(fake.said[0].states) == 30 - SPARED
    for number in range(SPARED - 1):
        assert isinstance(await line.channel.send(message.reply_to, str(number)), Sent)
    assert isinstance(await growing.finish("end"), Sent)


@pytest.mark.parametrize("code", [40058, 45002, 40001])
async def test_a_bubble_whose_growth_was_refused_ends_all_the_same(fake: FakeWeCom, line: Line, code: int) -> None:
    growing = await begun(line, fake, await line.says())
    fake.fail(REPLY, Fault(code=code))
    await growing.update("Hello")
    await pass_time(line, fake)
    await tried(fake, 2)
    assert isinstance(await growing.finish("Hello there"), Sent)
    assert (fake.said[0].states, fake.hanging) == (["Hel", "Hello there"], [])


# -- after a crash -----------------------------------------------------------------------------------------------------


async def crashed(fake: FakeWeCom) -> MemoryCursors:
    """Return what a process left behind that was killed while an answer grew."""
    kept = MemoryCursors()
    async with line_on(fake, kept) as line:
        await begun(line, fake, await line.says(), "half an ans")
        left = dict(kept.values)
    kept.values = left
    return kept


async def test_a_bubble_that_a_crash_left_open_is_ended_by_the_next_process(fake: FakeWeCom) -> None:
    async with line_on(fake, await crashed(fake)) as line:
        await eventually(lambda: not fake.hanging)
        assert fake.said[0].states == ["half an ans", LEFT_OVER]
        await eventually(lambda: line.cursors.values["open-bubbles"] == b"[]")
        await line.lose()
        await line.start()
        await line.says()
    assert len(fake.said) == 1, "and not once more"


async def test_an_answer_that_ended_leaves_nothing_to_end(fake: FakeWeCom) -> None:
    kept = MemoryCursors()
    async with line_on(fake, kept) as line:
        await (await begun(line, fake, await line.says())).finish("Hello")
        silent = await line.channel.begin((await line.says()).reply_to)
        assert silent is not None
        await silent.finish("never shown")
    async with line_on(fake, kept) as line:
        await line.says()
    assert fake.texts() == ["Hello"]


async def test_a_bubble_is_written_down_before_it_is_shown(fake: FakeWeCom, line: Line) -> None:
    growing = await line.channel.begin((await line.says()).reply_to)
    assert growing is not None
    await growing.update("Hel")
    assert not fake.said
    assert b"stream_" in line.cursors.values["open-bubbles"]


async def test_a_bubble_too_old_for_an_end_gets_none(fake: FakeWeCom) -> None:
    kept = await crashed(fake)
    line = Line(fake, kept)
    await line.clock.advance(LIFE_SECONDS + 1)
    await line.start()
    await line.says()
    await eventually(lambda: line.cursors.values["open-bubbles"] == b"[]")
    assert fake.said[0].states == ["half an ans"]
    await line.stop()
    await line.channel.close()


async def test_an_end_the_platform_does_not_take_any_more_harms_nothing(fake: FakeWeCom) -> None:
    kept = await crashed(fake)
    fake.expire()
    async with line_on(fake, kept) as line:
        message = await line.says()
        assert isinstance(await line.channel.send(message.reply_to, "fine"), Sent)


@pytest.mark.parametrize("damaged", [b"{", b"[7]", b'["what"]', b'["{}"]'])
async def test_a_damaged_record_of_open_bubbles_is_none(fake: FakeWeCom, damaged: bytes) -> None:
    kept = MemoryCursors()
    kept.values["open-bubbles"] = damaged
    async with line_on(fake, kept) as line:
        await (await begun(line, fake, await line.says())).finish("Hello")
    assert fake.texts() == ["Hello"]


async def test_a_full_disk_stops_no_answer(fake: FakeWeCom, line: Line) -> None:
    line.cursors.full = True
    assert isinstance(await (await begun(line, fake, await line.says())).finish("Hello"), Sent)

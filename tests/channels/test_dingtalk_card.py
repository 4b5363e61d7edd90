"""DingTalk: answers that grow in an AI card, which ends on every path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.dingtalk.card import LOST_SECONDS, MOST_TEXT, TRIES, UPDATE_SECONDS
from bridges.http import CALL_SECONDS
from bridges.message import AnswerStream, InboundMessage, NotSent, Sent
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors
from tests.channels.dingtalk import GROUP, Line, line_on, platform
from tests.fakes.dingtalk import Card, FakeDingTalk, Fault
from tests.fakes.dingtalk.cards import TEMPLATE


@pytest.fixture
async def fake() -> AsyncIterator[FakeDingTalk]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeDingTalk) -> AsyncIterator[Line]:
    async with line_on(fake, template=TEMPLATE) as line:
        yield line


async def begun(line: Line, message: InboundMessage) -> AnswerStream:
    stream = await line.channel.begin(message.reply_to)
    assert stream is not None
    return stream


def holding(values: dict[str, bytes]) -> MemoryCursors:
    cursors = MemoryCursors()
    cursors.values.update(values)
    return cursors


def only(fake: FakeDingTalk) -> Card:
    (card,) = fake.cards.all.values()
    return card


async def shown(fake: FakeDingTalk, text: str) -> None:
    await eventually(lambda: only(fake).text == text)


@pytest.mark.parametrize(("group", "chat"), [(None, "cid-alice"), (GROUP, GROUP)])
async def test_an_answer_grows_and_ends_once(fake: FakeDingTalk, line: Line, group: str | None, chat: str) -> None:
    stream = await begun(line, await line.says(group=group))
    for number, text in enumerate(("Hel", "Hello"), 1):
        await stream.update(text)
        await shown(fake, text)
        await rested(line, UPDATE_SECONDS, number)
    assert isinstance(await stream.finish("Hello there"), Sent)
    assert only(fake) == Card(only(fake).name, chat, ["", "Hel", "Hello", "Hello there"], ended=True)


async def test_states_in_between_are_left_out(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    for number in range(50):
        await stream.update(str(number))
    await shown(fake, "49")
    await stream.finish("50")
    assert only(fake).states == ["", "49", "50"]


async def test_without_a_template_there_is_no_card(fake: FakeDingTalk) -> None:
    async with line_on(fake) as line:
        assert await line.channel.begin((await line.says()).reply_to) is None
    assert not fake.cards.all


async def test_an_outsider_gets_no_card(fake: FakeDingTalk, line: Line) -> None:
    await fake.gateway.taken(await fake.gateway.callback(fake.message(senderStaffId=None)))
    assert await line.channel.begin(line.inbox.messages[0].reply_to) is None


@pytest.mark.parametrize("call", ["card", "deliver"])
async def test_an_app_without_the_right_is_not_asked_again(fake: FakeDingTalk, line: Line, call: str) -> None:
    message = await line.says()
    fake.fail(call, Fault(status=403, code="Forbidden.AccessDenied.AccessTokenPermissionDenied"))
    for _ in range(2):
        assert await line.channel.begin(message.reply_to) is None
    assert fake.calls.count("card") == 1


@pytest.mark.parametrize("fault", [Fault(status=429, code="Throttling"), Fault(status=400, code="param.error")])
async def test_a_card_that_is_refused_leaves_the_next_one_its_chance(
    fake: FakeDingTalk, line: Line, fault: Fault
) -> None:
    message = await line.says()
    fake.fail("card", fault)
    assert await line.channel.begin(message.reply_to) is None
    await (await begun(line, message)).finish("hello")


async def test_a_card_no_chat_takes_is_no_card(fake: FakeDingTalk, line: Line) -> None:
    message = await line.says()
    fake.cards.full = True
    assert await line.channel.begin(message.reply_to) is None, "or the answer would grow where nobody sees it"
    assert line.cursors.values["open-cards"] == b"[]"
    fake.cards.full = False
    assert await line.channel.begin(message.reply_to) is not None


@pytest.mark.parametrize("body", [b'{"success": false}', b'{"success": false, "result": "no"}'])
async def test_a_refusal_that_looks_fine_is_one(fake: FakeDingTalk, line: Line, body: bytes) -> None:
    message = await line.says()
    fake.fail("card", Fault(body=body))
    assert await line.channel.begin(message.reply_to) is None
    stream = await begun(line, message)
    fake.fail("streaming", Fault(body=body))
    assert await stream.finish("Hello") is NotSent.REJECTED


async def test_a_long_answer_shows_what_a_card_holds(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    await stream.update("x" * (MOST_TEXT - 1) + "👋" + "y" * 100_000)
    await shown(fake, "x" * (MOST_TEXT - 1))
    await stream.update("x" * (MOST_TEXT - 1) + "👋" + "z" * 200_000)
    await rested(line, UPDATE_SECONDS)
    await stream.finish("done")
    assert fake.calls.count("streaming") == 2, "what it shows already is not sent again"


async def test_a_card_that_takes_no_more_is_not_asked_a_thousand_times(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    fake.fail("streaming", Fault(status=400, code="param.error"))
    for number in range(20):
        await stream.update(str(number))
        await eventually(lambda: fake.calls.count("streaming") == 1)
        await line.clock.advance(UPDATE_SECONDS)
    assert fake.calls.count("streaming") == 1
    assert isinstance(await stream.finish("whole"), Sent)


async def test_a_new_link_leaves_the_cards_of_its_turn_alone(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    await stream.update("half")
    await shown(fake, "half")
    await fake.gateway.system("disconnect", {"reason": "restart"})
    await line.ended()
    await line.start()
    assert not only(fake).ended
    assert isinstance(await stream.finish("whole"), Sent)
    assert fake.texts() == ["whole"]


async def test_a_card_of_which_nobody_knows_is_ended(fake: FakeDingTalk, line: Line) -> None:
    message = await line.says()
    fake.fail("deliver", Fault(status=500, accepted=True))
    assert await line.channel.begin(message.reply_to) is None
    assert (only(fake).ended, only(fake).failed) == (True, True)


@pytest.mark.parametrize("accepted", [True, False])
async def test_a_lost_answer_is_asked_for_again_and_ends_the_card_once(
    fake: FakeDingTalk, line: Line, accepted: bool
) -> None:
    stream = await begun(line, await line.says())
    fake.fail("streaming", Fault(status=500, accepted=accepted))
    finishing = asyncio.create_task(stream.finish("Hello"))
    await rested(line, LOST_SECONDS)
    assert isinstance(await finishing, Sent)
    assert only(fake).states == ["", "Hello"]


async def test_an_end_that_is_lost_every_time_is_unknown(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    fake.fail("streaming", *[Fault(status=500)] * TRIES)
    finishing = asyncio.create_task(stream.finish("Hello"))
    for count in range(1, TRIES):
        await rested(line, LOST_SECONDS, count)
    assert await finishing is NotSent.UNKNOWN
    assert fake.calls.count("streaming") == TRIES


async def rested(line: Line, seconds: float, times: int = 1) -> None:
    """Wait until so long a wait has been begun so many times, and let it pass."""
    await eventually(lambda: line.clock.naps.count(seconds) == times)
    await line.clock.advance(seconds)


async def test_a_card_that_takes_no_text_is_marked_and_the_answer_sent_instead(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    await stream.update("Hel")
    await shown(fake, "Hel")
    fake.fail("streaming", Fault(status=400, code="param.contentTooLong"))
    assert await stream.finish("Hello") is NotSent.REJECTED
    assert (only(fake).text, only(fake).ended, only(fake).failed) == ("Hel", True, True)


async def test_a_refused_state_is_followed_by_the_next(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    fake.fail("streaming", Fault(status=429, code="Throttling", headers=(("Retry-After", "5"),)))
    await stream.update("Hel")
    await eventually(lambda: line.clock.naps[-1:] == [5])
    await stream.update("Hello")
    await rested(line, 5)
    await shown(fake, "Hello")
    await stream.finish("Hello there")


async def test_a_state_on_its_way_does_not_overtake_the_end(fake: FakeDingTalk, line: Line) -> None:
    stream = await begun(line, await line.says())
    fake.fail("streaming", Fault(hang=True))
    await stream.update("Hel")
    await eventually(lambda: fake.calls.count("streaming") == 1)
    finishing = asyncio.create_task(stream.finish("Hello"))
    await line.clock.advance(CALL_SECONDS)
    assert isinstance(await finishing, Sent)
    assert only(fake).states == ["", "Hello"]


async def test_what_a_crash_left_open_is_ended_by_the_next_process(fake: FakeDingTalk) -> None:
    cursors = MemoryCursors()
    async with line_on(fake, cursors, template=TEMPLATE) as line:
        stream = await begun(line, await line.says())
        await stream.update("half an ans")
        await shown(fake, "half an ans")
        kept = dict(cursors.values)
        await stream.finish("half an answer")
    crashed = only(fake)
    crashed.states, crashed.ended = ["half an ans"], False
    async with line_on(fake, holding(kept), template=TEMPLATE) as line:
        await eventually(lambda: crashed.ended)
        assert (crashed.text, crashed.failed) == ("half an ans", True)
        await eventually(lambda: line.cursors.values["open-cards"] == b"[]")


async def test_what_a_crash_left_open_is_tried_again_while_nobody_knows_that_it_ended(fake: FakeDingTalk) -> None:
    cursors = MemoryCursors()
    async with line_on(fake, cursors, template=TEMPLATE) as line:
        await begun(line, await line.says())
    fake.fail("streaming", *[Fault(status=500)] * TRIES)
    async with line_on(fake, holding(cursors.values), template=TEMPLATE) as line:
        for count in range(1, TRIES):
            await rested(line, LOST_SECONDS, count)
        await eventually(lambda: fake.calls.count("streaming") == TRIES)
        assert not only(fake).ended
        await fake.gateway.close()
        await line.ended()
        await line.start()
        await eventually(lambda: only(fake).ended)
        await eventually(lambda: line.cursors.values["open-cards"] == b"[]")


@pytest.mark.parametrize("damaged", [b"{", b'{"a":1}'])
async def test_a_damaged_record_of_open_cards_is_none(fake: FakeDingTalk, damaged: bytes) -> None:
    cursors = MemoryCursors()
    cursors.values["open-cards"] = damaged
    async with line_on(fake, cursors, template=TEMPLATE) as line:
        await (await begun(line, await line.says())).finish("hello")


async def test_a_full_disk_stops_no_answer(fake: FakeDingTalk, line: Line) -> None:
    line.cursors.full = True
    assert isinstance(await (await begun(line, await line.says())).finish("hello"), Sent)

"""Feishu: an answer that grows in a card, and every way that ends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from bridges.feishu.card import LAST, MOST_TEXT, OPEN_CARDS, UPDATE_SECONDS, Card
from bridges.feishu.outbox import TRIES
from bridges.message import InboundMessage, NotSent, SendOutcome, Sent
from bridges.split import split_answer
from commands.budget import utf16_length
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors
from tests.channels.feishu import Line, line_on, platform
from tests.fakes.feishu import FakeFeishu, Fault
from tests.fakes.feishu.cards import FakeCard


@pytest.fixture
async def fake() -> AsyncIterator[FakeFeishu]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeFeishu) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


@pytest.fixture
async def asked(line: Line) -> InboundMessage:
    return await line.says()


@pytest.fixture
async def card(line: Line, asked: InboundMessage) -> Card:
    return await begun(line, asked)


async def begun(line: Line, asked: InboundMessage) -> Card:
    card = await line.channel.begin(asked.reply_to)
    assert isinstance(card, Card)
    return card


def only(fake: FakeFeishu) -> FakeCard:
    (card,) = fake.cards.values()
    return card


async def shown(line: Line, *texts: str) -> None:
    """Let time pass until the card showed exactly these texts, one after the other, after its empty beginning."""
    await line.clock.advance(UPDATE_SECONDS)
    await eventually(lambda: only(line.fake).texts == ["", *texts])


async def finished(line: Line, card: Card, text: str) -> SendOutcome:
    work = asyncio.create_task(card.finish(text))
    async with asyncio.timeout(20):
        while not work.done():
            await line.clock.advance(0.5)
            await asyncio.sleep(0.002)
    return await work


async def test_an_answer_grows_in_a_card_and_ends(fake: FakeFeishu, line: Line, card: Card) -> None:
    await card.update("He")
    await shown(line, "He")
    await card.update("Hel")
    await card.update("Hello")
    await shown(line, "He", "Hello")
    assert isinstance(await finished(line, card, "Hello there"), Sent)
    assert only(fake).texts[-1] == "Hello there"
    assert not only(fake).growing
    assert fake.texts() == ["Hello there"]
    assert fake.calls.count("messages") == 1


async def test_a_card_is_the_newest_schema_with_one_element(fake: FakeFeishu, card: Card) -> None:
    assert only(fake).card == {
        "schema": "2.0",
        "config": {"streaming_mode": True, "update_multi": True},
        "body": {"elements": [{"tag": "markdown", "content": "", "element_id": "answer"}]},
    }


async def test_changes_are_a_second_apart(fake: FakeFeishu, line: Line, card: Card) -> None:
    for number in range(50):
        await card.update("x" * (number + 1))
    await eventually(lambda: only(fake).texts[-1] == "x" * 50)
    await card.update("y")
    await line.clock.sleeping()
    assert fake.calls.count("content") == 1
    await line.clock.advance(UPDATE_SECONDS)
    await eventually(lambda: only(fake).texts[-1] == "y")


async def test_what_is_shown_already_is_not_sent_again(fake: FakeFeishu, line: Line, card: Card) -> None:
    await card.update("whole")
    await shown(line, "whole")
    assert isinstance(await finished(line, card, "whole"), Sent)
    assert fake.calls.count("content") == 1


async def test_a_growing_answer_shows_what_a_card_holds(fake: FakeFeishu, line: Line, card: Card) -> None:
    held = "长" * (MOST_TEXT - 1)
    await card.update(held + "👋" + "长" * 20_000)
    await eventually(lambda: only(fake).texts == ["", held])
    await card.update(held + "👋" + "长" * 30_000)
    await line.clock.advance(UPDATE_SECONDS)
    assert isinstance(await finished(line, card, held), Sent)
    assert fake.calls.count("content") == 1, "what it shows already is not sent again"


@pytest.mark.parametrize("text", ["\x01", '"', "\\", "长", "\n", "👋"])
async def test_whatever_a_message_holds_a_card_holds_too(
    fake: FakeFeishu, line: Line, asked: InboundMessage, text: str
) -> None:
    whole = text * (MOST_TEXT // utf16_length(text))
    assert isinstance(await finished(line, await begun(line, asked), whole), Sent)
    card = await begun(line, asked)
    fake.fail("content", Fault(status=400, code=300309))
    assert isinstance(await finished(line, card, whole), Sent)
    assert fake.texts() == [whole, whole]


async def test_a_longer_answer_is_a_card_and_messages(fake: FakeFeishu, line: Line, asked: InboundMessage) -> None:
    head, *rest = split_answer("word " * 2_000, line.channel.limits)
    card = await begun(line, asked)
    assert isinstance(await finished(line, card, head), Sent)
    for part in rest:
        assert isinstance(await line.channel.send(asked.reply_to, part), Sent)
    assert "".join(fake.texts()) == "word " * 2_000
    assert len(rest) == 2


async def test_mentions_are_disarmed(fake: FakeFeishu, line: Line, card: Card) -> None:
    await card.update("<at id=all></at>")
    await shown(line, "＜at id=all>＜/at>")
    await finished(line, card, "<at id=all></at>!")
    assert fake.texts() == ["＜at id=all>＜/at>!"]


async def test_a_number_the_platform_has_seen_costs_no_answer(fake: FakeFeishu, line: Line, card: Card) -> None:
    only(fake).number = 1
    assert isinstance(await finished(line, card, "whole"), Sent)
    assert (fake.texts(), only(fake).growing) == (["whole"], False)


async def test_a_card_taken_away_is_not_touched_any_more(fake: FakeFeishu, line: Line, card: Card) -> None:
    fake.fail("content", Fault(status=400, code=300315))
    fake.fail("card", Fault(status=400, code=300315))
    assert await finished(line, card, "x") is NotSent.REJECTED
    assert fake.calls[-1] == "delete"


@pytest.mark.parametrize("code", [300309, 200850])
async def test_a_card_the_platform_ended_is_replaced_as_a_whole(
    fake: FakeFeishu, line: Line, card: Card, code: int
) -> None:
    fake.fail("content", Fault(status=400, code=code))
    await card.update("one")
    await eventually(lambda: fake.calls.count("content") == 1)
    for _ in range(20):
        await card.update("two")
        await line.clock.advance(UPDATE_SECONDS)
    assert fake.calls.count("content") == 1, "what is refused once is not tried a thousand times"
    assert isinstance(await finished(line, card, "whole"), Sent)
    assert (fake.texts(), only(fake).growing) == (["whole"], False)


async def test_an_end_that_comes_with_the_last_change_is_one_as_well(fake: FakeFeishu, line: Line, card: Card) -> None:
    only(fake).growing = False
    assert isinstance(await finished(line, card, "whole"), Sent)
    assert fake.texts() == ["whole"]


async def test_an_answer_a_card_cannot_show_takes_it_away(fake: FakeFeishu, line: Line, card: Card) -> None:
    await card.update("half")
    await shown(line, "half")
    fake.fail("content", Fault(status=400, code=300315))
    fake.fail("card", Fault(status=400, code=300315))
    outcome = await finished(line, card, "| three | tables |")
    assert outcome is NotSent.REJECTED, "the caller sends it as text"
    assert fake.texts() == []
    assert len(fake.withdrawn) == 1


async def test_a_card_that_cannot_be_taken_away_is_ended(fake: FakeFeishu, line: Line, card: Card) -> None:
    fake.fail("content", Fault(status=400, code=300315))
    fake.fail("card", Fault(status=400, code=300315))
    fake.fail("delete", Fault(status=400, code=230026))
    assert await finished(line, card, "x") is NotSent.REJECTED
    assert not only(fake).growing


async def test_a_slow_platform_is_waited_for(fake: FakeFeishu, line: Line, card: Card) -> None:
    slow = Fault(status=400, code=99991400, headers=(("x-ogw-ratelimit-reset", "5"),))
    fake.fail("content", slow)
    await card.update("one")
    await eventually(lambda: fake.calls.count("content") == 1)
    await line.clock.advance(4)
    assert fake.calls.count("content") == 1
    await line.clock.advance(1)
    await eventually(lambda: only(fake).texts == ["", "one"])
    fake.fail("content", slow)
    assert isinstance(await finished(line, card, "whole"), Sent)
    assert fake.texts() == ["whole"]


@pytest.mark.parametrize("call", ["content", "settings"])
async def test_a_lost_answer_is_asked_for_again(fake: FakeFeishu, line: Line, card: Card, call: str) -> None:
    fake.fail(call, Fault(drop=True, accepted=True), Fault(status=502, accepted=True))
    assert isinstance(await finished(line, card, "whole"), Sent)
    assert (fake.texts(), only(fake).growing) == (["whole"], False)
    assert only(fake).texts == ["", "whole"]


async def test_an_end_nobody_knows_is_not_told_twice(fake: FakeFeishu, line: Line, card: Card) -> None:
    fake.fail("content", *[Fault(status=502, accepted=True)] * TRIES)
    assert await finished(line, card, "whole") is NotSent.UNKNOWN
    assert (fake.texts(), only(fake).growing) == (["whole"], False)


async def test_a_token_that_ends_meanwhile_changes_nothing(fake: FakeFeishu, line: Line, card: Card) -> None:
    fake.valid.clear()
    await card.update("one")
    await shown(line, "one")
    fake.valid.clear()
    assert isinstance(await finished(line, card, "whole"), Sent)


# -- no card -----------------------------------------------------------------------------------------------------------


async def test_without_the_right_to_cards_they_are_asked_for_once(
    fake: FakeFeishu, line: Line, asked: InboundMessage
) -> None:
    fake.fail("cards", Fault(status=400, code=99991672))
    assert await line.channel.begin(asked.reply_to) is None
    assert await line.channel.begin(asked.reply_to) is None
    assert fake.calls.count("cards") == 1


@pytest.mark.parametrize("fault", [Fault(status=400, code=99991400), Fault(status=502), Fault(body=b'{"code": 0}')])
async def test_any_other_refusal_is_one_of_the_moment(
    fake: FakeFeishu, line: Line, asked: InboundMessage, fault: Fault
) -> None:
    fake.fail("cards", fault)
    assert await line.channel.begin(asked.reply_to) is None
    assert await line.channel.begin(asked.reply_to) is not None


async def test_a_card_that_is_not_sent_does_not_go_on_growing(
    fake: FakeFeishu, line: Line, asked: InboundMessage
) -> None:
    fake.fail("messages", Fault(status=400, code=230002))
    assert await line.channel.begin(asked.reply_to) is None
    assert not only(fake).growing
    assert line.cursors.values["open-cards"] == b"[]"


async def test_cards_at_one_time_are_bounded(fake: FakeFeishu, line: Line, asked: InboundMessage) -> None:
    cards = [await begun(line, asked) for _ in range(OPEN_CARDS)]
    assert await line.channel.begin(asked.reply_to) is None
    await finished(line, cards[0], "x")
    assert await line.channel.begin(asked.reply_to) is not None


# -- crashes -----------------------------------------------------------------------------------------------------------


async def test_a_card_that_a_crash_left_open_is_ended_by_the_next_process(fake: FakeFeishu) -> None:
    cursors = MemoryCursors()
    async with line_on(fake, cursors) as first:
        await begun(first, await first.says())
    assert only(fake).growing
    assert json.loads(cursors.values["open-cards"]) == list(fake.cards)
    async with line_on(fake, cursors):
        await eventually(lambda: not only(fake).growing)
        await eventually(lambda: cursors.values["open-cards"] == b"[]")
    assert only(fake).number == LAST


async def test_a_new_link_of_the_same_process_leaves_its_cards_alone(fake: FakeFeishu, line: Line, card: Card) -> None:
    await fake.gateway.close()
    await line.ended()
    await line.start()
    await card.update("goes on")
    await shown(line, "goes on")
    await finished(line, card, "whole")
    assert fake.texts() == ["whole"]


@pytest.mark.parametrize("left", [b"\xff", b"{}", b'["card-gone"]'])
async def test_records_that_mean_nothing_harm_nothing(fake: FakeFeishu, left: bytes) -> None:
    cursors = MemoryCursors()
    cursors.values["open-cards"] = left
    async with line_on(fake, cursors) as line:
        assert isinstance(await finished(line, await begun(line, await line.says()), "whole"), Sent)


async def test_a_full_disk_stops_no_answer(fake: FakeFeishu, line: Line, asked: InboundMessage) -> None:
    line.cursors.full = True
    assert isinstance(await finished(line, await begun(line, asked), "whole"), Sent)


async def test_an_answer_that_is_abandoned_at_the_end_stops_growing(fake: FakeFeishu, line: Line, card: Card) -> None:
    await card.update("half")
    await shown(line, "half")
    fake.fail("settings", Fault(hang=True))
    ending = asyncio.create_task(card.finish("half"))
    await eventually(lambda: "settings" in fake.calls)
    ending.cancel()
    await asyncio.wait({ending})
    assert json.loads(line.cursors.values["open-cards"]) == [only(fake).id], "the next process ends it"

"""Weixin: what goes out, how often, and what is kept for the next message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from bridges.backlog import LONGEST
from bridges.delivery import Delivery, End
from bridges.http import CALL_SECONDS
from bridges.message import Acceptance, Kept, NotSent, RetryAfter, SendOutcome, Sent, SentId
from bridges.split import split_lossless
from bridges.weixin.outbox import GAP_SECONDS, REPLIES, REST_SECONDS, SPARED, UNREACHED_SECONDS
from commands.model import ChatKey
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors
from tests.channels.weixin import ALICE, BOB, Line, line_on, platform
from tests.fakes.weixin import FakeWeixin, Fault


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeixin]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeWeixin) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


def texts(fake: FakeWeixin) -> list[str]:
    return [message.text for message in fake.sent]


async def move(line: Line, sent: int) -> None:
    """Let time pass, a pace at a time, until so many messages are out."""
    async with asyncio.timeout(10):
        while len(line.fake.sent) < sent:
            await line.clock.advance(GAP_SECONDS)
            await asyncio.sleep(0.005)


async def test_a_message_goes_out_as_the_official_client_sends_it(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    assert await line.send(message, "hello") == Sent(SentId(str(2**63 + 12)))
    (body,) = [body["msg"] for call, body in fake.calls if call == "sendmessage"]
    assert isinstance(body, dict)
    assert len(body.pop("client_id")) == 32
    assert body == {
        "from_user_id": "",
        "to_user_id": ALICE,
        "message_type": 2,
        "message_state": 2,
        "item_list": [{"type": 1, "text_item": {"text": "hello"}}],
        "context_token": f"context-{message.id}",
    }


async def test_every_reply_uses_the_newest_token_of_its_person(fake: FakeWeixin, line: Line) -> None:
    first = await line.says(text="one")
    other = await line.says(BOB, "other")
    second = await line.says(text="two")
    await line.send(first, "late answer to one")
    await line.send(other, "to the other")
    assert [sent.token for sent in fake.sent] == [f"context-{second.id}", f"context-{other.id}"]


async def test_tokens_and_counts_survive_a_restart(fake: FakeWeixin) -> None:
    cursors = MemoryCursors()
    async with line_on(fake, cursors) as line:
        message = await line.says()
        for number in range(REPLIES - 1):
            await line.send(message, str(number))
    async with line_on(fake, cursors) as line:
        assert isinstance(await line.send(message, "last"), Sent)
        assert await line.send(message, "one too many") == Kept()
        assert fake.sent[-1].token == f"context-{message.id}"


async def test_an_older_message_that_comes_again_brings_no_older_token(fake: FakeWeixin, line: Line) -> None:
    first = await line.says(text="one")
    second = await line.says(text="two")
    fake.again(first.id)
    await line.inbox.heard(3)
    await line.send(second, "answer")
    assert fake.sent[-1].token == f"context-{second.id}"


async def test_sends_keep_their_distance(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    await line.send(message, "one")
    await line.clock.advance(GAP_SECONDS)
    sending = [asyncio.create_task(line.channel.send(message.reply_to, str(number))) for number in range(3)]
    await asyncio.wait({sending[0]})
    assert len(fake.sent) == 2
    await line.clock.sleeping(2)  # the poll's limit and the second message
    await line.clock.advance(GAP_SECONDS - 0.1)
    assert len(fake.sent) == 2, "the next one is not due yet"
    await line.clock.advance(0.1)
    await eventually(lambda: len(fake.sent) == 3)
    await move(line, 4)
    assert all(isinstance(outcome, Sent) for outcome in await asyncio.gather(*sending))


async def test_nine_replies_then_the_rest_waits_for_the_next_message(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    outcomes = [await line.send(message, str(number)) for number in range(12)]
    assert [type(outcome) for outcome in outcomes] == [Sent] * REPLIES + [Kept] * 3
    await line.says(text="go on")
    await move(line, 12)
    assert texts(fake) == [str(number) for number in range(12)]
    assert len({sent.token for sent in fake.sent[9:]}) == 1, "with the new token"


async def test_a_long_answer_says_that_it_goes_on_and_goes_on(fake: FakeWeixin, line: Line) -> None:
    async def rest_waits(chat: ChatKey) -> str:
        return "more"

    message = await line.says()
    delivery = Delivery(line.channel, split_lossless, clock=line.clock, rest_waits=rest_waits)
    pages = [str(number) for number in range(20)]
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, pages))
    await move(line, REPLIES)
    assert (await delivering).end is End.KEPT
    assert texts(fake) == [*pages[: REPLIES - 1], "more"]
    assert await line.channel.replies_left(message.reply_to) == 0
    for round_ in (1, 2):
        await line.says(text="go on")
        await move(line, REPLIES + round_ * (REPLIES - SPARED))
    assert texts(fake)[REPLIES:] == pages[REPLIES - 1 :]
    await delivery.close(0)


async def test_who_is_held_back_is_told_nothing_until_they_write(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", *[Fault(ret=-2)] * 2)
    for _ in range(2):
        await line.send(message, "one")
    assert await line.channel.replies_left(message.reply_to) == 0
    await line.says(text="hello?")
    await move(line, 1)
    assert await line.channel.replies_left(message.reply_to) == REPLIES - 1


async def test_what_waited_leaves_room_for_the_new_reply(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    for number in range(REPLIES + 8):
        await line.send(message, str(number))
    again = await line.says(text="/history")
    await move(line, REPLIES + REPLIES - SPARED)
    replies = [await line.send(again, f"history {number}") for number in range(SPARED)]
    assert all(isinstance(reply, Sent) for reply in replies)
    assert texts(fake)[REPLIES : REPLIES + REPLIES - SPARED] == ["9", "10", "11", "12", "13", "14"]


async def test_what_is_said_aside_leaves_the_last_reply_to_the_answer(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    for number in range(REPLIES - 1):
        await line.clock.advance(GAP_SECONDS)
        assert isinstance(await line.channel.send_aside(message.reply_to, f"question {number}"), Sent)
    assert await line.channel.send_aside(message.reply_to, "one more") is NotSent.WINDOW_CLOSED
    assert isinstance(await line.send(message, "the answer"), Sent)


async def test_what_is_said_aside_is_never_kept(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", Fault(ret=-2), Fault(ret=-2))
    assert await line.channel.send_aside(message.reply_to, "question") == RetryAfter(REST_SECONDS)
    await line.clock.advance(REST_SECONDS)
    assert await line.channel.send_aside(message.reply_to, "question") is NotSent.WINDOW_CLOSED
    await line.says(text="hello?")
    await line.clock.advance(60)
    assert not fake.sent


async def test_what_waits_is_bounded(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    outcomes = [await line.send(message, str(number)) for number in range(REPLIES + LONGEST + 1)]
    assert outcomes[-2:] == [Kept(), NotSent.WINDOW_CLOSED]


async def test_what_waits_survives_a_restart_and_is_sent_once(fake: FakeWeixin) -> None:
    cursors = MemoryCursors()
    async with line_on(fake, cursors) as line:
        message = await line.says()
        for number in range(REPLIES + 2):
            await line.send(message, str(number))
    async with line_on(fake, cursors) as line:
        await line.says(text="again")
        await move(line, REPLIES + 2)
        await line.says(text="and again")
        await line.clock.advance(60)
    assert texts(fake) == [str(number) for number in range(REPLIES + 2)]


async def test_a_full_disk_keeps_nothing_and_says_so(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    line.cursors.full = True
    outcomes = [await line.send(message, str(number)) for number in range(REPLIES + 1)]
    assert all(isinstance(outcome, Sent) for outcome in outcomes[:-1]), "a full disk does not stop an answer"
    assert outcomes[-1] is NotSent.WINDOW_CLOSED


async def test_held_back_is_tried_once_more_after_a_rest_then_kept(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", *[Fault(ret=-2)] * 2)
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, ("one", "two", "three")))
    await eventually(lambda: fake.count("sendmessage") == 1)
    await line.clock.sleeping(2)
    await line.clock.advance(REST_SECONDS - 1)
    assert fake.count("sendmessage") == 1
    async with asyncio.timeout(10):
        while not delivering.done():
            await line.clock.advance(1)
            await asyncio.sleep(0.005)
    assert (await delivering).end is End.KEPT
    assert fake.count("sendmessage") == 2, "the rest is not even tried"
    await line.says(text="still there?")
    await move(line, 3)
    assert texts(fake) == ["one", "two", "three"]
    await delivery.close(0)


async def test_a_rest_that_helps_is_all_there_is(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    for text in ("one", "two"):
        fake.fail("sendmessage", Fault(ret=-2))
        assert await line.send(message, text) == RetryAfter(REST_SECONDS)
        assert isinstance(await line.send(message, text), Sent)


async def test_what_waited_and_fails_twice_is_given_up(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", *[Fault(ret=-2)] * 4)
    assert await line.send(message, "poison") == RetryAfter(REST_SECONDS)
    assert await line.send(message, "poison") == Kept()
    for count in (3, 4):
        await line.says(text="hello?")
        async with asyncio.timeout(10):
            while fake.count("sendmessage") < count:
                await line.clock.advance(GAP_SECONDS)
                await asyncio.sleep(0.005)
    last = await line.says(text="hello!")
    assert isinstance(await line.send(last, "fine"), Sent)
    assert texts(fake) == ["fine"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(ret=-14), NotSent.REAUTHENTICATE),
        (Fault(errcode=-14), NotSent.REAUTHENTICATE),
        (Fault(status=401), NotSent.REAUTHENTICATE),
        (Fault(ret=-1), NotSent.REJECTED),
        (Fault(status=400), NotSent.REJECTED),
        (Fault(status=413), NotSent.TOO_LONG),
        (Fault(status=429), RetryAfter(REST_SECONDS)),
        (Fault(status=500), NotSent.UNKNOWN),
        (Fault(body=b"<html>"), NotSent.UNKNOWN),
        (Fault(drop=True), NotSent.UNKNOWN),
        (Fault(drop=True, accepted=True), NotSent.UNKNOWN),
        (Fault(ret=-2), RetryAfter(REST_SECONDS)),
    ],
)
async def test_outcomes(fake: FakeWeixin, line: Line, fault: Fault, outcome: SendOutcome) -> None:
    message = await line.says()
    fake.fail("sendmessage", fault)
    assert await line.send(message, "hello") == outcome


async def test_an_empty_answer_is_a_yes(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", Fault())
    assert await line.send(message, "hello") == Sent(None)


async def test_a_lost_answer_is_never_repeated(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", Fault(hang=True, accepted=True))
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, ("once",)))
    await eventually(lambda: bool(fake.sent))
    await line.clock.advance(CALL_SECONDS + 1)
    assert (await delivering).end is End.UNKNOWN
    assert texts(fake) == ["once"]
    await delivery.close(0)


async def test_an_unreachable_platform_took_nothing(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    await line.stop()
    await fake.__aexit__()
    assert await line.send(message, "hello") == RetryAfter(UNREACHED_SECONDS)


async def test_a_cancelled_send_leaves_the_person_reachable(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", Fault(hang=True))
    sending = asyncio.create_task(line.channel.send(message.reply_to, "lost"))
    await eventually(lambda: fake.count("sendmessage") == 1)
    sending.cancel()
    await asyncio.wait({sending})
    assert isinstance(await line.send(message, "next"), Sent)


async def test_replies_go_out_while_nothing_is_polled(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    await line.stop()
    assert isinstance(await line.send(message, "late"), Sent)


async def test_nothing_is_sent_after_the_end(line: Line) -> None:
    message = await line.says()
    await line.stop()
    await line.channel.close()
    assert await line.channel.send(message.reply_to, "late") is NotSent.REJECTED
    await line.channel.typing(message.reply_to)


async def test_the_typing_sign_is_shown_and_taken_away_by_the_answer(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    await line.channel.typing(message.reply_to)
    await line.channel.typing(message.reply_to)
    await line.send(message, "answer")
    assert fake.typing == [(ALICE, 1), (ALICE, 1), (ALICE, 2)]
    assert fake.count("getconfig") == 1


@pytest.mark.parametrize("call", ["getconfig", "sendtyping"])
@pytest.mark.parametrize("fault", [Fault(status=500), Fault(ret=-1), Fault(drop=True)])
async def test_a_failing_typing_sign_harms_nothing(fake: FakeWeixin, line: Line, call: str, fault: Fault) -> None:
    message = await line.says()
    fake.fail(call, fault)
    await line.channel.typing(message.reply_to)
    assert isinstance(await line.send(message, "answer"), Sent)


async def test_a_stranger_leaves_no_record(fake: FakeWeixin, line: Line) -> None:
    line.inbox.answers.append(Acceptance.DENIED)
    message = await line.says(BOB)
    await eventually(lambda: fake.through)
    assert not [key for key in line.cursors.values if BOB in key]
    assert isinstance(await line.send(message, "Pairing code ABCD"), Sent)
    assert fake.sent[-1].token == f"context-{message.id}"


async def test_long_texts_are_cut_to_what_a_message_holds(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, ("字" * 5000,)))
    await move(line, 3)
    assert (await delivering).end is End.SENT
    assert [len(text) for text in texts(fake)] == [2000, 2000, 1000]
    assert all(later.at >= earlier.at for earlier, later in pairwise(fake.sent))
    await delivery.close(0)

"""Feishu: what becomes of a send, and that none is shown twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from bridges.feishu.outbox import LONGEST_WAIT, SLOWER_SECONDS, TRIES, UNREACHED_SECONDS, harmless
from bridges.message import InboundMessage, NotSent, RetryAfter, SendOutcome, Sent
from tests.bridges.bench import eventually
from tests.channels.feishu import Line, line_on, platform
from tests.fakes.feishu import ALICE, GROUP, FakeFeishu, Fault, mention, message, private
from tests.fakes.feishu.events import BOT


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


async def patiently(line: Line, work: asyncio.Task[SendOutcome]) -> SendOutcome:
    """Let time pass until the send is over."""
    async with asyncio.timeout(20):
        while not work.done():
            await line.clock.advance(0.5)
            await asyncio.sleep(0.002)
    return await work


async def send(line: Line, asked: InboundMessage, text: str = "hi") -> SendOutcome:
    return await patiently(line, asyncio.create_task(line.channel.send(asked.reply_to, text)))


async def test_a_reply_is_plain_text(fake: FakeFeishu, line: Line, asked: InboundMessage) -> None:
    assert await send(line, asked, "**a** <b>\n👋") == Sent(fake.shown[0].id)  # type: ignore[arg-type]  # a SentId
    (shown,) = fake.shown
    assert (shown.kind, shown.content, shown.topic) == ("text", {"text": "**a** <b>\n👋"}, None)


async def test_a_reply_to_a_topic_stays_in_the_topic(fake: FakeFeishu, line: Line) -> None:
    mentions = [mention("@_user_1", BOT, "Bot")]
    await fake.deliver(message({"text": "@_user_1 hi"}, chat=GROUP, mentions=mentions, thread_id="omt_1"))
    (asked,) = await line.inbox.heard()
    assert isinstance(await send(line, asked), Sent)
    assert (fake.shown[0].chat, fake.shown[0].topic) == (GROUP, asked.id)
    card = await line.channel.begin(asked.reply_to)
    assert card is not None
    await card.finish("whole")
    assert (fake.shown[1].topic, fake.shown[1].text) == (asked.id, "whole")


async def test_a_route_survives_a_restart(fake: FakeFeishu, asked: InboundMessage, line: Line) -> None:
    async with line_on(fake) as other:
        assert isinstance(await send(other, asked), Sent)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('<at user_id="all">all</at>', '＜at user_id="all">all＜/at>'),
        ("<AT id=all></AT>", "＜AT id=all>＜/AT>"),
        ("a < b, <atom>, cat", "a < b, <atom>, cat"),
        ("half \ud83d", "half ?"),
    ],
)
def test_mentions_are_disarmed(text: str, sent: str) -> None:
    assert harmless(text) == sent
    assert len(harmless(text)) == len(text)


@pytest.mark.parametrize("text", ["\x01", '"', "\\", "中", "\n"])
async def test_the_longest_message_fits_however_it_is_written(
    fake: FakeFeishu, line: Line, asked: InboundMessage, text: str
) -> None:
    whole = text * line.channel.limits.text
    assert isinstance(await send(line, asked, whole), Sent)
    assert fake.texts() == [whole]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(status=400, code=230002), NotSent.BLOCKED),
        (Fault(status=400, code=230013), NotSent.BLOCKED),
        (Fault(status=400, code=230053), NotSent.BLOCKED),
        (Fault(status=400, code=230025), NotSent.TOO_LONG),
        (Fault(status=400, code=99991672), NotSent.REJECTED),
        (Fault(status=400, code=99991403), NotSent.REJECTED),
        (Fault(status=200, code=230001), NotSent.REJECTED),
        (Fault(status=404, body=b"<html>"), NotSent.REJECTED),
        (Fault(status=429, code=99991400, headers=(("x-ogw-ratelimit-reset", "7"),)), RetryAfter(7.0)),
        (Fault(status=400, code=99991400, headers=(("x-ogw-ratelimit-reset", "0"),)), RetryAfter(0.0)),
        (Fault(status=400, code=99991400), RetryAfter(SLOWER_SECONDS)),
        (Fault(status=400, code=230020), RetryAfter(SLOWER_SECONDS)),
        (Fault(status=200, code=230006), RetryAfter(SLOWER_SECONDS)),
        (Fault(status=400, code=11232), RetryAfter(SLOWER_SECONDS)),
        (Fault(status=429, headers=(("Retry-After", "3"),)), RetryAfter(3.0)),
    ],
)
async def test_every_refusal_has_its_outcome_and_is_not_repeated(
    fake: FakeFeishu, line: Line, asked: InboundMessage, fault: Fault, outcome: SendOutcome
) -> None:
    fake.fail("messages", fault)
    assert await send(line, asked) == outcome
    assert fake.calls.count("messages") == 1
    assert fake.shown == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(drop=True, accepted=True),
        Fault(status=502, accepted=True),
        Fault(status=200, body=b"<html>", accepted=True),
        Fault(status=500, code=2200, accepted=True),
        Fault(hang=True, accepted=True),
    ],
)
async def test_a_message_whose_answer_was_lost_is_sent_again_and_shown_once(
    fake: FakeFeishu, line: Line, asked: InboundMessage, fault: Fault
) -> None:
    fake.fail("messages", fault)
    assert isinstance(await send(line, asked), Sent)
    assert fake.texts() == ["hi"]
    assert fake.calls.count("messages") == 2


async def test_a_message_whose_answers_are_all_lost_is_an_open_question(
    fake: FakeFeishu, line: Line, asked: InboundMessage
) -> None:
    fake.fail("messages", *[Fault(drop=True, accepted=True)] * TRIES)
    assert await send(line, asked) is NotSent.UNKNOWN
    assert fake.texts() == ["hi"]


async def test_a_wait_after_a_lost_answer_does_not_make_a_second_message(
    fake: FakeFeishu, line: Line, asked: InboundMessage
) -> None:
    slow = Fault(status=400, code=99991400, headers=(("x-ogw-ratelimit-reset", "600"),))
    fake.fail("messages", Fault(drop=True, accepted=True), slow)
    began = line.clock.monotonic()
    assert isinstance(await send(line, asked), Sent)
    assert line.clock.monotonic() - began < LONGEST_WAIT + 10
    assert fake.texts() == ["hi"]


async def test_a_refusal_after_a_lost_answer_is_an_open_question(
    fake: FakeFeishu, line: Line, asked: InboundMessage
) -> None:
    fake.fail("messages", Fault(drop=True, accepted=True), *[Fault(status=400, code=230002)] * TRIES)
    assert await send(line, asked) is NotSent.UNKNOWN


async def test_equal_messages_are_different_messages(fake: FakeFeishu, line: Line, asked: InboundMessage) -> None:
    await send(line, asked)
    await send(line, asked)
    assert fake.texts() == ["hi", "hi"]


async def test_what_never_left_is_tried_later(fake: FakeFeishu) -> None:
    async with platform() as gone, line_on(gone) as line:
        asked = await line.says()
        await gone.__aexit__()
        assert await send(line, asked) == RetryAfter(UNREACHED_SECONDS)


async def test_a_token_that_is_over_is_replaced_once(fake: FakeFeishu, line: Line, asked: InboundMessage) -> None:
    fake.valid.clear()
    assert isinstance(await send(line, asked), Sent)
    assert line.hidden == fake.tokens
    assert len(fake.tokens) == 2


async def test_a_token_that_is_refused_however_new_ends_the_send(
    fake: FakeFeishu, line: Line, asked: InboundMessage
) -> None:
    fake.fail("messages", *[Fault(status=400, code=99991663)] * 2)
    assert await send(line, asked) is NotSent.REAUTHENTICATE
    assert fake.calls.count("messages") == 2


async def test_a_token_is_renewed_before_its_end(fake: FakeFeishu) -> None:
    fake.life = 1000
    async with line_on(fake) as line:
        asked = await line.says()
        await line.clock.advance(699)
        await send(line, asked)
        assert len(fake.tokens) == 1
        await line.clock.advance(2)
        await asyncio.gather(*(send(line, asked) for _ in range(5)))
        assert len(fake.tokens) == 2, "whoever comes at the same time waits for the same one"


async def test_a_send_that_is_cancelled_leaves_nothing_behind(
    fake: FakeFeishu, line: Line, asked: InboundMessage
) -> None:
    fake.fail("messages", Fault(hang=True))
    sending = asyncio.create_task(line.channel.send(asked.reply_to, "hi"))
    await eventually(lambda: "messages" in fake.calls)
    sending.cancel()
    await asyncio.wait({sending})
    assert isinstance(await send(line, asked, "next"), Sent)
    assert fake.texts() == ["next"]


async def test_before_the_first_run_and_after_the_end_nothing_is_sent(fake: FakeFeishu) -> None:
    line = Line(fake)
    asked = message({"text": "hi"})
    assert json.dumps(asked)
    async with line_on(fake) as other:
        target = (await other.says()).reply_to
    assert await line.channel.send(target, "hi") is NotSent.REJECTED
    assert await line.channel.begin(target) is None
    assert await other.channel.send(target, "hi") is NotSent.REJECTED
    await other.channel.close()
    assert fake.texts(private(ALICE)) == []

"""Weixin: sends while the platform refuses, is away, or ended the login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.delivery import Delivery, End
from bridges.message import RetryAfter
from bridges.split import split_lossless
from bridges.weixin.outbox import GAP_SECONDS, REPLIES, REST_SECONDS, UNREACHED_SECONDS
from tests.channels.test_weixin_send import texts
from tests.channels.weixin import Line, line_on, platform
from tests.fakes.weixin import FakeWeixin, Fault


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeixin]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeWeixin) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


async def test_what_never_left_takes_no_reply_away(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    await line.stop()
    await fake.__aexit__()
    for _ in range(REPLIES + 1):
        assert await line.send(message, "hello") == RetryAfter(UNREACHED_SECONDS)
    assert await line.channel.replies_left(message.reply_to) == REPLIES


async def test_a_storm_of_refusals_is_two_calls(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", *[Fault(ret=-2)] * 50)
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = [asyncio.create_task(delivery.deliver(message.reply_to, (f"{n}",))) for n in range(20)]
    async with asyncio.timeout(10):
        while not all(task.done() for task in delivering):
            await line.clock.advance(REST_SECONDS)
            await asyncio.sleep(0.005)
    assert {(await task).end for task in delivering} == {End.KEPT}
    assert fake.count("sendmessage") == 2
    await delivery.close(0)


async def test_a_login_that_ends_between_two_pages_stops_the_second(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.fail("sendmessage", None, Fault(errcode=-14), Fault(errcode=-14))
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, ("one", "two", "three")))
    async with asyncio.timeout(10):
        while not delivering.done():
            await line.clock.advance(GAP_SECONDS)
            await asyncio.sleep(0.005)
    assert (await delivering).end is End.UNAUTHENTICATED
    assert texts(fake) == ["one"]
    assert fake.count("sendmessage") == 3, "once more, and no third time"
    await delivery.close(0)


async def test_the_pace_is_no_faster_than_the_platform_bears(line: Line) -> None:
    """Known of the platform: about ten replies to a message, three in a second are too many, a rest helps."""
    assert REPLIES < 10
    assert GAP_SECONDS >= 1.5
    assert REST_SECONDS >= 30
    assert line.channel.limits.text <= 2_000

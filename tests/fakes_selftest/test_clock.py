from __future__ import annotations

import asyncio
import time

import pytest

from harness_client.clock import Clock
from tests.fakes.clock import FakeClock


def test_it_is_a_clock() -> None:
    clock: Clock = FakeClock(5.0)
    assert clock.monotonic() == clock.time() == 5.0


async def test_advance_wakes_sleepers_in_order_each_at_its_own_moment() -> None:
    clock, woken = FakeClock(0.0), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("late", 3.0))
        group.create_task(sleeper("early", 1.0))
        await clock.sleeping(2)
        await clock.advance(2.0)
        assert woken == [("early", 1.0)]
        assert clock.monotonic() == 2.0
        await clock.advance(1.0)
    assert woken == [("early", 1.0), ("late", 3.0)]


async def test_a_sleeper_that_sleeps_again_is_woken_within_the_same_advance() -> None:
    clock, ticks = FakeClock(0.0), list[float]()

    async def ticker() -> None:
        while True:
            await clock.sleep(1.0)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.sleeping()
    await clock.advance(3.5)
    task.cancel()
    assert ticks == [1.0, 2.0, 3.0]


async def test_a_timeout_fires_when_time_is_moved_past_it_and_not_before() -> None:
    clock = FakeClock()

    async def body() -> str:
        try:
            async with clock.timeout(10.0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "finished"

    task = asyncio.create_task(body())
    await clock.sleeping()
    await clock.advance(9.9)
    assert not task.done()
    await clock.advance(0.1)
    assert await task == "timed out"


async def test_a_timeout_left_in_time_leaves_nothing_behind() -> None:
    clock = FakeClock()
    async with clock.timeout(10.0):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert clock.sleepers == 0
    await clock.advance(20.0)


async def test_a_timeout_of_nothing_fires_at_the_first_wait() -> None:
    clock = FakeClock()
    with pytest.raises(TimeoutError):
        async with clock.timeout(0.0):
            await asyncio.Event().wait()


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1.0))
    await clock.sleeping()
    task.cancel()
    await asyncio.wait([task])
    assert clock.sleepers == 0


async def test_cancelling_the_body_of_a_timeout_is_no_timeout() -> None:
    clock = FakeClock()

    async def body() -> None:
        async with clock.timeout(10.0):
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await clock.sleeping()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_autojump_spends_an_hour_in_no_time() -> None:
    began = time.monotonic()
    async with FakeClock(autojump=True) as clock:
        for _ in range(60):
            await clock.sleep(60.0)
        assert clock.monotonic() == 1_000_000.0 + 3600.0
    assert time.monotonic() - began < 5.0


async def test_autojump_waits_for_work_that_is_still_ready() -> None:
    async with FakeClock(autojump=True) as clock:
        done: list[float] = []

        async def busy() -> None:
            for _ in range(500):
                await asyncio.sleep(0)
            done.append(clock.monotonic())

        task = asyncio.create_task(busy())
        await clock.sleep(5.0)
        await task
        assert done == [1_000_000.0]


async def test_autojump_fires_the_deadline_before_the_longer_sleep() -> None:
    async with FakeClock(autojump=True) as clock:
        with pytest.raises(TimeoutError):
            async with clock.timeout(10.0):
                await clock.sleep(11.0)
        assert clock.monotonic() == 1_000_010.0


async def test_autojump_ends_with_the_context() -> None:
    async with FakeClock(autojump=True) as clock:
        await clock.sleep(1.0)
    task = asyncio.create_task(clock.sleep(1.0))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()

"""Several things at once."""

from __future__ import annotations

import asyncio

import pytest

from bridges import race
from bridges.race import first_of, task_group, to_its_end


async def fail(error: Exception) -> None:
    raise error


async def together(*errors: Exception) -> None:
    async with task_group() as tasks:
        for error in errors:
            tasks.create_task(fail(error))


async def test_the_first_failure_ends_the_others() -> None:
    other = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            other.set()

    with pytest.raises(KeyError):
        await first_of(wait(), fail(KeyError()))
    assert other.is_set()


async def test_one_failure_of_a_group_is_raised_as_itself() -> None:
    with pytest.raises(KeyError):
        await together(KeyError())


async def test_several_failures_stay_a_group() -> None:
    with pytest.raises(ExceptionGroup) as group:
        await together(KeyError(), ValueError())
    assert len(group.value.exceptions) == 2


async def test_a_cancelled_group_is_cancelled() -> None:
    async def waits() -> None:
        async with task_group():
            await asyncio.Event().wait()

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("failing", [False, True])
async def test_a_cancellation_waits_for_what_should_come_to_its_end(*, failing: bool) -> None:
    begun, free, over = asyncio.Event(), asyncio.Event(), False

    async def work() -> None:
        nonlocal over
        begun.set()
        await free.wait()
        over = True
        if failing:
            raise KeyError

    task = asyncio.create_task(to_its_end(work()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    free.set()
    await asyncio.wait({task})
    assert (task.cancelled(), over) == (True, True)


async def test_what_never_comes_to_its_end_is_cancelled_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "GRACE_SECONDS", 0.01)
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(to_its_end(work()))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()


async def test_what_comes_to_its_end_is_returned() -> None:
    async def work() -> int:
        return 7

    assert await to_its_end(work()) == 7

"""Several things at once."""

from __future__ import annotations

import asyncio

import pytest

from bridges.race import first_of, task_group


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

"""Several things at once, until the first of them is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Final, TypeVar

GRACE_SECONDS: Final = 1.0
"""How long a cancellation waits for what should come to its end."""

T = TypeVar("T")


async def first_of(*work: Coroutine[object, object, None]) -> None:
    """Run ``work`` until one part returns or raises; the rest is cancelled and over when this returns.

    Raises what the first part raised.
    """
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if task in done:
            task.result()


async def to_its_end(work: Coroutine[object, object, T]) -> T:
    """Run ``work``, which a cancellation does not stop in its midst: it gets GRACE_SECONDS to come to its end."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


class Overtaken(Exception):
    """What was not waited for came first."""


@asynccontextmanager
async def unless(event: asyncio.Event) -> AsyncIterator[None]:
    """Cancel the body as soon as ``event`` is set, and then raise Overtaken."""

    async def overtake(body: asyncio.Timeout) -> None:
        await event.wait()
        body.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as body:
            watching = asyncio.create_task(overtake(body))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if not body.expired():
            raise
        raise Overtaken from None


@asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run ``work``, which never ends by itself, beside the body; it is cancelled with it and over when this returns."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Open a task group that raises the only failure there is as itself, so that whoever reports it can name it."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise

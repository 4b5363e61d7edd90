"""Several things at once, until the first of them is over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


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

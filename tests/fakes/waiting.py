"""Waiting for what nobody announces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]], seconds: float = 10.0, *, pause: float = 0.005
) -> None:
    """Wait until the condition holds; look every ``pause`` seconds."""
    async with asyncio.timeout(seconds):
        while not (holds if isinstance(holds := condition(), bool) else await holds):  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(pause)

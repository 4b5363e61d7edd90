"""Signals that a program with an event loop heeds until its very end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType


def on_signal(number: signal.Signals, act: Callable[[], object]) -> None:
    """Let the running loop call ``act`` whenever the signal comes. Once the loop is closed the signal changes nothing.

    A handler of the loop's own is gone with the loop: one more signal would then kill a program that is about to end
    with its own exit code.
    """
    loop = asyncio.get_running_loop()

    def come(_number: int, _frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(act)  # which also wakes a loop that waits

    signal.signal(number, come)

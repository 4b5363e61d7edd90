"""Long work in a thread that lets the event loop breathe: the loop must never stall over 20 ms."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

TURN: Final = 0.001
"""Seconds after which a thread that computes hands the interpreter to one that waits for it.

The event loop gives it up at every call to the system and waits that long to have it back: with the usual 5 ms, four
calls in one turn of the loop are a stall of 20 ms.
"""

T = TypeVar("T")


async def offload(work: Callable[[], T]) -> T:
    """Run ``work``, pure Python in short calls, in a worker thread; a cancelled caller does not wait for it."""
    return await asyncio.to_thread(_calmly, work)


def _calmly(work: Callable[[], T]) -> T:
    with _interpreter.yielding():
        return work()


class _Interpreter:
    """What all threads share: turns at computing, and the cyclic garbage collector, which stops them while it walks.

    A large page makes half a million objects and no cycle: walking them costs 60 ms and frees nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._was_on = True
        self._turn = TURN

    @contextmanager
    def yielding(self) -> Iterator[None]:
        """Take short turns and do not collect; on the way out, what was made counts as old, and is walked seldom."""
        with self._lock:
            if self._users == 0:
                self._was_on = gc.isenabled()
                gc.disable()
                self._turn = sys.getswitchinterval()
                sys.setswitchinterval(TURN)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    sys.setswitchinterval(self._turn)
                if self._users == 0 and self._was_on:
                    gc.freeze()
                    gc.unfreeze()
                    gc.enable()


_interpreter = _Interpreter()

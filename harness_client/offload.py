"""Long work in a thread that lets the event loop breathe: the loop must never stall over 20 ms."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


async def offload(work: Callable[[], T]) -> T:
    """Run ``work``, pure Python in short calls, in a worker thread; a cancelled caller does not wait for it."""
    return await asyncio.to_thread(_calmly, work)


def _calmly(work: Callable[[], T]) -> T:
    with _collector.resting():
        return work()


class _Collector:
    """The cyclic garbage collector, which stops every thread for as long as it walks what was made.

    A large page makes half a million objects and no cycle: walking them costs 60 ms and frees nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._was_on = True

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Keep it from running by itself; on the way out, what was made counts as old, and is walked seldom."""
        with self._lock:
            if self._users == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._was_on:
                    gc.freeze()
                    gc.unfreeze()
                    gc.enable()


_collector = _Collector()

"""What a test may not leave behind: child processes and threads. Open sockets are warnings, and warnings are errors."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

_GRACE = 3.0
"""Seconds in which what is already ending may end."""

_BEATING = "keep-alive-handler"
"""A Discord link's thread: a daemon that goes on beating for a loop that may be closed."""

_PYTHONS_OWN = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")


def running() -> set[str]:
    """Name every child process (Linux only), and every thread that would keep the program alive or beat for ever."""
    threads = {
        f"thread {thread.name}"
        for thread in threading.enumerate()
        # asyncio's own threads end with their loop, and the live tests share one loop.
        if (not thread.daemon or thread.name.startswith(_BEATING)) and not thread.name.startswith("asyncio_")
    }
    return threads | {f"child process {pid} ({_command(pid)})" for pid in _children()}


def remaining(before: set[str]) -> set[str]:
    """Return what runs now and did not before, once it had a moment to end."""
    until = time.monotonic() + _GRACE
    while (left := running() - before) and time.monotonic() < until:
        time.sleep(0.01)
    return left


def _children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread ended while we looked
            found |= {int(pid) for pid in task.read_text().split()}
    return {pid for pid in found if not any(own in _raw_command(pid) for own in _PYTHONS_OWN)}


def _raw_command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _command(pid: int) -> str:
    return _raw_command(pid).replace(b"\0", b" ").decode(errors="replace").strip()[:80] or "ended, not waited for"

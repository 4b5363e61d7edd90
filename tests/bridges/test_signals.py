"""A signal is heeded while the loop runs, wakes it, and kills nothing on the way out."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEEDS = """
import asyncio, os, signal
from bridges.cli.signals import on_signal

NUMBER = signal.Signals[{name!r}]

async def main():
    came = asyncio.Event()
    on_signal(NUMBER, came.set)
    asyncio.get_running_loop().run_in_executor(None, os.kill, os.getpid(), NUMBER)
    await asyncio.wait_for(came.wait(), 20)

asyncio.run(main())
os.kill(os.getpid(), NUMBER)
print("ended in its own way")
raise SystemExit(7)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_is_heeded_and_one_that_comes_late_changes_nothing(name: str) -> None:
    command = [sys.executable, "-c", HEEDS.format(name=name)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)  # noqa: S603 - our own
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "ended in its own way\n", "")

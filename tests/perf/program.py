"""What the program costs before it does anything: start up to ``--help``, and memory of an idle chat."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.perf.measure import Figure, median, resident

PROGRAM = str(Path(sys.executable).with_name("harness-im"))
STARTS = 9


def start_to_help() -> Figure:
    """Time ``harness-im --help``, new process and all."""
    ours, bare = [], []
    for _ in range(STARTS):
        ours.append(_wall([PROGRAM, "--help"]))
        bare.append(_wall([sys.executable, "-c", "pass"]))
    note = f"median of {STARTS}; Python alone {median(bare) * 1000:.0f} ms"
    return Figure("start of the program up to --help", median(ours), 0.5, "s", note)


def _wall(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - our own program
    return time.perf_counter() - began


async def memory_of_chat(harness: str) -> Figure:
    """Read the memory of a chat with the host at ``harness`` once it has answered a ``/history``."""
    with tempfile.TemporaryDirectory() as home:
        chat = await asyncio.create_subprocess_exec(
            PROGRAM, "chat", "--harness", harness,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, env={"HOME": home, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(b"/history\n")
        async with asyncio.timeout(30):
            while b'"segments"' not in (line := await chat.stdout.readline()):
                assert line, "the chat ended without a reply"
        bytes_held = resident(chat.pid)
        chat.stdin.close()
        await chat.wait()
    return Figure("memory of chat without its Harness (RSS)", bytes_held / 1e6, 60, "MB", "after one /history")

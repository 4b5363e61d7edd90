"""The program itself: its start up to ``--help``, the memory of an idle chat, and how to run one bot."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from i18n import Key, Language, Words
from tests.bridges.chat_process import PROGRAM, on_screen, piped
from tests.perf.measure import Figure, median, resident

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


async def memory_of_chat(harness: str) -> list[Figure]:
    """Read the memory of a chat, a script's and a person's, that has asked the host at ``harness``."""
    with tempfile.TemporaryDirectory() as home:
        async with piped(Path(home), "--harness", harness) as chat:
            await chat.ask("/history")
            script = resident(chat.child.pid)
        async with on_screen(Path(home), "--harness", harness) as screen:
            await screen.until("› ")
            screen.type("/history\r")
            await screen.until(Words(Language.ZH)(Key.HISTORY_UNBOUND))
            person = resident(screen.child.pid)
    name = "memory of chat without its Harness (RSS)"
    return [
        Figure(f"{name}, over pipes", script / 1e6, 60, "MB", "after one /history"),
        Figure(f"{name}, in a terminal", person / 1e6, 60, "MB", "after one /history"),
    ]


@asynccontextmanager
async def running(tables: Mapping[str, str], harness: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run bots that are open to everybody, with their own lines by their names, against the host at ``harness``."""
    with tempfile.TemporaryDirectory() as home:
        config = Path(home, "config.toml")
        head = f'language = "en"\n[harness]\nurl = "{harness}"\n[state]\npath = "{home}/state.db"\n'
        bots = (f'[[bot]]\nname = "{name}"\naccess = {{ direct = "open" }}\n{lines}' for name, lines in tables.items())
        config.write_text(head + "".join(bots))
        child = await asyncio.create_subprocess_exec(
            PROGRAM, "run", "--config", str(config), stdout=asyncio.subprocess.DEVNULL,
            stderr=sys.stderr, env={"HOME": home, "LC_ALL": "C.UTF-8", "NO_PROXY": "*"},
        )  # fmt: skip
        try:
            yield child
        finally:
            child.terminate()
            await child.wait()

"""The real program as a child: over pipes, or in a terminal of its own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("harness-im"))
SECONDS = 20.0
"""Bound of every wait; the machine may be busy."""


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}


def _under(after: str | None) -> tuple[str, ...]:
    """Return how to start the program, after a shell's command, such as a limit, where one is given."""
    return (PROGRAM, "chat") if after is None else ("sh", "-c", f'{after}; exec "$0" chat "$@"', PROGRAM)


async def run(home: Path, *options: str, stdin: bytes = b"", after: str | None = None) -> tuple[int, str, str]:
    """Run ``harness-im chat`` to its end; return exit code, output and errors."""
    child = await asyncio.create_subprocess_exec(
        *_under(after),
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home),
    )
    async with asyncio.timeout(SECONDS):
        out, err = await child.communicate(stdin)
    assert child.returncode is not None
    return child.returncode, out.decode(), err.decode()


class PipedChat:
    """One running chat: a line in is a message, a JSON line out a reply."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child

    def say(self, text: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(f"{text}\n".encode())

    async def reply(self) -> str:
        assert self.child.stdout is not None
        async with asyncio.timeout(SECONDS):
            line = await self.child.stdout.readline()
        assert line, "the chat ended"
        return "".join(segment["text"] for segment in json.loads(line)["segments"])

    async def ask(self, text: str) -> str:
        self.say(text)
        return await self.reply()

    async def end(self) -> tuple[int, str]:
        """Close its input; return the exit code and what else it said."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.close()
        async with asyncio.timeout(SECONDS):
            rest = await self.child.stdout.read()
            return await self.child.wait(), rest.decode()

    async def kill(self) -> None:
        self.child.kill()
        await self.child.wait()


@asynccontextmanager
async def piped(
    home: Path, *options: str, out: int = asyncio.subprocess.PIPE, after: str | None = None
) -> AsyncIterator[PipedChat]:
    """Start a chat over pipes, its replies to ``out``; it is killed at the end if it still runs."""
    child = await asyncio.create_subprocess_exec(
        *_under(after),
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=out,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(home),
    )
    try:
        yield PipedChat(child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        assert child.stdin is not None
        child.stdin.close()


class ScreenChat:
    """One running chat in a pseudo-terminal."""

    def __init__(self, child: asyncio.subprocess.Process, master: int) -> None:
        self.child = child
        self.shown = ""
        self._master = master
        self._changed = asyncio.Event()
        self._closed = False

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    async def until(self, text: str) -> str:
        """Wait until the screen was told to show ``text``."""
        async with asyncio.timeout(SECONDS):
            while text not in self.shown:
                self._changed.clear()
                await self._changed.wait()
        return self.shown

    async def end(self) -> int:
        """Wait until the program has ended and all it showed is here; return the exit code."""
        async with asyncio.timeout(2 * SECONDS):
            while not self._closed:
                self._changed.clear()
                await self._changed.wait()
            return await self.child.wait()

    def read(self) -> None:
        try:
            self.shown += os.read(self._master, 65_536).decode(errors="replace")
        except OSError:  # the other end is closed
            asyncio.get_running_loop().remove_reader(self._master)
            self._closed = True
        self._changed.set()

    def signal(self, number: signal.Signals) -> None:
        self.child.send_signal(number)


_OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Run between the new session and the program, so that Ctrl-C on its terminal reaches it."""


@asynccontextmanager
async def on_screen(home: Path, *options: str) -> AsyncIterator[ScreenChat]:
    """Start a chat in a terminal of 80 columns; it is killed at the end if it still runs."""
    async with _in_terminal((PROGRAM, "chat", *options), environment(home)) as chat:
        yield chat


@asynccontextmanager
async def on_terminal(home: Path, *words: str, variables: Mapping[str, str] | None = None) -> AsyncIterator[ScreenChat]:
    """Start ``harness-im`` with ``words`` in a terminal of its own, where keys send signals; as :func:`on_screen`."""
    command = (sys.executable, "-c", _OWN_TERMINAL, PROGRAM, *words)
    async with _in_terminal(command, environment(home) | dict(variables or {})) as screen:
        yield screen


@asynccontextmanager
async def _in_terminal(command: Sequence[str], variables: Mapping[str, str]) -> AsyncIterator[ScreenChat]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = await asyncio.create_subprocess_exec(
        *command, stdin=slave, stdout=slave, stderr=slave, env=variables, start_new_session=True
    )
    os.close(slave)
    chat = ScreenChat(child, master)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, chat.read)
    try:
        yield chat
    finally:
        loop.remove_reader(master)
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        os.close(master)

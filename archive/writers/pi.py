"""Pi's own model and login, through its print mode (spec ARCHIVE 5)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from archive.model import Code
from archive.text import clean
from archive.writers import LONGEST_ANSWER, SECONDS, WriterFailed

ALONE: Final = (
    "--print",
    "--no-session",
    "--no-tools",
    "--no-extensions",
    "--no-skills",
    "--no-prompt-templates",
    "--no-themes",
    "--no-context-files",
)  # fmt: skip - one list of switches
"""Nothing but the prompt and the material: no session, role, workspace, skill or team context, and no tools."""


@dataclass(frozen=True, slots=True)
class PiWriter:
    """A :class:`archive.writers.Writer`. ``command`` starts Pi; ``environment`` is all it sees of ours."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    seconds: float = SECONDS

    async def write(self, instructions: str, material: str) -> str:
        """See :meth:`archive.writers.Writer.write`. Pi runs in an empty folder, so that no workspace speaks along."""
        with tempfile.TemporaryDirectory(prefix="pbot-summary-") as empty:
            try:
                pi = await asyncio.create_subprocess_exec(
                    *self.command,
                    *ALONE,
                    "--system-prompt",
                    instructions,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    cwd=empty,
                    env=dict(self.environment),
                    start_new_session=True,
                )  # fmt: skip - the command on one line
            except OSError as error:
                raise WriterFailed(Code.WRITER_MISSING, type(error).__name__) from None
            try:
                async with asyncio.timeout(self.seconds):
                    return await _answer(pi, material)
            except TimeoutError:
                raise WriterFailed(Code.WRITER_TIMED_OUT) from None
            finally:
                await _end(pi)


async def _answer(pi: asyncio.subprocess.Process, material: str) -> str:
    feeding = asyncio.create_task(_feed(pi, material))
    try:
        answer = await _read(pi)
    finally:
        feeding.cancel()
        await asyncio.wait({feeding})
    if await pi.wait() != 0:
        raise WriterFailed(Code.WRITER_FAILED, f"exit code {pi.returncode}")
    text = clean(answer.decode(errors="replace")).strip()
    if not text:
        raise WriterFailed(Code.WRITER_EMPTY)
    return text


async def _feed(pi: asyncio.subprocess.Process, material: str) -> None:
    if pi.stdin is None:
        return
    with contextlib.suppress(ConnectionError):  # Pi ended early; its exit code says so
        pi.stdin.write(material.encode())
        await pi.stdin.drain()
        pi.stdin.close()


async def _read(pi: asyncio.subprocess.Process) -> bytes:
    answer = bytearray()
    while pi.stdout is not None and (chunk := await pi.stdout.read(65_536)):
        answer += chunk
        if len(answer) > LONGEST_ANSWER:
            raise WriterFailed(Code.WRITER_FAILED, "too long")
    return bytes(answer)


async def _end(pi: asyncio.subprocess.Process) -> None:
    """End Pi and whatever it started, and wait for it."""
    if pi.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pi.pid, signal.SIGKILL)
    while pi.stdout is not None and await pi.stdout.read(65_536):
        pass  # asyncio tells of the end of a process only when its pipes are read out
    await pi.wait()

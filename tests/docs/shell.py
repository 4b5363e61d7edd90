"""Runs the commands of the pages as they stand there, in a home and a folder of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import sysconfig
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bridges.chat_process import PROGRAM, environment
from tests.docs.pages import ENTRIES, blocks, everything, read
from tests.guards.sources import ROOT

SECONDS = 40.0
"""Bound of every command; a real host has to start in one of them."""


def commands() -> set[str]:
    """Return every line of every ``sh`` block."""
    return {
        line
        for page in everything()
        for block in blocks(read(page), "sh")
        for line in block.splitlines()
        if line.strip()
    }


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(slots=True)
class Shell:
    """A person's shell: where it is, what it knows, and which lines of the pages were typed into it."""

    home: Path
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)

    async def run(self, command: str, put: Mapping[str, str] | None = None, *, stdin: str = "") -> Done:
        """Run the lines of a page to their end; ``put`` replaces what a page can only stand in for."""
        child = await self._start(command, put or {})
        try:
            async with asyncio.timeout(SECONDS):
                out, err = await child.communicate(stdin.encode())
        finally:
            await _end(child)
        return Done(child.returncode or 0, out.decode(), err.decode())

    @asynccontextmanager
    async def running(self, command: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run a line that only a signal ends; it is killed at the end if it still runs."""
        child = await self._start(f"exec {command}", {}, line=command)
        try:
            yield child
        finally:
            await _end(child)

    async def _start(self, command: str, put: Mapping[str, str], line: str = "") -> asyncio.subprocess.Process:
        self.typed |= set((line or command).splitlines())
        for written, meant in put.items():
            assert written in command, "the page says something else by now"
            command = command.replace(written, meant)
        return await asyncio.create_subprocess_exec(
            *("sh", "-eu", "-c", command),
            cwd=self.folder,
            env=environment(self.home) | {"PATH": path(), "NO_PROXY": "*", **self.environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )


def path() -> str:
    return os.pathsep.join([str(Path(PROGRAM).parent), "/usr/local/bin", "/usr/bin", "/bin"])


async def _end(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    await child.wait()
    if child.stdin is not None:
        child.stdin.close()


def checkout(place: Path, *packages: str) -> Path:
    """Return a checkout as the scripts want it; of our packages it has only those that are named."""
    copy = place / "checkout"
    for name in ("scripts", "requirements", *packages):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    for name in ("pyproject.toml", *ENTRIES.values()):
        shutil.copy(ROOT / name, copy)
    return copy


async def prepared(copy: Path) -> None:
    """Make ``.venv`` in a checkout as ``scripts/setup`` would, from what is installed here."""
    venv = copy / ".venv"
    done = await asyncio.create_subprocess_exec(sys.executable, "-m", "venv", "--without-pip", str(venv))
    assert await done.wait() == 0
    (place,) = venv.glob("lib/python3.*/site-packages")
    (place / "ours.pth").write_text(
        f"{copy}\nimport site; site.addsitedir({sysconfig.get_path('purelib')!r})\n", "utf-8"
    )
    program = venv / "bin" / "harness-im"
    program.write_text(f"#!{venv}/bin/python\nfrom bridges.cli import main\nmain(prog_name='harness-im')\n", "utf-8")
    program.chmod(0o700)
    for tool in Path(PROGRAM).parent.iterdir():
        if not (venv / "bin" / tool.name).exists():
            (venv / "bin" / tool.name).symlink_to(tool)
    stamp = 'for name in run all; do cat pyproject.toml "requirements/$name.txt" | cksum > ".venv/ready-$name"; done'
    done = await asyncio.create_subprocess_exec("sh", "-c", stamp, cwd=copy)
    assert await done.wait() == 0

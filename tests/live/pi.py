"""A real Pi in RPC mode, with our extension, in a home of its own, against the scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from bridges.cli.pi_extension import NAME, extension
from bridges.demo_model import DemoModel

Event = dict[str, object]
BOUND: Final = 60.0
"""Seconds any single thing may take on a busy machine."""

COMMAND: Final = os.environ.get("REAL_PI") or None


def command() -> str:
    """Return Pi's command, or skip, counted, where it is not installed."""
    if COMMAND is None:
        pytest.skip("no real Pi: REAL_PI=$(sh scripts/real-pi) names one")
    return COMMAND


class PiPlace:
    """A workspace, and a home in which Pi talks to the scripted model and knows our extension."""

    def __init__(self, root: Path, model: DemoModel) -> None:
        self.workspace = root / "workspace"
        self.agent = root / "agent"
        self.workspace.mkdir()
        (self.agent / "extensions").mkdir(parents=True)
        provider = {
            "baseUrl": f"{model.url}/v1",
            "api": "openai-completions",
            "apiKey": "not-a-real-key",
            "models": [{"id": "scripted"}],
        }
        settings = {"defaultProvider": "local", "defaultModel": "scripted", "retry": {"enabled": False}}
        self._write("models.json", {"providers": {"local": provider}})
        self._write("settings.json", settings)
        (self.agent / "extensions" / NAME).write_text(extension(), "utf-8")
        config = root / "config.toml"
        config.write_text(f'language = "en"\n[summaries]\npi = "{command()}"\n')
        self.environ = {
            "HOME": str(root),
            "PATH": f"{Path(command()).parent}:{os.environ['PATH']}",
            "PI_CODING_AGENT_DIR": str(self.agent),
            "PI_OFFLINE": "1",
            "HARNESS_IM_CONFIG": str(config),
            "LC_ALL": "C.UTF-8",
        }

    def _write(self, name: str, value: object) -> None:
        (self.agent / name).write_text(json.dumps(value))

    @asynccontextmanager
    async def started(self) -> AsyncIterator[Pi]:
        """Run Pi for as long as the body lasts."""
        process = await asyncio.create_subprocess_exec(
            command(), "--mode", "rpc", cwd=self.workspace, env=self.environ, limit=2**24,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=sys.stderr,
        )  # fmt: skip
        pi = Pi(process)
        reading = asyncio.create_task(pi.read())
        try:
            yield pi
        finally:
            assert process.stdin is not None
            process.stdin.close()
            async with asyncio.timeout(BOUND):
                await process.wait()
            await reading


class Pi:
    """One process. ``events`` are all it ever said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._heard = asyncio.Event()
        self.events: list[Event] = []

    async def read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.events.append(json.loads(line))
            self._heard.set()

    async def send(self, **message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def until(self, wanted: Callable[[Event], bool], since: int) -> Event:
        """Return the first event after ``since`` that is wanted."""
        async with asyncio.timeout(BOUND):
            while not (found := [event for event in self.events[since:] if wanted(event)]):
                self._heard.clear()
                await self._heard.wait()
            return found[0]

    async def ask(self, text: str) -> None:
        """Prompt, and wait until the agent is done."""
        since = len(self.events)
        await self.send(type="prompt", message=text)
        await self.until(lambda event: event["type"] == "agent_end", since)

    async def command(self, text: str) -> tuple[str, str]:
        """Run an extension's command; return what it showed, and how."""
        since = len(self.events)
        await self.send(type="prompt", message=text)
        shown = await self.until(lambda event: event.get("method") == "notify", since)
        return str(shown["message"]), str(shown["notifyType"])

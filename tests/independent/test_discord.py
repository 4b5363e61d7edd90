"""Discord beside other vendors: our modules in another vendor's simulation, another vendor's bot against our fake."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path

import pytest

from commands.catalog import COMMANDS
from commands.model import Gate
from tests.fakes.discord import GENERAL, ME, TELLER, FakeDiscord, dm
from tests.guards.sources import ROOT
from tests.independent.installs import node_modules, python_of

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

DISCORD_JS = "discord.js@14.28.1"
SIMCORD = "simcord==3.2.1"
SECONDS = 30.0


async def test_our_modules_work_in_another_vendors_simulation(tmp_path: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = python_of(SIMCORD).parent.parent / "lib" / version / "site-packages"
    program = ROOT / "tests" / "independent" / "simcord_bot.py"
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(program), cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}:{packages}", "HOME": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(2 * SECONDS):
            out, errors = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert child.returncode == 0, errors.decode()
    assert json.loads(out) == {
        "offered": sorted(command.name for command in COMMANDS.values() if command.gate is not Gate.OWNER),
        "in the channel": ["ops", "group: /history 5", "and more"],  # the first is the platform's note of the thread
        "in the thread": ["group: hello", "and more", "group: once more", "and more"],
        "in private": ["direct: just us", "and more"],
        "picked": [True, False, "group: /history 5"],
        "fits": True,
        "too long": True,
    }


async def test_another_vendors_bot_talks_through_our_fake(tmp_path: Path) -> None:
    modules = node_modules(DISCORD_JS)
    node = shutil.which("node")
    assert node is not None
    script = tmp_path / "bot.mjs"
    script.write_text((Path(__file__).parent / "discord_bot.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(modules)
    async with FakeDiscord() as fake:
        child = await asyncio.create_subprocess_exec(
            node, str(script), cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={"API": fake.api.removesuffix("/v10"), "TOKEN": fake.token, "HOME": str(tmp_path)},
        )  # fmt: skip
        try:
            async with asyncio.timeout(4 * SECONDS):
                await _converse(fake, child)
        finally:
            child.kill()
            await child.communicate()


async def _converse(fake: FakeDiscord, child: asyncio.subprocess.Process) -> None:
    assert child.stdout is not None

    async def seen() -> object:
        assert child.stdout is not None
        line = await child.stdout.readline()
        assert line, "the other bot ended"
        return json.loads(line)

    assert await seen() == {"ready": "ThisBot"}
    await fake.deliver(fake.write.message("hello 👋"))
    assert await seen() == {"heard": "hello 👋", "server": None, "long": 50035}
    assert fake.said[0].texts == ["x", "edited: hello 👋"]
    assert fake.said[0].channel == dm(TELLER)

    asked = fake.write.message(f"<@{ME}> hello", where=GENERAL)
    await fake.deliver(asked)
    assert await seen() == {"heard": f"<@{ME}> hello", "server": "A server", "again": 160004}
    assert fake.texts(int(str(asked["id"]))) == ["in the thread"], "a nonce counts once"

    await fake.pick(fake.write.slash("history", "5"))
    assert await seen() == {"picked": "history", "direct": False}
    assert fake.said[-1].texts == ["history 5"]

    fake.gateway.cut()
    await fake.deliver(fake.write.message("meanwhile"))
    lines = [await seen(), await seen()]
    assert {"resumed": True} in lines
    assert {"heard": "meanwhile", "server": None, "long": 50035} in lines
    assert fake.gateway.identifies == 1

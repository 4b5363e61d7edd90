"""QQ's own Python SDK against the fake: it logs in, hears all four kinds of chat, answers, and resumes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.channels.qq import platform
from tests.independent.installs import python_of

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

CLIENT = Path(__file__).with_name("qq_client.py")
CHATS = {"c2c": "users", "group": "groups", "guild": "channels", "dm": "dms"}


@pytest.fixture(scope="module")
def python() -> Path:
    return python_of("qq-botpy==1.2.1")


async def told(client: asyncio.subprocess.Process) -> dict[str, object]:
    """Return what the client says next; its log goes the same way."""
    assert client.stdout is not None
    async with asyncio.timeout(40):
        while line := await client.stdout.readline():
            if line.startswith(b"{"):
                found: dict[str, object] = json.loads(line)
                return found
    raise AssertionError("the client ended")


async def test_the_sdk_logs_in_and_answers(python: Path, tmp_path: Path) -> None:
    async with platform() as fake:
        client = await asyncio.create_subprocess_exec(
            *(str(python), str(CLIENT), fake.url),
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            assert await told(client) == {"event": "ready", "bot": 9001}
            for event, kind in CHATS.items():
                chat, sender = f"{kind}-1", None if kind == "users" else "alice"
                sent = await fake.says(" hello", kind=kind, chat=chat, sender=sender)
                said = await told(client)
                assert (said["event"], said["id"], said["content"]) == (event, sent["id"], " hello")
                first = next(each for each in fake.sent if each.chat == chat)
                assert (first.text, first.id) == ("echo hello", said["posted"])
                assert said["refused"] is (kind in {"users", "groups"}), "a number may be used once"
            await fake.gateway.close(4009)
            await fake.says("missed", chat="users-1")
            after = [await told(client), await told(client)]
            assert {str(each["event"]): each.get("content") for each in after} == {"resumed": None, "c2c": "missed"}
            assert (len(fake.gateway.identified), len(fake.gateway.resumed)) == (1, 1)
        finally:
            client.kill()
            await client.wait()

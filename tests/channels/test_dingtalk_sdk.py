"""DingTalk's own Python SDK, unmodified, against the fake; and that its acknowledgements are ours."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.channels.dingtalk import GROUP, line_on, platform
from tests.fakes.dingtalk import CLIENT_ID, SECRET

BOT = Path(__file__).with_name("dingtalk_sdk_bot.py")


@pytest.mark.parametrize("group", [None, GROUP])
async def test_the_sdk_hears_answers_and_acknowledges_as_we_do(tmp_path: Path, group: str | None) -> None:
    async with platform() as fake:
        bot = await asyncio.create_subprocess_exec(
            *(sys.executable, str(BOT)),
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "DINGTALK_OPENAPI_ENDPOINT": fake.url,
                "CLIENT_ID": CLIENT_ID,
                "CLIENT_SECRET": SECRET,
            },
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            frame = await fake.says("hello", group=group)
            theirs = await fake.gateway.taken(frame, seconds=30)
            assert fake.texts(group or "cid-alice") == ["echo hello"]
        finally:
            bot.kill()
            await bot.wait()
        await fake.gateway.close()
        async with line_on(fake) as line:
            frame = await fake.says("hello", group=group)
            ours = await fake.gateway.taken(frame)
            await line.stop()
    assert {**ours, "headers": None} == {**theirs, "headers": None}

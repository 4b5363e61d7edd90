"""DingTalk's own Node SDK against the fake: it finds the gateway, hears, acknowledges, answers, and connects anew."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.bridges.bench import eventually
from tests.channels.dingtalk import GROUP, line_on, platform
from tests.fakes.dingtalk import CLIENT_ID, SECRET, FakeDingTalk
from tests.independent.installs import node_modules

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

BOT = Path(__file__).with_name("dingtalk_bot.mjs")


@pytest.fixture(scope="module")
def modules() -> Path:
    return node_modules("dingtalk-stream@2.1.5")


async def told(stream: asyncio.StreamReader) -> dict[str, object]:
    async with asyncio.timeout(30):
        line = await stream.readline()
    assert line, "the bot ended"
    found: dict[str, object] = json.loads(line)
    return found


async def test_the_sdk_talks_and_connects_anew(modules: Path, tmp_path: Path) -> None:
    async with platform() as fake:
        bot = await asyncio.create_subprocess_exec(
            *("node", str(BOT), str(modules), fake.url),
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": SECRET},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            assert bot.stdout is not None
            assert await told(bot.stdout) == {"event": "connected"}
            theirs = await talked(fake, bot.stdout)
            ping = await fake.gateway.system("ping", {"opaque": "o-1"})
            assert (await fake.gateway.taken(ping))["data"] == '{"opaque": "o-1"}'
            await fake.gateway.system("disconnect", {"reason": "timeout"})
            await fake.gateway.close()
            await eventually(lambda: fake.gateway.connections == 2)
            await talked(fake, bot.stdout)
        finally:
            bot.kill()
            await bot.wait()

        async with line_on(fake) as line:
            frame = await fake.says("from us")
            ours = await fake.gateway.taken(frame)
            await line.channel.send(line.inbox.messages[0].reply_to, "hello")
        assert {**ours, "message": "OK"} == {**theirs, "headers": ours["headers"], "data": '{"response": "OK"}'}
        (opened, *_, our_opening) = fake.opened
        assert set(our_opening) == set(opened)


async def talked(fake: FakeDingTalk, bot: asyncio.StreamReader) -> dict[str, object]:
    """Let people write in both kinds of chat; return the newest acknowledgement."""
    for text, group in (("hello", None), ("你好", GROUP)):
        data = fake.message(text, group=group)
        frame = await fake.gateway.callback(data)
        answer = await fake.gateway.taken(frame)
        blank = " " if group else ""
        assert await told(bot) == {"event": "text", "id": data["msgId"], "text": blank + text, "errcode": 0}
        assert fake.texts(group or "cid-alice")[-1] == f"echo {text}"
    assert json.loads(str(answer["data"])) == {"response": "OK"}
    return answer

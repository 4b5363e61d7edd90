"""WeCom's own Node SDK against the fake: it subscribes, hears, answers in bubbles, opens a file, and gives way."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bridges.bench import eventually
from tests.channels.test_wecom_parse import KEY, encrypted
from tests.channels.wecom import GROUP, line_on
from tests.fakes.wecom import BOT_ID, SECRET, FakeWeCom
from tests.independent.installs import node_modules

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

BOT = Path(__file__).with_name("wecom_bot.mjs")


@pytest.fixture(scope="module")
def modules() -> Path:
    return node_modules("@wecom/aibot-node-sdk@1.0.7")


@asynccontextmanager
async def running(
    modules: Path, fake: FakeWeCom, home: Path, secret: str = SECRET
) -> AsyncIterator[asyncio.StreamReader]:
    """Run the bot; yields where it tells what it sees."""
    bot = await asyncio.create_subprocess_exec(
        *("node", str(BOT), str(modules), fake.url),
        env={"HOME": str(home), "PATH": os.environ["PATH"], "BOT_ID": BOT_ID, "BOT_SECRET": secret},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert bot.stdout is not None
        yield bot.stdout
    finally:
        if bot.returncode is None:
            bot.kill()
        await bot.wait()


async def told(stream: asyncio.StreamReader) -> dict[str, object]:
    async with asyncio.timeout(30):
        line = await stream.readline()
    assert line, "the bot ended"
    found: dict[str, object] = json.loads(line)
    return found


async def test_the_sdk_talks_and_gives_way_to_our_client(modules: Path, tmp_path: Path) -> None:
    async with FakeWeCom() as fake, running(modules, fake, tmp_path) as bot:
        assert await told(bot) == {"event": "authenticated"}
        for text, group in (("hello", None), ("@Some Bot 你好", GROUP)):
            await fake.says(text, group=group)
            assert await told(bot) == {"event": "text", "text": text, "codes": [0, 846608, 0, 93006]}
            assert fake.texts(group or "alice") == [f"echo {text}", "by the way"]
        assert not fake.hanging
        assert [violation.partition(" ")[2] for violation in fake.violations] == [
            f"stream-msg-{number} goes on after its end" for number in (1, 3)
        ], "the bot did so on purpose"

        fake.files["p"] = encrypted(b"picture")
        image = {"url": f"{fake.http}/files/p", "aeskey": base64.b64encode(KEY).decode()}
        piece = {"msgtype": "image", "image": image}
        await fake.deliver(fake.callback({"msgtype": "mixed", "mixed": {"msg_item": [piece]}}))
        assert await told(bot) == {"event": "mixed", "picture": "picture"}
        await eventually(lambda: fake.pings >= 3)

        await fake.close()
        assert await told(bot) == {"event": "authenticated"}
        theirs = shapes(fake)
        fake.frames.clear()
        async with line_on(fake) as line:
            assert await told(bot) == {"event": "replaced"}
            message = await line.says("hi")
            await line.channel.send(message.reply_to, "hi")
            fake.expire()
            await line.channel.send(message.reply_to, "late")
        ours = shapes(fake)
        assert set(ours) == {"aibot_subscribe", "aibot_respond_msg", "aibot_send_msg"}
        assert ours == {command: theirs[command] for command in ours}


async def test_the_sdk_takes_a_wrong_secret_for_one(modules: Path, tmp_path: Path) -> None:
    async with FakeWeCom() as fake, running(modules, fake, tmp_path, "wrong-fake") as bot:
        assert await told(bot) == {"event": "error", "message": "Authentication failed: no (code: 40001)"}


def shapes(fake: FakeWeCom) -> dict[str, object]:
    """Return the newest frame of each command with every value replaced by its type."""
    return {str(frame["cmd"]): shape(frame) for frame in fake.frames}


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return type(value).__name__

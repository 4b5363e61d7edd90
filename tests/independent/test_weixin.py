"""Weixin's own plugin against the fake: what the fake takes and gives is what the platform's client gives and takes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.channels.test_weixin_media import KEY, encrypted
from tests.channels.weixin import ALICE, line_on, platform
from tests.fakes.weixin import ACCOUNT, TOKEN, Obj
from tests.independent.installs import node_modules

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

PACKAGE = "@tencent-weixin/openclaw-weixin"
CLIENT = Path(__file__).with_name("weixin_client.mjs")

_HOST = {
    "package.json": '{"name": "openclaw", "type": "module", "exports": {"./plugin-sdk/*": "./*.js"}}',
    "infra-runtime.js": "export const resolvePreferredOpenClawTmpDir = () => process.env.HOME;\n"
    "export const withFileLock = (path, options, work) => work();\n",
    "account-id.js": "export const normalizeAccountId = (id) => id;\n",
}
"""All that the plugin's wire modules ask of the program around them; the rest of it is not the platform's wire."""


@pytest.fixture(scope="module")
def plugin() -> Path:
    modules = node_modules(f"{PACKAGE}@2.4.9", "zod@4.3.6")
    host = modules / "openclaw"
    host.mkdir(exist_ok=True)
    for name, text in _HOST.items():
        (host / name).write_text(text)
    return modules / PACKAGE / "dist" / "src"


async def test_the_plugin_logs_in_and_talks(plugin: Path, tmp_path: Path) -> None:
    async with platform() as fake:
        fake.files["p"] = encrypted(b"picture")
        image: Obj = {"type": 2, "image_item": {"aeskey": KEY.hex(), "media": {"encrypt_query_param": "p"}}}
        number = fake.says(ALICE, items=[{"type": 1, "text_item": {"text": "你好"}}, image])
        confirmed: Obj = {"status": "confirmed", "bot_token": TOKEN, "ilink_bot_id": ACCOUNT, "baseurl": fake.url}
        fake.logins.extend([{"status": "scaned"}, confirmed])
        report = tmp_path / "seen.json"
        client = await asyncio.create_subprocess_exec(
            *("node", str(CLIENT), str(plugin), fake.url, str(report)),
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, err = await asyncio.wait_for(client.communicate(), 60)
        assert client.returncode == 0, err.decode()[-2000:]
        seen = json.loads(report.read_text())
        assert (seen["login"]["connected"], seen["login"]["accountId"]) == (True, ACCOUNT)
        assert seen["updates"]["msgs"][0]["message_id"] == number, "a uint64, not rounded"
        assert (seen["context"]["Body"], seen["context"]["From"]) == ("你好", ALICE)
        assert seen["sent"]["serverMessageId"] == fake.sent[0].id
        assert fake.sent[0].text == "你好 from the plugin"
        assert "ret=-2" in seen["refused"]
        assert seen["picture"] == "picture"
        assert seen["empty"]["msgs"] == []
        assert seen["stale"]["errcode"] == -14
        assert fake.typing == [(ALICE, 1)]

        theirs = {call: body for call, body in fake.calls if call != "get_qrcode_status"}
        fake.calls.clear()
        async with line_on(fake) as line:
            message = await line.says()
            await line.channel.typing(message.reply_to)
            await line.send(message, "你好 from us")
        ours = dict(fake.calls)
        shared = ours.keys() & theirs.keys()
        assert shared >= {"getupdates", "sendmessage", "getconfig", "sendtyping", "msg/notifystart", "msg/notifystop"}
        assert {call: _shape(ours[call]) for call in shared} == {call: _shape(theirs[call]) for call in shared}


def _shape(value: object) -> object:
    """Return a body with every value replaced by its type."""
    if isinstance(value, dict):
        return {name: _shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shape(inner) for inner in value]
    return type(value).__name__

"""``harness-im doctor`` at platforms that lie: they echo secrets, write on the screen, send us elsewhere, never end."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web
from click.testing import CliRunner, Result

from bridges.cli import main
from bridges.cli.examination import packages
from tests.channels.test_check import TABLES
from tests.fakes.telegram import FakeTelegram

SECRET = "a-secret-as-long-as-those-of-platforms-are-0123456789-0123456789-0123456789"
ODD = f"\x1b[2J\x9b1m\u202e{SECRET}\ud800\n| [all is well](http://127.0.0.1:1)"
Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


def everywhere(text: str) -> dict[str, object]:
    """Return an answer that says ``text`` wherever a platform may say something."""
    names = (
        "access_token", "app_access_token", "app_name", "code", "description", "display_phone_number", "errcode",
        "errmsg", "error", "error_description", "first_name", "global_name", "id", "message", "msg", "name", "team",
        "tenant_access_token", "url", "user", "username", "verified_name",
    )  # fmt: skip
    said: dict[str, object] = dict.fromkeys(names, text)
    return said | {"result": {"id": 1, "is_bot": True, "first_name": text, "username": text}}


LIES: dict[str, Callable[[], web.Response]] = {
    "a page": lambda: web.Response(text=f"<html>{SECRET}", content_type="text/html"),
    "a refusal": lambda: web.json_response(everywhere(SECRET), status=400),
    "a refused login": lambda: web.json_response(everywhere(SECRET), status=401, reason=SECRET),
    "a fault": lambda: web.json_response(everywhere(ODD), status=500),
    "an error": lambda: web.json_response(everywhere(ODD)),
    "a welcome": lambda: web.json_response(
        everywhere(ODD) | {"ok": True, "error": "", "code": 0, "errcode": 0},
        headers={"Date": "Mon, 30 Nov 99999999999999 00:00:00 GMT", "X-OAuth-Scopes": SECRET},
    ),
    "a bomb": lambda: web.Response(
        body=gzip.compress(bytes(64 * 2**20)), headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
    ),
    "long headers": lambda: web.Response(headers={"X-Odd": SECRET * 1_000}),
    "a deep answer": lambda: web.Response(text="[" * 100_000, content_type="application/json"),
}


@asynccontextmanager
async def listening(page: Page) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", "/{any:.*}", page)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def with_secret(channel: str, base: str) -> str:
    """Return the table of a bot all of whose secrets are, or hold, the same one."""
    table = TABLES[channel].replace("{base}", base.replace("http", "ws") if channel == "wecom" else base)
    head, _, endpoints = table.partition("[bot.endpoints]")
    head = re.sub(r'((?:token|secret) = ")(xoxb-|xapp-|1:)?\w+"', rf'\g<1>\g<2>{SECRET}"', head)
    return f'[[bot]]\nname = "{channel}"\nchannel = "{channel}"\n{head}[bot.endpoints]{endpoints}\n'


def configure(folder: Path, *tables: str) -> Path:
    file = folder / "config.toml"
    file.write_text(f'language = "en"\n[state]\npath = "{folder / "state.db"}"\n' + "\n".join(tables))
    file.chmod(0o600)
    return file


async def ask(file: Path, *options: str, columns: int = 80) -> Result:
    runner = CliRunner(env={"COLUMNS": str(columns), "NO_PROXY": "*"})
    return await asyncio.to_thread(runner.invoke, main, ["doctor", "--config", str(file), "--login", *options])


def harmless(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at platforms, not at what SDKs cost."""
    monkeypatch.setattr(packages, "packages", lambda *_: asyncio.sleep(0, []))


@pytest.mark.parametrize("lie", LIES)
async def test_no_lie_shows_a_secret_or_acts_on_the_screen(lie: str, tmp_path: Path) -> None:
    async def page(_: web.Request) -> web.Response:
        return LIES[lie]()

    async with listening(page) as base:
        asked = await ask(configure(tmp_path, *(with_secret(channel, base) for channel in TABLES)), "--json")
    assert isinstance(asked.exception, SystemExit)
    found = json.loads(asked.stdout)["findings"]
    assert {each["subject"] for each in found if each["check"] == "platform"} == set(TABLES)
    assert SECRET[:12] not in asked.output
    assert SECRET[-12:] not in asked.output
    assert harmless(asked.output)
    assert all(harmless(each["text"]) and "\n" not in each["text"] for each in found)


@pytest.mark.parametrize("columns", [60, 80, 500])
async def test_a_secret_is_hidden_before_it_is_folded(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.cli.table._WIDE", columns)
    async with FakeTelegram() as fake:
        fake.token = f"1:{SECRET}"
        fake.me = {"username": f"\x1b[2J{fake.token}"}
        asked = await ask(configure(tmp_path, with_secret("telegram", fake.api)))
    told = re.sub(r"\s", "", asked.stdout)
    assert "@[2J[hidden]" in told
    assert SECRET[:12] not in told
    assert SECRET[-12:] not in told


async def test_a_secret_that_is_a_word_of_json_leaves_it_json(tmp_path: Path) -> None:
    table = (
        with_secret("slack", "http://127.0.0.1:1").replace(SECRET, "").replace("xoxb-", "true").replace("xapp-", "text")
    )
    asked = await ask(configure(tmp_path, table), "--json", "--offline")
    assert {each["check"] for each in json.loads(asked.stdout)["findings"]} >= {"platform", "secret"}


@pytest.mark.parametrize("channel", TABLES)
async def test_no_credential_follows_where_a_platform_points(channel: str, tmp_path: Path) -> None:
    heard = b""

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        nonlocal heard
        heard += repr(request.raw_headers).encode() + await request.read()
        socket = web.WebSocketResponse()
        if not socket.can_prepare(request):
            return web.json_response({})
        await socket.prepare(request)
        async for frame in socket:
            heard += frame.data.encode() if frame.type is WSMsgType.TEXT else frame.data
        return socket

    async with listening(elsewhere) as other:

        async def page(request: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": other + request.path})

        async with listening(page) as base:
            asked = await ask(configure(tmp_path, with_secret(channel, base)))
    assert asked.exit_code == 1
    assert SECRET.encode() not in heard

"""What each channel sees of its platform's side: good, refused, incomplete, and platforms that are not there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_args

import pytest
from aiohttp import web

from bridges.channels import Surroundings, build
from bridges.cli.examination.platforms import SECONDS, look
from bridges.config import AnyBot, parse
from bridges.message import ChecksPlatform, Noticed, Sign
from bridges.secret import Places
from bridges.weixin.account import Account, Accounts
from harness_client.clock import SYSTEM_CLOCK, Clock
from tests.channels.around import MemoryCursors
from tests.fakes import dingtalk, feishu, qq, wecom, whatsapp
from tests.fakes.clock import FakeClock
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import FakeSlack
from tests.fakes.telegram import FakeTelegram
from tests.fakes.whatsapp.server import health

TABLES = {
    "telegram": 'token = "1:a"\n[bot.endpoints]\napi = "{base}"',
    "slack": 'bot_token = "xoxb-a"\napp_token = "xapp-a"\n[bot.endpoints]\napi = "{base}/api/"',
    "discord": 'token = "a"\n[bot.endpoints]\napi = "{base}/api/v10"',
    "whatsapp": (
        f'phone_number_id = "{whatsapp.NUMBER}"\naccess_token = "a"\napp_secret = "b"\nverify_token = "c"\n'
        'listen = "127.0.0.1:0"\n[bot.endpoints]\napi = "{base}/v25.0"'
    ),
    "feishu": f'app_id = "{feishu.APP_ID}"\napp_secret = "a"\n[bot.endpoints]\napi = "{{base}}"',
    "dingtalk": f'client_id = "{dingtalk.CLIENT_ID}"\nclient_secret = "a"\n[bot.endpoints]\napi = "{{base}}"',
    "wecom": f'bot_id = "{wecom.BOT_ID}"\nsecret = "a"\n[bot.endpoints]\nwebsocket = "{{base}}"',
    "qq": f'app_id = "{qq.APP_ID}"\nclient_secret = "a"\n[bot.endpoints]\napi = "{{base}}"\ntoken = "{{base}}"',
}
"""Every channel that can ask its platform, with credentials that nobody knows."""


def bot(channel: str, base: str, **credentials: str) -> AnyBot:
    text = TABLES[channel].replace("{base}", base.replace("http", "ws") if channel == "wecom" else base)
    lines = [line for line in text.splitlines() if line.partition(" = ")[0] not in credentials]
    lines = [*(f'{key} = "{value}"' for key, value in credentials.items()), *lines]
    return parsed(f'channel = "{channel}"\n' + "\n".join(lines))


def parsed(table: str) -> AnyBot:
    (made,) = parse(f'[[bot]]\nname = "ops"\n{table}\n'.encode(), Places({}, Path())).bots
    return made


async def seen(
    made: AnyBot, clock: Clock = SYSTEM_CLOCK, *, log_in: bool = True, data: Path = Path()
) -> tuple[Noticed, ...]:
    around = Surroundings(MemoryCursors(), clock, lambda _: None, data)
    return await look(made, around, log_in=log_in)


def good(who: str, *more: Noticed) -> tuple[Noticed, ...]:
    return Noticed(Sign.ACCEPTED, who), *more


def bad(*keys: str) -> tuple[Noticed, ...]:
    return tuple(Noticed(Sign.BAD_CREDENTIAL, key) for key in keys)


# -- good, refused, incomplete -----------------------------------------------------------------------------------------


async def test_telegram() -> None:
    async with FakeTelegram() as fake:
        ours = bot("telegram", fake.api, token=fake.token)
        assert await seen(ours) == good("@ThisBot")
        assert await seen(bot("telegram", fake.api)) == bad("token")
        fake.webhook = "https://example.org/hook"
        fake.me = {"can_read_all_group_messages": True, "can_join_groups": False}
        notes = [Noticed(Sign.WEBHOOK_SET), Noticed(Sign.READS_ALL), Noticed(Sign.NO_GROUPS)]
        assert await seen(ours) == good("@ThisBot", *notes)
        assert fake.webhook, "a look takes nothing away"
        assert not fake.count("getUpdates")
        fake.fail("getMe", status=429, description="Too Many Requests", parameters={"retry_after": 9})
        assert await seen(ours) == (Noticed(Sign.BUSY, "429"),)


async def test_slack() -> None:
    async with FakeSlack() as fake:
        ours = bot("slack", fake.api.removesuffix("/api/"), bot_token=fake.bot_token, app_token=fake.app_token)
        assert await seen(ours) == good("@thisbot, Fake")
        assert await seen(bot("slack", fake.api.removesuffix("/api/"))) == bad("bot_token", "app_token")
        assert fake.scopes is not None
        fake.scopes.remove("files:read")
        fake.scopes.remove("im:read")
        fake.fail("apps.connections.open", error="missing_scope")
        missing = [Noticed(Sign.NO_SCOPES, "files:read, im:read"), Noticed(Sign.NO_SCOPES, "connections:write")]
        assert await seen(ours) == good("@thisbot, Fake", *missing)
        fake.scopes = None
        assert await seen(ours) == good("@thisbot, Fake"), "what is not said is not held against the app"
        fake.fail("auth.test", status=503)
        fake.fail("apps.connections.open", error="ratelimited", status=429, headers={"Retry-After": "9"})
        assert await seen(ours) == (Noticed(Sign.BUSY, "HTTP 503"), Noticed(Sign.BUSY, "ratelimited"))
        assert not fake.sockets.links


async def test_discord() -> None:
    async with FakeDiscord() as fake:
        base = fake.api.removesuffix("/api/v10")
        ours = bot("discord", base, token=fake.token)
        assert await seen(ours) == good("@ThisBot")
        assert await seen(bot("discord", base)) == bad("token")
        fake.flags, fake.sessions_left = 0, 12
        assert await seen(ours) == good("@ThisBot", Noticed(Sign.NO_INTENT), Noticed(Sign.FEW_SESSIONS, "12/1000"))
        fake.flags, fake.sessions_left = 1 << 18, 0
        assert await seen(ours) == good("@ThisBot", Noticed(Sign.NO_SESSIONS, "2"))
        fake.fail("GET /applications/@me", status=500)
        assert await seen(ours) == (Noticed(Sign.BUSY, "HTTP 500"),)


async def test_whatsapp() -> None:
    async with whatsapp.FakeWhatsApp() as fake:
        credentials = {"access_token": whatsapp.ACCESS_TOKEN, "app_secret": whatsapp.APP_SECRET}
        ours, who = bot("whatsapp", fake.url, **credentials), "+1 555-078-3881 Fake Inc"
        assert await seen(ours) == good(who)
        assert await seen(bot("whatsapp", fake.url)) == bad("access_token")
        assert await seen(bot("whatsapp", fake.url, **credentials | {"app_secret": "other"})) == good(
            who, *bad("app_secret")
        )
        assert await seen(bot("whatsapp", fake.url, **credentials, phone_number_id="1")) == bad("phone_number_id")
        fake.subscribed.clear()
        assert await seen(ours) == good(who, Noticed(Sign.NOT_SUBSCRIBED))
        fake.subscribed.append("of-somebody-else")
        assert await seen(ours) == good(who, Noticed(Sign.NOT_SUBSCRIBED))
        fake.fail("apps", whatsapp.Fault(status=403, code=200))
        assert await seen(ours) == good(who, Noticed(Sign.NOT_TOLD))
        del fake.number["health_status"]
        assert await seen(ours) == good(who, Noticed(Sign.NOT_TOLD))
        fake.number["health_status"] = health("BLOCKED")
        fake.subscribed[:] = ["400400400400400"]
        assert await seen(ours) == good(who, Noticed(Sign.RESTRICTED))
        fake.fail("number", whatsapp.Fault(code=368))
        assert await seen(ours) == (Noticed(Sign.RESTRICTED),)
        fake.fail("number", whatsapp.Fault(code=80007))
        assert await seen(ours) == (Noticed(Sign.BUSY, "80007"),)
        assert not fake.violations
        assert not fake.sent


async def test_feishu() -> None:
    async with feishu.FakeFeishu() as fake:
        ours = bot("feishu", fake.url, app_secret=feishu.SECRET)
        assert await seen(ours) == good("bot")
        assert await seen(bot("feishu", fake.url)) == bad("app_id, app_secret")
        fake.granted.remove("cardkit:card:write")
        fake.granted.remove("im:resource")
        fake.state = 1
        assert await seen(ours) == good(
            "bot", Noticed(Sign.NOT_ACTIVE, "1"), Noticed(Sign.SCOPES_UNSEEN, "im:resource, cardkit:card:write")
        )
        fake.granted.append("im:message")
        fake.granted.append("cardkit:card")
        fake.state = 2
        fake.faults["scopes"].append(feishu.Fault(status=400, code=99991672))
        assert await seen(ours) == good("bot"), "what the tenant does not tell is not held against the app"
        fake.is_bot = False
        assert await seen(ours) == (Noticed(Sign.NO_BOT),)
        fake.faults["info"].append(feishu.Fault(status=400, code=11205))
        assert await seen(ours) == (Noticed(Sign.NO_BOT),)
        fake.faults["info"].append(feishu.Fault(status=400, code=99991400))
        assert await seen(ours) == (Noticed(Sign.REFUSED, "99991400"),)
        assert "discover" not in fake.calls


async def test_dingtalk() -> None:
    async with dingtalk.FakeDingTalk() as fake:
        ours = bot("dingtalk", fake.url, client_secret=dingtalk.SECRET)
        assert await seen(ours) == good(dingtalk.CLIENT_ID)
        assert await seen(bot("dingtalk", fake.url)) == bad("client_id, client_secret")
        fake.endpoint = "wss://elsewhere.example"
        assert await seen(ours) == (Noticed(Sign.UNREADABLE, "UntrustedHost"),)
        fake.faults["open"].append(dingtalk.Fault(status=403, code="Forbidden.AccessDenied"))
        assert await seen(ours) == (Noticed(Sign.REFUSED, "Forbidden.AccessDenied"),)


async def test_qq() -> None:
    async with qq.FakeQQ() as fake:
        ours = bot("qq", fake.url, client_secret=qq.SECRET)
        assert await seen(ours) == good("bot")
        assert await seen(bot("qq", fake.url)) == bad("app_id, client_secret")
        fake.sessions_left = 0
        assert await seen(ours) == good("bot", Noticed(Sign.NO_SESSIONS, "2"))
        fake.faults["gateway"].append(qq.Fault(status=500))
        assert (await seen(ours))[0].sign is Sign.UNREADABLE
        assert not fake.violations


async def test_wecom_is_asked_only_where_a_login_is_allowed() -> None:
    async with wecom.FakeWeCom() as fake:
        ours = bot("wecom", fake.http, secret=wecom.SECRET)
        assert await seen(ours, log_in=False) == (Noticed(Sign.WOULD_REPLACE),)
        assert not fake.connections
        assert await seen(ours) == good(wecom.BOT_ID)
        assert await seen(bot("wecom", fake.http)) == bad("bot_id, secret")
        fake.fail("aibot_subscribe", wecom.Fault(code=45009))
        assert await seen(ours) == (Noticed(Sign.BUSY, "45009"),)
        fake.statuses.append(503)
        assert (await seen(ours))[0].sign is Sign.UNREADABLE
        assert not fake.violations


async def test_weixin_says_whose_login_is_stored(tmp_path: Path) -> None:
    made = parsed('channel = "weixin"')
    assert await seen(made, data=tmp_path) == (Noticed(Sign.NO_LOGIN, "harness-im login weixin"),)
    Accounts(tmp_path).save(Account("bot@im.bot", "token-fake"))
    assert await seen(made, data=tmp_path) == (Noticed(Sign.LOGIN_STORED, "bot@im.bot"),)


async def test_a_linked_device_is_told_without_a_second_link(tmp_path: Path) -> None:
    made = parsed('channel = "whatsapp"\ntransport = "linked"')
    (noticed,) = await seen(made, data=tmp_path)
    assert noticed.sign in {Sign.NO_LOGIN, Sign.NO_PROGRAM}, "without Node that is what is said first"


@pytest.mark.parametrize(("channel", "module"), [("telegram", "telegram"), ("slack", "slack_bolt")])
async def test_without_its_sdk_a_channel_says_which_extra_brings_it(
    channel: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)  # how Python marks a module that must not be found
    assert await seen(bot(channel, "http://127.0.0.1:1")) == (Noticed(Sign.NOT_INSTALLED, channel),)


# -- platforms that are not there --------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


@pytest.mark.parametrize("channel", TABLES)
async def test_a_platform_that_is_down_is_unreached(channel: str) -> None:
    signs = {noticed.sign for noticed in await seen(bot(channel, "http://127.0.0.1:1"))}
    assert signs == {Sign.UNREACHED}


@pytest.mark.parametrize("channel", TABLES)
async def test_a_platform_that_never_answers_is_silent(channel: str) -> None:
    asked, clock = asyncio.Event(), FakeClock()

    async def hold(_: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with answering(hold) as base:
        looking = asyncio.create_task(seen(bot(channel, base), clock))
        async with asyncio.timeout(20):
            await asked.wait()
        await clock.advance(SECONDS + 1)
        async with asyncio.timeout(20):
            assert await looking == (Noticed(Sign.SILENT),)


GARBAGE = {
    "a page": b"<html>Sign in to this network</html>",
    "nothing": b"",
    "an empty object": b"{}",
    "a list": b"[]",
    "another kind": b'{"ok": true, "result": [1], "code": 0, "data": "x", "bot": 7, "user": [], "url": 3}',
    "no text": b"\xff\xfe\x00",
    "too deep": b"[" * 200_000,
}


@pytest.mark.parametrize("channel", TABLES)
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_an_answer_that_is_none_is_never_taken_for_a_good_one(channel: str, garbage: str) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=GARBAGE[garbage], content_type="application/json")

    async with answering(answer) as base:
        noticed = await seen(bot(channel, base))
    assert noticed
    assert {each.sign for each in noticed} <= {Sign.UNREADABLE, Sign.REFUSED, Sign.NO_BOT}


@pytest.mark.parametrize("channel", TABLES)
async def test_a_connection_that_is_cut_hurts_nobody(channel: str) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with answering(cut) as base:
        noticed = await seen(bot(channel, base))
    assert {each.sign for each in noticed} <= {Sign.UNREADABLE, Sign.UNREACHED}


def test_every_channel_can_look(tmp_path: Path) -> None:
    around = Surroundings(MemoryCursors(), SYSTEM_CLOCK, lambda _: None, tmp_path)
    bots = [bot(channel, "http://127.0.0.1:1") for channel in TABLES]
    bots += [parsed('channel = "weixin"'), parsed('channel = "whatsapp"\ntransport = "linked"')]
    assert {each.channel for each in bots} == {kind.__struct_config__.tag for kind in get_args(AnyBot)}
    assert all(isinstance(build(each, around), ChecksPlatform) for each in bots)

"""``harness-im init`` for every channel there is, each at its simulated platform."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from bridges.cli.channel_names import NAMES
from bridges.cli.init import CHANNELS
from bridges.cli.setup.fields import KINDS
from bridges.config import AnyBot, load
from bridges.weixin.account import Accounts
from i18n import Key
from tests.bridges.chat_process import on_terminal
from tests.bridges.test_init import EN, answer, ended, init
from tests.fakes import dingtalk, feishu, qq, wecom, weixin, whatsapp
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import FakeSlack
from tests.fakes.telegram import FakeTelegram


async def _everywhere(stack: AsyncExitStack) -> dict[str, list[str]]:
    """Start all platforms; return each channel's options, its secrets in the environment under their keys."""
    slack, discord = await stack.enter_async_context(FakeSlack()), await stack.enter_async_context(FakeDiscord())
    graph = await stack.enter_async_context(whatsapp.FakeWhatsApp())
    lark = await stack.enter_async_context(feishu.FakeFeishu())
    ding = await stack.enter_async_context(dingtalk.FakeDingTalk())
    work = await stack.enter_async_context(wecom.FakeWeCom())
    penguin = await stack.enter_async_context(qq.FakeQQ())
    telegram = await stack.enter_async_context(FakeTelegram())
    os_variables = {
        "T_TOKEN": telegram.token, "S_BOT": slack.bot_token, "S_APP": slack.app_token, "D_TOKEN": discord.token,
        "W_ACCESS": whatsapp.ACCESS_TOKEN, "W_SECRET": whatsapp.APP_SECRET, "W_VERIFY": whatsapp.VERIFY_TOKEN,
        "F_SECRET": feishu.SECRET, "DT_SECRET": dingtalk.SECRET, "WC_SECRET": wecom.SECRET, "Q_SECRET": qq.SECRET,
    }  # fmt: skip
    settings = {
        "telegram": (["token=env:T_TOKEN"], [f"api={telegram.api}"]),
        "slack": (["bot_token=env:S_BOT", "app_token=env:S_APP"], [f"api={slack.api}"]),
        "discord": (["token=env:D_TOKEN"], [f"api={discord.api}", f"gateway={discord.gateway.url}"]),
        "whatsapp": (
            [
                f"phone_number_id={whatsapp.NUMBER}", "access_token=env:W_ACCESS", "app_secret=env:W_SECRET",
                "verify_token=env:W_VERIFY", "listen=127.0.0.1:0", "path=/hook",
            ],
            [f"api={graph.api}"],
        ),
        "feishu": ([f"app_id={feishu.APP_ID}", "app_secret=env:F_SECRET"], [f"api={lark.url}"]),
        "dingtalk": ([f"client_id={dingtalk.CLIENT_ID}", "client_secret=env:DT_SECRET"], [f"api={ding.url}"]),
        "wecom": ([f"bot_id={wecom.BOT_ID}", "secret=env:WC_SECRET"], [f"websocket={work.url}"]),
        "qq": (
            [f"app_id={qq.APP_ID}", "client_secret=env:Q_SECRET"], [f"api={penguin.url}", f"token={penguin.url}"],
        ),
        "weixin": ([], []),
    }  # fmt: skip
    for name, value in os_variables.items():
        os.environ[name] = value
        stack.callback(os.environ.pop, name)
    return {
        channel: [
            *("--channel", channel, "--pairing"),
            *(word for each in values for word in ("--set", each)),
            *(word for each in endpoints for word in ("--endpoint", each)),
        ]
        for channel, (values, endpoints) in settings.items()
    }


async def test_every_channel_can_be_set_up_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    async with AsyncExitStack() as stack:
        everywhere = await _everywhere(stack)
        assert set(everywhere) == set(KINDS)
        for channel, options in everywhere.items():
            result = await init(file, *options)
            assert result.exit_code == 0, result.output
            assert "✗" not in result.output
            assert channel == "weixin" or "✓" in result.output
        config = load(file, dict(os.environ))
    assert [bot.name for bot in config.bots] == list(everywhere)
    assert all(bot.access.direct == "pairing" and not bot.access.group for bot in config.bots)


def test_what_is_asked_is_what_the_file_takes() -> None:
    tables = {str(kind.__struct_config__.tag): get_type_hints(kind) for kind in get_args(AnyBot)}
    assert set(KINDS) == set(NAMES) == set(tables)
    assert list(CHANNELS) == list(NAMES) == list(KINDS)
    for channel, kind in KINDS.items():
        assert all(field.secret == ("Secret" in str(tables[channel][field.key])) for field in kind.fields), channel


@pytest.mark.parametrize("scanned", [True, False])
async def test_weixin_is_logged_in_at_once_where_a_person_likes(scanned: bool, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    async with weixin.FakeWeixin() as fake:
        fake.logins.append(
            {
                "status": "confirmed", "bot_token": "token-fake", "ilink_bot_id": "bot-9@im.bot",
                "ilink_user_id": "me@im.wechat",
            } if scanned else {"status": "confirmed"}
        )  # fmt: skip
        options = ("--config", str(file), "--language", "en", "--channel", "weixin", "--endpoint", f"api={fake.url}")
        async with on_terminal(tmp_path, "init", *options, "--harness", "", "--pairing") as screen:
            await answer(screen, "[weixin]", "")
            await answer(screen, EN(Key.INIT_LOG_IN_NOW), "")
            shown = await screen.until("harness-im run --config")
            assert await ended(screen) == 0
    assert ("harness-im login weixin" in shown) is not scanned
    account = Accounts(tmp_path / ".local" / "share" / "harness-im").find(None)
    assert (account is not None) is scanned
    assert [bot.name for bot in load(file, {}).bots] == ["weixin"], "the file stays, whatever comes of the login"

"""Where each channel connects to: its own endpoints, else the platform's as the channel's module has them.

A module is imported for a configured channel only, and none imports its SDK before it runs.
"""

from __future__ import annotations

from bridges.config import QQ, AnyBot, Discord, Slack, Telegram, WeCom, Weixin


def addresses(bot: AnyBot) -> tuple[str, ...]:  # noqa: PLR0911 - one a channel
    """Return the addresses of a bot; none for a channel whose SDK finds its own and that has no endpoint set."""
    match bot:
        case Telegram():
            from bridges.text.telegram import API  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.api or API,)
        case Slack():
            from bridges.text.slack_parse import SLACK  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.api or SLACK,)
        case Discord():
            from bridges.text.discord import API as DISCORD  # noqa: PLC0415 - see the module's docstring

            return tuple(filter(None, (bot.endpoints.api or DISCORD, bot.endpoints.gateway)))
        case Weixin():
            from bridges.weixin.hosts import OFFICIAL  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.api or OFFICIAL,)
        case QQ():
            from bridges.qq.rest import API as QQ_API  # noqa: PLC0415 - see the module's docstring
            from bridges.qq.rest import TOKEN  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.api or QQ_API, bot.endpoints.token or TOKEN)
        case WeCom():
            from bridges.wecom.channel import SERVICE  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.websocket or SERVICE,)
        case _:
            return (bot.endpoints.api,) if bot.endpoints.api else ()

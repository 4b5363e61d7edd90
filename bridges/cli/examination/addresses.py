"""Where each channel connects to: its own endpoints, else the platform's as the channel's module has them.

A module is imported for a configured channel only, and none imports its SDK before it runs.
"""

from __future__ import annotations

from bridges.config import QQ, AnyBot, DingTalk, Discord, Feishu, Slack, Telegram, WeCom, Weixin, WhatsApp


def addresses(bot: AnyBot) -> tuple[str, ...]:  # noqa: PLR0911 - one a channel
    """Return the addresses of a bot; none for a linked WhatsApp device, which finds its own."""
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
        case Feishu():
            from bridges.feishu.rest import FEISHU  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.api or FEISHU,)
        case DingTalk():
            from bridges.dingtalk.rest import API as DINGTALK  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.api or DINGTALK,)
        case WhatsApp(transport="cloud"):
            from bridges.text.whatsapp_graph import GRAPH  # noqa: PLC0415 - see the module's docstring

            return (bot.endpoints.api or GRAPH,)
        case WhatsApp():
            return (bot.endpoints.api,) if bot.endpoints.api else ()

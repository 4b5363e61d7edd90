"""Configuration -> channel. The only place that knows which module serves which table of the file.

A module is imported when a bot of its channel is built, and it imports its SDK only when it runs: nothing of a
platform is loaded for a channel that is not configured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bridges.config import QQ, AnyBot, DingTalk, Discord, Feishu, Slack, Telegram, WeCom, Weixin, WhatsApp
from bridges.message import Channel, Cursors
from commands.catalog import KNOWN
from harness_client.clock import Clock


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What any channel may need beside its own table. ``hide`` keeps a secret learnt at run time out of the log.

    ``data`` is the program's data directory, for the few channels that have files of their own there.
    """

    cursors: Cursors
    clock: Clock
    hide: Callable[[str], None]
    data: Path = Path()


def build(bot: AnyBot, around: Surroundings) -> Channel:  # noqa: PLR0911 - one a channel
    """Return the channel of a configured bot, not yet connected."""
    match bot:
        case Telegram():
            from bridges.text.telegram import TelegramChannel  # noqa: PLC0415 - see the module's docstring

            return TelegramChannel(bot.name, token=bot.token.reveal(), api=bot.endpoints.api, clock=around.clock)
        case Weixin():
            return _weixin(bot, around)
        case QQ():
            return _qq(bot, around)
        case Feishu():
            return _feishu(bot, around)
        case WeCom():
            return _wecom(bot, around)
        case DingTalk():
            return _dingtalk(bot, around)
        case Slack():
            return _slack(bot, around)
        case Discord():
            return _discord(bot, around)
        case WhatsApp():
            return _whatsapp(bot, around)


def _weixin(bot: Weixin, around: Surroundings) -> Channel:
    """Use the token of the table, else whatever ``harness-im login weixin`` stored by the time the bot starts."""
    from bridges.weixin.account import Account, Accounts  # noqa: PLC0415 - see the module's docstring
    from bridges.weixin.channel import WeixinChannel  # noqa: PLC0415 - see the module's docstring
    from bridges.weixin.hosts import Hosts  # noqa: PLC0415 - see the module's docstring

    given = Account(str(bot.account or bot.name), bot.token.reveal()) if bot.token else None
    stored = Accounts(around.data)
    return WeixinChannel(
        bot.name,
        lambda: given or stored.find(bot.account),
        hosts=Hosts(bot.endpoints.api),
        cursors=around.cursors,
        clock=around.clock,
        hide=around.hide,
    )


def _qq(bot: QQ, around: Surroundings) -> Channel:
    from bridges.qq.channel import QQChannel  # noqa: PLC0415 - see the module's docstring
    from bridges.qq.rest import Application  # noqa: PLC0415 - see the module's docstring

    application = Application(str(bot.app_id), bot.client_secret.reveal(), bot.endpoints.api, bot.endpoints.token)
    return QQChannel(bot.name, application, cursors=around.cursors, clock=around.clock, hide=around.hide)


def _wecom(bot: WeCom, around: Surroundings) -> Channel:
    from bridges.wecom.channel import WeComChannel  # noqa: PLC0415 - see the module's docstring
    from bridges.wecom.connection import Credentials  # noqa: PLC0415 - see the module's docstring

    return WeComChannel(
        bot.name,
        Credentials(str(bot.bot_id), bot.secret.reveal()),
        websocket=bot.endpoints.websocket,
        display_name=bot.display_name,
        commands=KNOWN,
        cursors=around.cursors,
        clock=around.clock,
    )


def _feishu(bot: Feishu, around: Surroundings) -> Channel:
    from bridges.feishu.channel import FeishuChannel  # noqa: PLC0415 - see the module's docstring
    from bridges.feishu.rest import FEISHU, Application  # noqa: PLC0415 - see the module's docstring

    application = Application(str(bot.app_id), bot.app_secret.reveal(), bot.endpoints.api or FEISHU)
    return FeishuChannel(bot.name, application, cursors=around.cursors, clock=around.clock, hide=around.hide)


def _dingtalk(bot: DingTalk, around: Surroundings) -> Channel:
    from bridges.dingtalk.channel import DingTalkChannel  # noqa: PLC0415 - see the module's docstring
    from bridges.dingtalk.rest import Application  # noqa: PLC0415 - see the module's docstring

    return DingTalkChannel(
        bot.name,
        Application(str(bot.client_id), bot.client_secret.reveal(), bot.endpoints.api),
        card_template=str(bot.card_template) if bot.card_template else None,
        cursors=around.cursors,
        clock=around.clock,
        hide=around.hide,
    )


def _slack(bot: Slack, around: Surroundings) -> Channel:
    from bridges.text.slack import SlackChannel  # noqa: PLC0415 - see the module's docstring

    return SlackChannel(
        bot.name,
        bot_token=bot.bot_token.reveal(),
        app_token=bot.app_token.reveal(),
        api=bot.endpoints.api,
        commands=KNOWN,
        clock=around.clock,
        hide=around.hide,
    )


def _discord(bot: Discord, around: Surroundings) -> Channel:
    from bridges.text.discord import DiscordChannel  # noqa: PLC0415 - see the module's docstring

    return DiscordChannel(
        bot.name,
        token=bot.token.reveal(),
        api=bot.endpoints.api,
        gateway=bot.endpoints.gateway,
        cursors=around.cursors,
        clock=around.clock,
    )


def _whatsapp(bot: WhatsApp, around: Surroundings) -> Channel:
    cloud = bot.cloud
    if cloud is None:
        from bridges.text.whatsapp_linked import LinkedChannel  # noqa: PLC0415 - see the module's docstring

        return LinkedChannel(bot.name, data=around.data, url=bot.endpoints.api, clock=around.clock)
    from bridges.text.whatsapp import WhatsAppChannel  # noqa: PLC0415 - see the module's docstring
    from bridges.text.whatsapp_webhook import Door  # noqa: PLC0415 - see the module's docstring

    app_secret, verify_token = cloud.app_secret.reveal(), cloud.verify_token.reveal()
    return WhatsAppChannel(
        bot.name,
        number_id=str(cloud.id),
        access_token=cloud.access_token.reveal(),
        door=Door(cloud.listen, bot.path, app_secret, verify_token),
        api=bot.endpoints.api,
        clock=around.clock,
    )

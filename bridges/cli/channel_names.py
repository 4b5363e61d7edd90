"""What the channels are called, for people: by the word that ``channel`` takes in the file."""

from __future__ import annotations

from typing import Final

from i18n import Key

NAMES: Final = {
    "telegram": Key.CHANNEL_TELEGRAM,
    "slack": Key.CHANNEL_SLACK,
    "discord": Key.CHANNEL_DISCORD,
    "whatsapp": Key.CHANNEL_WHATSAPP,
    "feishu": Key.CHANNEL_FEISHU,
    "dingtalk": Key.CHANNEL_DINGTALK,
    "wecom": Key.CHANNEL_WECOM,
    "qq": Key.CHANNEL_QQ,
    "weixin": Key.CHANNEL_WEIXIN,
}

"""What every channel is asked for, in the order of the questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from i18n import Key


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a bot's table. ``default`` is taken for an empty answer; None: there must be one."""

    key: str
    secret: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A channel: where its credentials come from, and what it is asked for."""

    hint: Key
    fields: tuple[Field, ...]

    def field(self, key: str) -> Field | None:
        """Return the field of that key."""
        return next((field for field in self.fields if field.key == key), None)


def _secret(key: str) -> Field:
    return Field(key, secret=True)


KINDS: Final = {
    "telegram": Kind(Key.INIT_HINT_TELEGRAM, (_secret("token"),)),
    "slack": Kind(Key.INIT_HINT_SLACK, (_secret("bot_token"), _secret("app_token"))),
    "discord": Kind(Key.INIT_HINT_DISCORD, (_secret("token"),)),
    "whatsapp": Kind(
        Key.INIT_HINT_WHATSAPP,
        (
            Field("phone_number_id"),
            _secret("access_token"),
            _secret("app_secret"),
            _secret("verify_token"),
            Field("listen", default="127.0.0.1:8080"),
            Field("path", default="/"),
        ),
    ),
    "feishu": Kind(Key.INIT_HINT_FEISHU, (Field("app_id"), _secret("app_secret"))),
    "dingtalk": Kind(
        Key.INIT_HINT_DINGTALK,
        (Field("client_id"), _secret("client_secret"), Field("card_template", default="")),
    ),
    "wecom": Kind(
        Key.INIT_HINT_WECOM,
        (Field("bot_id"), _secret("secret"), Field("display_name", default="")),
    ),
    "qq": Kind(Key.INIT_HINT_QQ, (Field("app_id"), _secret("client_secret"))),
    "weixin": Kind(Key.INIT_HINT_WEIXIN, ()),
}
"""By the word that ``channel`` takes in the file."""

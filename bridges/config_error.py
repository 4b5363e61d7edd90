"""What is wrong with a configuration: the path of the key and what was expected, never the value.

The value may be a secret that somebody put on the wrong line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from bridges.secret import SecretMissing
from i18n import Key, Language, Words


class ConfigError(Exception):
    """The configuration cannot be used; exit code 2, before anything connects.

    ``path`` is the key, such as ``bot[0].token``, or the file itself. ``key`` and ``values`` word it in any language;
    ``str()`` is the English wording.
    """

    def __init__(self, path: str, key: Key, **values: str) -> None:
        self.path = path
        self.key = key
        self.values = {"path": path, **values}
        super().__init__(Words(Language.EN)(key, **self.values))


class Wrong(ValueError):
    """A rule that types cannot say; ``path`` is relative to the table that found it."""

    def __init__(self, path: str, key: Key = Key.CONFIG_WRONG) -> None:
        super().__init__(path)
        self.path = path
        self.key = key


_SOURCE: Final = '"…" | { env = "NAME" } | { file = "PATH" }'
_EXPECTED: Final[Mapping[str, str]] = (
    {
        "language": '"zh" | "en"',
        "mode": '"http" | "embedded"',
        "busy": '"queue" | "steer"',
        "transport": '"cloud" | "linked"',
        "channel": '"weixin" | "feishu" | "dingtalk" | "wecom" | "qq" | "slack" | "telegram" | "discord" | "whatsapp"',
        "format": '"console" | "json"',
        "name": '"A-Z a-z 0-9 _ . -" {1,64}',
        "direct": '"pairing" | "open" | ["ID", …]',
        "group": '"open" | ["ID", …]',
        "commands": '"all" | ["ID", …]',
        "owners": '["ID", …]',
        "listen": '"HOST:PORT"',
        "path": '"/…"',
        "workspace": '"/…"',
        "url": '"http://HOST:PORT/?token=…"',
        "api": '"https://…"',
        "gateway": '"wss://…"',
        "websocket": '"wss://…"',
    }
    | dict.fromkeys(["token", "bot_token", "app_token", "access_token", "verify_token"], _SOURCE)
    | dict.fromkeys(["app_secret", "client_secret", "secret"], _SOURCE)
    | dict.fromkeys(["app_id", "bot_id", "client_id", "phone_number_id", "account"], _SOURCE)
)
"""What to write, by the last key of a path; for other keys the type says it."""


def explain(error: msgspec.ValidationError) -> ConfigError:
    """Word msgspec's message anew: it may quote the value, which we never do."""
    match = re.fullmatch(r"(.*?)(?: - at `\$\.?([^`]*)`)?", str(error), re.DOTALL)
    said, path = (match[1], match[2] or "") if match else ("", "")
    cause = error.__cause__
    if isinstance(cause, SecretMissing):
        return ConfigError(path, Key.CONFIG_NOTHING_THERE, place=cause.place)
    key = Key.CONFIG_WRONG
    if isinstance(cause, Wrong):
        path, key = _join(path, cause.path), cause.key
    elif match := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", said, re.DOTALL):
        path = _join(path, _printable(match[2]))
        key = Key.CONFIG_MISSING if match[1].startswith("missing") else Key.CONFIG_UNKNOWN
    typed = re.match(r"Expected `([^`]*)`", said)
    last = "api" if path.endswith("endpoints.token") else path.rpartition(".")[2].partition("[")[0]
    named = typed[1].replace("object", "table") if typed else "…"  # TOML's word for it
    return ConfigError(path, key, expected=_EXPECTED.get(last, named))


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _printable(name: str) -> str:
    """Show a key nobody expected; it may be anything."""
    return "".join(char if char.isprintable() else "�" for char in name[:64]) or '""'

"""The manifest of a Slack app: everything that would otherwise be clicked together, its commands from our own table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from bridges.text.slack_parse import SCOPES
from commands.catalog import COMMANDS
from commands.help import menu
from commands.model import MenuEntry
from i18n import Language, Words

BUILT_IN: Final = frozenset({
    "active", "apps", "archive", "away", "call", "collapse", "dm", "dnd", "expand", "feed", "feedback", "invite",
    "join", "leave", "me", "msg", "mute", "open", "prefs", "pro", "remind", "remove", "rename", "search",
    "shortcuts", "shrug", "status", "topic", "unarchive", "who",
})  # fmt: skip
"""Slack's own commands: it refuses a whole manifest that registers one of them."""

MOST_COMMANDS: Final = 50

EVENTS: Final = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")

Manifest = dict[str, dict[str, object]]


def as_json(name: str, language: str) -> str:
    """Return the manifest of an app called ``name``, its commands described in ``language``."""
    entries = menu(COMMANDS.values(), Words(Language(language)))
    return json.dumps(manifest(name, entries), ensure_ascii=False, indent=2)


def manifest(name: str, commands: Iterable[MenuEntry]) -> Manifest:
    """Return the manifest; what Slack has a command of its own for is left to ``!name`` and to a leading blank."""
    slashes = [_slash(each) for each in commands if each.name not in BUILT_IN]
    return {
        "display_information": {"name": name},
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": True},
            "slash_commands": slashes[:MOST_COMMANDS],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS)},
            "org_deploy_enabled": False,
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }


def _slash(entry: MenuEntry) -> dict[str, object]:
    slash: dict[str, object] = {"command": f"/{entry.name}", "description": entry.summary, "should_escape": False}
    return slash | ({"usage_hint": entry.parameter} if entry.parameter else {})

"""Users, servers, channels, messages and interactions as Discord writes them. Ids are numbers here, text there."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable

Obj = dict[str, object]

TOKEN = "ZmFrZS1ib3Q.fake.token-of-a-fake-bot"
ME = 7_007_000_000_000_007
APPLICATION = 7_007_000_000_000_008
GUILD = 8_008_000_000_000_001
BOT_ROLE = 8_008_000_000_000_002
GENERAL = 8_008_000_000_000_010
VOICE = 8_008_000_000_000_011
TELLER = 1_001_000_000_000_001
"""The person who writes unless a test says otherwise."""

THREADS_AND_TALK = (1 << 10) | (1 << 11) | (1 << 35) | (1 << 38)
"""View, send, open public threads, send in threads."""

_TIME = "2026-01-01T00:00:00.000000+00:00"
_MENTION = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")


def dm(person: int) -> int:
    """Return the id of the direct chat with a person."""
    return person + 5_000_000


def is_direct(channel: int) -> bool:
    """Tell direct chats from channels of the server."""
    return channel // 10**12 == TELLER // 10**12


def user(id_: int, *, bot: bool = False) -> Obj:
    """Return a user."""
    name = "ThisBot" if id_ == ME else f"person{id_ % 1_000}"
    fields: Obj = {"username": name, "discriminator": "0", "global_name": name, "avatar": None, "public_flags": 0}
    return {"id": str(id_), "bot": bot or id_ == ME, **fields}


def application() -> Obj:
    """Return what the bot's application is."""
    return {
        "id": str(APPLICATION), "name": "ThisBot", "icon": None, "description": "", "bot_public": True,
        "bot_require_code_grant": False, "verify_key": "00", "owner": user(TELLER), "flags": 1 << 19, "summary": "",
    }  # fmt: skip


def member(id_: int, *roles: int) -> Obj:
    """Return a member of the server, without the user."""
    fields: Obj = {"nick": None, "joined_at": _TIME, "deaf": False, "mute": False, "flags": 0, "permissions": "0"}
    return {"roles": [str(role) for role in roles], **fields}


def channel(id_: int, *, kind: int = 0) -> Obj:
    """Return a channel of the server."""
    return {
        "id": str(id_), "type": kind, "guild_id": str(GUILD), "name": f"channel-{id_ % 1_000}", "position": 0,
        "permission_overwrites": [], "nsfw": False, "parent_id": None, "topic": None, "last_message_id": None,
        "rate_limit_per_user": 0, "bitrate": 64_000, "user_limit": 0, "rtc_region": None, "flags": 0,
    }  # fmt: skip


def thread(id_: int, *, parent: int = GENERAL, owner: int = ME, name: str = "thread") -> Obj:
    """Return a public thread."""
    return {
        "id": str(id_), "type": 11, "guild_id": str(GUILD), "parent_id": str(parent), "owner_id": str(owner),
        "name": name, "last_message_id": None, "message_count": 0, "member_count": 1, "rate_limit_per_user": 0,
        "total_message_sent": 0, "flags": 0, "thread_metadata": {
            "archived": False, "auto_archive_duration": 1_440, "archive_timestamp": _TIME, "locked": False,
        },
    }  # fmt: skip


def guild(permissions: int, threads: list[Obj], newest: dict[int, str]) -> Obj:
    """Return the server as it is told at the beginning of a session; everybody has ``permissions``.

    ``newest`` is the last message of each channel.
    """
    general = {**channel(GENERAL), "last_message_id": newest.get(GENERAL)}
    voice = {**channel(VOICE, kind=2), "last_message_id": newest.get(VOICE)}
    role: Obj = {
        "color": 0, "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}, "hoist": False,
        "position": 0, "managed": False, "mentionable": False, "flags": 0, "icon": None, "unicode_emoji": None,
    }  # fmt: skip
    everyone = {**role, "id": str(GUILD), "name": "@everyone", "permissions": str(permissions)}
    ours = {**role, "id": str(BOT_ROLE), "name": "ThisBot", "permissions": "0", "tags": {"bot_id": str(ME)}}
    return {
        "id": str(GUILD), "name": "A server", "owner_id": str(TELLER), "member_count": 3, "large": False,
        "joined_at": _TIME, "unavailable": False, "roles": [everyone, ours], "emojis": [], "stickers": [],
        "channels": [general, voice], "threads": threads, "presences": [],
        "members": [{**member(ME, BOT_ROLE), "user": user(ME)}], "voice_states": [], "stage_instances": [],
        "guild_scheduled_events": [], "soundboard_sounds": [], "features": [], "verification_level": 0,
        "default_message_notifications": 0, "explicit_content_filter": 0, "mfa_level": 0, "afk_timeout": 300,
        "afk_channel_id": None, "premium_tier": 0, "preferred_locale": "en-US", "system_channel_flags": 0,
        "system_channel_id": None, "nsfw_level": 0, "icon": None, "splash": None, "banner": None,
        "description": None, "vanity_url_code": None, "max_members": 500_000, "application_id": None,
        "discovery_splash": None, "rules_channel_id": None, "public_updates_channel_id": None,
        "safety_alerts_channel_id": None, "premium_progress_bar_enabled": False, "premium_subscription_count": 0,
    }  # fmt: skip


def direct(id_: int, last: object = None) -> Obj:
    """Return the direct chat with somebody, and the id of its last message."""
    recipients = [user(id_ - dm(0))]
    return {"id": str(id_), "type": 1, "recipients": recipients, "last_message_id": last, "flags": 0}


class Writer:
    """Numbers everything as one server would: an id tells when it was made."""

    def __init__(self) -> None:
        now = int(time.time() * 1_000) - 1_420_070_400_000
        self._ids = itertools.count((now << 22) + 1)

    def id(self) -> int:
        """Return the next id."""
        return next(self._ids)

    def message(self, text: str, *, sender: int = TELLER, where: int | None = None, **more: object) -> Obj:
        """Return a message; in the direct chat with its sender unless it is said ``where``. ``more`` adds fields."""
        where = where or dm(sender)
        place: Obj = {"channel_type": 1} if is_direct(where) else {"guild_id": str(GUILD), "member": member(sender)}
        return {
            "id": str(self.id()), "channel_id": str(where), "author": user(sender),
            "content": text, "timestamp": _TIME, "edited_timestamp": None, "tts": False, "mention_everyone": False,
            "mentions": _named(_MENTION, text, lambda id_: {**user(id_), "member": member(id_)}),
            "mention_roles": [str(found) for found in _ROLE.findall(text)], "attachments": [], "embeds": [],
            "pinned": False, "type": 0, "flags": 0, "components": [], **place, **more,
        }  # fmt: skip

    def slash(self, name: str, argument: str | None = None, *, sender: int = TELLER, where: int | None = None) -> Obj:
        """Return the interaction of somebody who picks a command, in the direct chat unless it is said ``where``."""
        options = [] if argument is None else [{"name": "argument", "type": 3, "value": argument}]
        id_, home = self.id(), where or dm(sender)
        if where is None:
            who: Obj = {"user": user(sender), "context": 1}
            place = direct(home)
        else:
            who = {"member": {**member(sender), "user": user(sender)}, "guild_id": str(GUILD), "context": 0}
            place = channel(home) if where in {GENERAL, VOICE} else thread(home)
        return {
            "id": str(id_), "application_id": str(APPLICATION), "type": 2, "token": f"interaction-token-{id_}",
            "version": 1, "data": {"id": "1", "name": name, "type": 1, "options": options}, "channel": place,
            "channel_id": str(home), "locale": "en-US", "entitlements": [], "authorizing_integration_owners": {},
            "attachment_size_limit": 10_000_000, "app_permissions": "0", **who,
        }  # fmt: skip


def _named(pattern: re.Pattern[str], text: str, make: Callable[[int], Obj]) -> list[Obj]:
    return [make(int(found)) for found in dict.fromkeys(pattern.findall(text))]

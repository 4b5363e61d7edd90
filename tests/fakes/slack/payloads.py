"""Payloads as Slack writes them."""

from __future__ import annotations

import itertools

Obj = dict[str, object]

TEAM = "T0FAKE"
APP = "A0FAKE"
BOT_USER = "U0BOT"
BOT_ID = "B0BOT"
CHANNEL = "C0GENERAL"
TELLER = "U0TELLER"
"""The person who speaks unless a test says otherwise."""

NAME = "@ThisBot"


def direct(user: str = TELLER) -> str:
    """Return the conversation between the bot and a person."""
    return "D" + user[1:]


def typed(text: str) -> str:
    """Write what a person typed as Slack passes it on; ``@ThisBot`` is the bot's mention."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace(NAME, f"<@{BOT_USER}>")


class Writer:
    """Writes payloads with ids that never repeat."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def ts(self) -> str:
        """Return the time stamp that names the next message."""
        return f"1790000000.{next(self._numbers):06}"

    def message(
        self, text: str, *, sender: str = TELLER, channel: str | None = None, kind: str = "im", **more: object
    ) -> Obj:
        """Return the event of a message; ``kind`` is im, mpim, channel or group."""
        event: Obj = {
            "type": "message",
            "user": sender,
            "text": typed(text),
            "ts": self.ts(),
            "channel": channel or (direct(sender) if kind == "im" else CHANNEL),
            "channel_type": kind,
            "team": TEAM,
            "client_msg_id": f"client-{next(self._numbers)}",
        }
        return event | {"event_ts": event["ts"]} | more

    def mention(self, said: Obj) -> Obj:
        """Return the second event of a message that mentions the bot."""
        dropped = {"channel_type", "client_msg_id"}
        return {key: value for key, value in said.items() if key not in dropped} | {"type": "app_mention"}

    def event(self, event: Obj) -> Obj:
        """Wrap an event."""
        return {
            "token": "verification-fake",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{next(self._numbers):08}",
            "event_time": 1_790_000_000,
            "authorizations": [
                {"enterprise_id": None, "team_id": TEAM, "user_id": BOT_USER, "is_bot": True,
                 "is_enterprise_install": False}
            ],
            "is_ext_shared_channel": False,
            "event_context": "context-fake",
        }  # fmt: skip

    def slash(self, command: str, text: str, hook: str, *, sender: str, channel: str, channel_name: str) -> Obj:
        """Return what a picked slash command sends."""
        return {
            "token": "verification-fake",
            "team_id": TEAM,
            "team_domain": "fake",
            "channel_id": channel,
            "channel_name": channel_name,
            "user_id": sender,
            "user_name": "somebody",
            "command": command,
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": hook,
            "trigger_id": f"{next(self._numbers)}.1.fake",
        }

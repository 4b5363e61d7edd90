"""Why a bot is not connected, in words."""

from __future__ import annotations

from typing import Final

from bridges.message import Stop
from bridges.state import Health
from commands.cleaning import one_line
from i18n import Key, Words

STOPS: Final = {
    Stop.NEEDS_LOGIN: Key.BOTS_NEEDS_LOGIN,
    Stop.REPLACED: Key.BOTS_REPLACED,
    Stop.MISCONFIGURED: Key.BOTS_MISCONFIGURED,
    Stop.NOT_INSTALLED: Key.BOTS_NOT_INSTALLED,
}


def reason(health: Health, words: Words) -> str:
    """Return why the bot stopped, and its last error as the log has it; empty where nothing ever went wrong.

    Errors are in English: the channel's page explains them in both languages.
    """
    error = one_line(health.error or "")
    return f"{words(STOPS[health.why])} ({error})" if health.why else error

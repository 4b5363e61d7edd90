"""Configuration -> channel. The only place that knows which module serves which table of the file.

A module is imported when a bot of its channel is built, and it imports its SDK only when it runs: nothing of a
platform is loaded for a channel that is not configured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridges.config import AnyBot, Telegram
from bridges.message import Channel, Cursors
from harness_client.clock import Clock


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What any channel may need beside its own table. ``hide`` keeps a secret learnt at run time out of the log."""

    cursors: Cursors
    clock: Clock
    hide: Callable[[str], None]


class NotServed(Exception):
    """This version has no module for the channel."""


def build(bot: AnyBot, around: Surroundings) -> Channel:
    """Return the channel of a configured bot, not yet connected. Raises NotServed."""
    match bot:
        case Telegram():
            from bridges.text.telegram import TelegramChannel  # noqa: PLC0415 - see the module's docstring

            return TelegramChannel(bot.name, token=bot.token.reveal(), api=bot.endpoints.api, clock=around.clock)
        case _:
            raise NotServed(bot.channel)

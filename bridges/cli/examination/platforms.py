"""The platforms' side of the bots: every bot is looked at by its own channel, and told in words here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from bridges.channels import Surroundings, build
from bridges.cli.channel_names import NAMES
from bridges.cli.examination.finding import Check, Finding, Level
from bridges.config import AnyBot, Config
from bridges.message import ChecksPlatform, Noticed, Sign
from harness_client.clock import Clock
from i18n import Key, Words

SECONDS: Final = 30.0
"""What all the questions to one platform may take together."""

_TOLD: Final = {
    Sign.ACCEPTED: (Level.OK, Key.PLATFORM_ACCEPTED),
    Sign.LOGIN_STORED: (Level.OK, Key.PLATFORM_LOGIN_STORED),
    Sign.WOULD_REPLACE: (Level.NOTE, Key.PLATFORM_WOULD_REPLACE),
    Sign.SCOPES_UNSEEN: (Level.NOTE, Key.PLATFORM_SCOPES_UNSEEN),
    Sign.NOT_INSTALLED: (Level.NOTE, Key.PLATFORM_NOT_INSTALLED),
    Sign.NOT_TOLD: (Level.NOTE, Key.PLATFORM_NOT_TOLD),
    Sign.WEBHOOK_SET: (Level.NOTE, Key.PLATFORM_WEBHOOK_SET),
    Sign.READS_ALL: (Level.NOTE, Key.PLATFORM_READS_ALL),
    Sign.NO_GROUPS: (Level.NOTE, Key.PLATFORM_NO_GROUPS),
    Sign.FEW_SESSIONS: (Level.NOTE, Key.PLATFORM_FEW_SESSIONS),
    Sign.NO_SESSIONS: (Level.WRONG, Key.PLATFORM_NO_SESSIONS),
    Sign.BAD_CREDENTIAL: (Level.WRONG, Key.PLATFORM_BAD_CREDENTIAL),
    Sign.NO_LOGIN: (Level.WRONG, Key.PLATFORM_NO_LOGIN),
    Sign.NO_SCOPES: (Level.WRONG, Key.PLATFORM_NO_SCOPES),
    Sign.NO_INTENT: (Level.WRONG, Key.PLATFORM_NO_INTENT),
    Sign.NO_BOT: (Level.WRONG, Key.PLATFORM_NO_BOT),
    Sign.NOT_ACTIVE: (Level.WRONG, Key.PLATFORM_NOT_ACTIVE),
    Sign.NOT_SUBSCRIBED: (Level.WRONG, Key.PLATFORM_NOT_SUBSCRIBED),
    Sign.RESTRICTED: (Level.WRONG, Key.PLATFORM_RESTRICTED),
    Sign.NO_PROGRAM: (Level.WRONG, Key.PLATFORM_NO_PROGRAM),
    Sign.UNREACHED: (Level.WRONG, Key.PLATFORM_UNREACHED),
    Sign.SILENT: (Level.WRONG, Key.PLATFORM_SILENT),
    Sign.UNREADABLE: (Level.WRONG, Key.PLATFORM_UNREADABLE),
    Sign.BUSY: (Level.WRONG, Key.PLATFORM_BUSY),
    Sign.REFUSED: (Level.WRONG, Key.PLATFORM_REFUSED),
}
"""How good a sign is, and its words."""


class _Nothing:
    """The cursors of a channel that only looks."""

    async def load(self, key: str) -> bytes | None:
        """See :meth:`bridges.message.Cursors.load`."""

    async def save(self, key: str, value: bytes) -> None:
        """See :meth:`bridges.message.Cursors.save`."""


def surroundings(config: Config, clock: Clock, hide: Callable[[str], None]) -> Surroundings:
    """Return what a channel of ``config`` needs to look at its platform."""
    return Surroundings(_Nothing(), clock, hide, config.state.path.absolute().parent)


async def look(bot: AnyBot, around: Surroundings, *, log_in: bool) -> tuple[Noticed, ...]:
    """Return what the platform's side of a bot shows, within SECONDS. Changes nothing there; never raises."""
    channel = build(bot, around)
    if not isinstance(channel, ChecksPlatform):
        return ()
    try:
        async with around.clock.timeout(SECONDS):
            return await channel.check(log_in=log_in)
    except TimeoutError:
        return (Noticed(Sign.SILENT),)
    except ModuleNotFoundError:
        return (Noticed(Sign.NOT_INSTALLED, bot.channel),)
    except Exception as error:  # noqa: BLE001 - a supervisor: SDKs raise anything on answers that are none
        return (Noticed(Sign.UNREADABLE, type(error).__name__),)
    finally:
        await channel.close()


def told(bot: AnyBot, seen: Sequence[Noticed], words: Words) -> list[Finding]:
    """Put what a look showed into words."""
    channel = words(NAMES[bot.channel])
    return [
        Finding(Check.PLATFORM, bot.name, level, words(key, detail=each.detail, channel=channel), each.sign)
        for each in seen
        for level, key in (_TOLD[each.sign],)
    ]


async def skipped(config: Config, words: Words) -> list[Finding]:
    """Say of every bot that nobody looked."""
    return [Finding(Check.PLATFORM, bot.name, Level.NOTE, words(Key.PLATFORM_SKIPPED)) for bot in config.bots]


async def platforms(config: Config, around: Surroundings, words: Words, *, log_in: bool) -> list[Finding]:
    """Look at the platforms of all bots at the same time; none holds up or hides another."""
    seen = await asyncio.gather(*(look(bot, around, log_in=log_in) for bot in config.bots))
    return [finding for bot, each in zip(config.bots, seen, strict=True) for finding in told(bot, each, words)]

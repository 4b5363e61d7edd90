"""What the operator does about pairing codes: single transactions on the state file, beside a running program."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import click

from bridges.cli.problems import worded
from bridges.cli.spoken import spoken
from bridges.config import Config, load
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.state import BotKey, State, StateError, open_state
from commands.cleaning import one_line
from commands.model import SenderId
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Words

OK, FAILED, MISUSED = 0, 1, 2

_MINUTE: Final = 60.0

Work = Callable[[Config, State, Words], Awaitable[tuple[str, int]]]
"""Returns what to print and the exit code."""


def run(path: Path | None, work: Work) -> int:
    """Do ``work`` on the configured state; return 0, 1 when there was nothing to do, 2 for the configuration."""
    try:
        config = load(path, environment())
    except ConfigError as error:
        click.echo(Words(spoken(environment()))(error.key, **error.values), err=True)
        return MISUSED
    words = Words(config.language)
    try:
        text, code = asyncio.run(_run(config, work, words))
    except StateError as error:
        click.echo(worded(error, words), err=True)
        return FAILED
    click.echo(text, err=code != OK)
    return code


async def _run(config: Config, work: Work, words: Words) -> tuple[str, int]:
    async with open_state(config.state.path, alongside=True) as state:
        return await work(config, state, words)


async def waiting(_: Config, state: State, words: Words) -> tuple[str, int]:
    """List the codes that can still be approved, oldest first."""
    now = SYSTEM_CLOCK.time()
    lines = [
        words(
            Key.PAIRING_WAITING,
            code=pairing.code,
            bot=pairing.bot,
            sender=one_line(pairing.sender),
            minutes=math.ceil((pairing.expires - now) / _MINUTE),
        )
        for pairing in await state.pairings.waiting()
    ]
    return "\n".join(lines) or words(Key.PAIRING_NOBODY), OK


def approval(code: str) -> Work:
    """Let in whoever holds ``code``."""

    async def work(_: Config, state: State, words: Words) -> tuple[str, int]:
        pairing = await state.pairings.approve(code)
        if pairing is None:
            return words(Key.PAIR_UNKNOWN), FAILED
        return words(Key.PAIRING_APPROVED, sender=one_line(pairing.sender), bot=pairing.bot), OK

    return work


def revocation(name: str, sender: str) -> Work:
    """Take back the admission or the code of one person at the bot of this name."""

    async def work(config: Config, state: State, words: Words) -> tuple[str, int]:
        bots = [BotKey(bot.channel, bot.name) for bot in config.bots if name in {bot.name, f"{bot.channel}/{bot.name}"}]
        revoked = [bot for bot in bots if await state.pairings.dismiss(bot, SenderId(sender))]
        key = Key.PAIRING_REVOKED if revoked else Key.PAIRING_NOT_ADMITTED
        return words(key, sender=one_line(sender), bot=one_line(name)), OK if revoked else FAILED

    return work

"""Both ends of ``harness-im reload``: the operator's program asks by SIGHUP, the running one takes over."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from bridges.cli.pairing import FAILED, OK
from bridges.config import Config, environment, load
from bridges.config_error import ConfigError
from bridges.fleet import Fleet
from bridges.noting import STALE_SECONDS
from bridges.serve import ServedBot
from bridges.state import State, StateError
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Words

_INPUT = 0


async def ask(_: Config, state: State, words: Words) -> tuple[str, int]:
    """Ask the program that noted its bots last, if it still lives; its configuration was read well before."""
    latest = max(await state.healths.noted(), key=lambda note: note.at, default=None)
    if latest is None or latest.at < SYSTEM_CLOCK.time() - STALE_SECONDS:
        return words(Key.RELOAD_NOT_RUNNING), FAILED
    try:
        os.kill(latest.pid, signal.SIGHUP)
    except ProcessLookupError:
        return words(Key.RELOAD_NOT_RUNNING), FAILED
    except PermissionError:
        return words(Key.RELOAD_DENIED, pid=latest.pid), FAILED
    return words(Key.RELOAD_ASKED, pid=latest.pid), OK


async def reload_on_hangup(
    path: Path | None, fleet: Fleet, begin: Callable[[ServedBot], Awaitable[object] | None], stop: asyncio.Event
) -> None:
    """Take the configuration over at each SIGHUP, until cancelled; ``begin`` starts a new bot.

    What cannot be read changes nothing. A SIGHUP because the terminal went away stops the program, as everywhere else.
    """
    asked = asyncio.Event()
    attended = os.isatty(_INPUT)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    while True:
        await asked.wait()
        asked.clear()
        if attended and not os.isatty(_INPUT):
            stop.set()
            return
        await _reload(path, fleet, begin)


async def _reload(path: Path | None, fleet: Fleet, begin: Callable[[ServedBot], Awaitable[object] | None]) -> None:
    log = structlog.get_logger(__name__)
    try:
        config = await asyncio.to_thread(load, path, environment())
        added = await fleet.take(config)
    except (ConfigError, StateError) as error:
        log.error("not reloaded", problem=str(error))
        return
    for bot in added:
        begin(bot)
    log.info(
        "reloaded",
        new=[str(bot.health.bot) for bot in added],
        until_restart=[str(key) for key in fleet.left_behind(config)],
        language=config.language.value,
    )

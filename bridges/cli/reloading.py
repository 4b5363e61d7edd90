"""Both ends of ``harness-im reload``: the operator's program asks by SIGHUP, the running one takes over."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import structlog

from bridges.cli.pairing import FAILED, OK
from bridges.cli.problems import worded
from bridges.cli.signals import on_signal
from bridges.config import Config, load
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.fleet import Fleet
from bridges.noting import newest
from bridges.serve import ServedBot
from bridges.state import State, StateError
from bridges.systemd import Systemd
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Words

_INPUT = 0


async def ask(_: Config, state: State, words: Words) -> tuple[str, int]:
    """Ask the program that noted its bots last, if it still lives; its configuration was read well before."""
    latest = newest(await state.healths.noted(), SYSTEM_CLOCK.time())
    if latest is None:
        return words(Key.RELOAD_NOT_RUNNING), FAILED
    try:
        os.kill(latest.pid, signal.SIGHUP)
    except ProcessLookupError:
        return words(Key.RELOAD_NOT_RUNNING), FAILED
    except PermissionError:
        return words(Key.RELOAD_DENIED, pid=latest.pid), FAILED
    return words(Key.RELOAD_ASKED, pid=latest.pid), OK


class Hangup:
    """SIGHUP, which ends no program any more once this is made: a wish to reload, or the terminal that went away."""

    def __init__(self) -> None:
        self._attended = os.isatty(_INPUT)
        self._came = asyncio.Event()
        on_signal(signal.SIGHUP, self._came.set)

    async def reload_wanted(self) -> bool:
        """Wait for the next one; False when it came because the terminal is gone."""
        await self._came.wait()
        self._came.clear()
        return os.isatty(_INPUT) or not self._attended


async def reload_on_hangup(
    hangup: Hangup,
    path: Path | None,
    fleet: Fleet,
    begin: Callable[[ServedBot], object],
    *,
    systemd: Systemd,
    status: Callable[[], str],
) -> None:
    """Take the configuration over at each SIGHUP, until the terminal is gone; ``begin`` starts a new bot.

    What cannot be read changes nothing, and ``systemd`` hears of it in place of the ``status``.
    """
    while await hangup.reload_wanted():
        await systemd.reloading()
        problem = await _reload(path, fleet, begin)
        await systemd.ready(status() if problem is None else problem)


async def _reload(path: Path | None, fleet: Fleet, begin: Callable[[ServedBot], object]) -> str | None:
    """Return why nothing was taken over, in words."""
    log = structlog.get_logger(__name__)
    try:
        config = await asyncio.to_thread(load, path, environment())
        added = await fleet.take(config)
    except (ConfigError, StateError) as error:
        log.error("not reloaded", problem=str(error))
        words = Words(fleet.language)
        why = worded(error, words) if isinstance(error, StateError) else words(error.key, **error.values)
        return words(Key.RELOAD_FAILED, problem=why)
    for bot in added:
        begin(bot)
    log.info(
        "reloaded",
        new=[str(bot.health.bot) for bot in added],
        until_restart=[str(key) for key in fleet.left_behind(config)],
        language=config.language.value,
    )
    return None

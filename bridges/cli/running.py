"""Runs the configured bots: configuration, state, host, then every bot at once until somebody ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import structlog

from bridges import shown
from bridges.access import Policies
from bridges.app import Parts, open_parts
from bridges.cli.output import silence
from bridges.cli.problems import worded
from bridges.cli.reason import reason
from bridges.cli.reloading import Hangup, reload_on_hangup
from bridges.cli.signals import on_signal
from bridges.cli.spoken import spoken
from bridges.config import Config, load, locate
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.fleet import Fleet
from bridges.listen import Listen
from bridges.log import Redactor, logging_to
from bridges.noting import keep_noted
from bridges.observer import UNOBSERVED
from bridges.race import Overtaken, beside, unless
from bridges.serve import ServedBot
from bridges.state import StateError
from bridges.supervise import Health, Link
from bridges.systemd import Systemd
from commands.cleaning import one_line
from harness_client.embedded import EmbeddedError
from harness_client.errors import HarnessError
from harness_client.types import Health as HostHealth
from i18n import Key, Words

if TYPE_CHECKING:
    from bridges.metrics import Metrics

OK, FAILED, MISUSED = 0, 1, 2

READY_SECONDS: Final = 10.0
"""How long the ready line waits for links that are still being made."""

QUIET_SECONDS: Final = 2.0
"""How long it waits for the next one once a link is up: one whose SDK loads slowly holds nobody's ready line back."""

LOOK_SECONDS: Final = 0.02
"""How often it looks; nothing announces that the last of several links is up."""

END_SECONDS: Final = 9.5
"""How long the end may take after the signal for it. The parts have limits that add up to less."""


class CannotListen(Exception):
    """The address of ``[metrics]`` cannot be had; ``reason`` is in the system's words."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address)
        self.address = address
        self.reason = reason


def serve_all(path: Path | None) -> int:
    """Serve until a signal and return the exit code: 0, 1 for host or state, 2 for the configuration."""
    try:
        config = load(path, environment())
    except ConfigError as error:
        click.echo(Words(spoken(environment()))(error.key, **error.values), err=True)
        return MISUSED
    words = Words(config.language)
    if not config.bots:
        click.echo(words(Key.RUN_NO_BOTS, path=locate(path, environment())), err=True)
        return MISUSED
    redact = Redactor(config.secrets())
    with logging_to(sys.stderr, redact, as_json=config.log.format == "json"):
        return asyncio.run(_run(config, path, words, redact))


@dataclass(frozen=True, slots=True)
class _Program:
    """All that was there before the first bot began. ``figures`` is where they are served."""

    parts: Parts
    fleet: Fleet
    host: HostHealth
    figures: str | None


async def _run(config: Config, path: Path | None, words: Words, redact: Redactor) -> int:
    stop, hangup = asyncio.Event(), Hangup()
    for number in (signal.SIGTERM, signal.SIGINT):
        on_signal(number, partial(_end, stop))
    systemd = Systemd.of(environment(), os.getpid())
    address = config.harness.address
    try:
        async with AsyncExitStack() as stack:
            async with unless(stop):
                program = await _started(stack, config, path, redact)
            await _serve(program, path, words, hangup, stop, systemd)
    except Overtaken:
        await systemd.stopping()
    except (StateError, HarnessError, EmbeddedError) as error:
        click.echo(worded(error, words, address=address.base if address else "127.0.0.1"), err=True)
        return FAILED
    except CannotListen as error:
        click.echo(words(Key.RUN_CANNOT_LISTEN, address=error.address, reason=error.reason), err=True)
        return FAILED
    return OK


def _end(stop: asyncio.Event) -> None:
    """Begin to end, and see to it that there is an end, whatever a library or a name server holds up."""
    if not stop.is_set():
        stop.set()
        last_resort = threading.Timer(END_SECONDS, _end_here_and_now)
        last_resort.daemon = True
        last_resort.start()


def _end_here_and_now() -> None:
    structlog.get_logger(__name__).error("did not end in time", seconds=END_SECONDS)
    os._exit(FAILED)  # as kill -9 would, which the state survives at any moment


async def _started(stack: AsyncExitStack, config: Config, path: Path | None, redact: Redactor) -> _Program:
    """Open what the bots share. Raises StateError, HarnessError, EmbeddedError, CannotListen."""
    metrics = _metrics() if config.metrics else None
    observer = metrics.observer if metrics else UNOBSERVED
    parts = await stack.enter_async_context(open_parts(config, environment(), redact, observer=observer))
    fleet = Fleet(parts, Policies.following(path, environment()), redact)
    await fleet.take(config)
    host = await parts.harness.health()
    figures: str | None = None
    if config.metrics and metrics:
        figures = await _monitored(stack, config.metrics.listen, metrics, parts, fleet.served)
    return _Program(parts, fleet, host, figures)


async def _serve(
    program: _Program, path: Path | None, words: Words, hangup: Hangup, stop: asyncio.Event, systemd: Systemd
) -> None:
    """Serve the bots until ``stop``, and let them end."""
    parts, fleet = program.parts, program.fleet
    status = partial(_status, fleet)
    noting = keep_noted(parts.state.healths, lambda: [bot.health for bot in fleet.served], parts.clock)
    async with beside(noting), beside(systemd.keep_alive()), asyncio.TaskGroup() as tasks:
        begin = partial(_begin, tasks, stop)
        for bot in fleet.served:
            begin(bot)
        await _settled(parts, fleet.served, stop)
        _say(_ready(parts, program.host, fleet.served, words))
        if program.figures is not None:
            _say(words(Key.RUN_MONITORED, address=program.figures))
        await systemd.ready(status())
        accompanying = [
            tasks.create_task(systemd.keep_informed(status)),
            tasks.create_task(_reload_until_hung_up(hangup, path, fleet, begin, stop, systemd)),
        ]
        await stop.wait()
        await systemd.stopping()
        for task in accompanying:
            task.cancel()


def _say(text: str) -> None:
    """Show a text; bots that run for others do not end because nobody looks on, or a disk is full."""
    try:
        click.echo(text)
    except OSError as error:
        silence(sys.stdout)
        structlog.get_logger(__name__).warning("output lost", error=type(error).__name__)


def _metrics() -> Metrics:
    from bridges.metrics import Metrics  # noqa: PLC0415 - its library is loaded only where figures are wanted

    return Metrics()


async def _monitored(
    stack: AsyncExitStack, listen: Listen, metrics: Metrics, parts: Parts, served: Sequence[ServedBot]
) -> str:
    """Serve figures and health until ``stack`` closes; return the base address. Raises CannotListen."""
    from bridges.monitoring import Monitor, monitored  # noqa: PLC0415 - as above

    monitor = Monitor(metrics, parts.harness, served, parts.clock)
    try:
        return await stack.enter_async_context(monitored(monitor, listen))
    except OSError as error:
        raise CannotListen(f"{listen.host}:{listen.port}", shown.reason(error)) from error


def _begin(tasks: asyncio.TaskGroup, stop: asyncio.Event, bot: ServedBot) -> None:
    tasks.create_task(bot.serve(stop))


async def _reload_until_hung_up(
    hangup: Hangup,
    path: Path | None,
    fleet: Fleet,
    begin: Callable[[ServedBot], object],
    stop: asyncio.Event,
    systemd: Systemd,
) -> None:
    """Reload whenever asked to. A SIGHUP because the terminal went away stops the program, as everywhere else."""
    await reload_on_hangup(hangup, path, fleet, begin, systemd=systemd, status=partial(_status, fleet))
    _end(stop)


async def _settled(parts: Parts, served: Sequence[ServedBot], stop: asyncio.Event) -> None:
    """Wait until every link is up, stopped or failing, or until some are and nothing changes for QUIET_SECONDS."""
    until, pending = parts.clock.monotonic() + READY_SECONDS, len(served)
    while not stop.is_set() and parts.clock.monotonic() < until:
        left = sum(bot.health.link in {Link.CLOSED, Link.CONNECTING} for bot in served)
        if not left:
            return
        if left < pending:
            pending, until = left, min(until, parts.clock.monotonic() + QUIET_SECONDS)
        await parts.clock.sleep(LOOK_SECONDS)


def _ready(parts: Parts, host: HostHealth, served: Sequence[ServedBot], words: Words) -> str:
    """Return the ready line, and a line for each bot."""
    healths = [bot.health for bot in served]
    ready = words(
        Key.RUN_READY,
        up=sum(health.link is Link.UP for health in healths),
        all=len(healths),
        generation=host.generation,
        version=host.version or "",
        address=parts.harness.address.base,
    )
    lines = [one_line(ready), *(_told(health, words) for health in healths)]
    if parts.state.set_aside is not None:
        lines.append(words(Key.STATE_SET_ASIDE, path=parts.state.set_aside))
    return "\n".join(lines)


def _status(fleet: Fleet) -> str:
    """Return one line on how the bots are now."""
    up = [str(bot.health.bot) for bot in fleet.served if bot.health.link is Link.UP]
    down = [str(bot.health.bot) for bot in fleet.served if bot.health.link is not Link.UP]
    return Words(fleet.language)(Key.RUN_STATUS, up=", ".join(up) or "–", down=", ".join(down) or "–")


def _told(health: Health, words: Words) -> str:
    if health.link is Link.UP:
        return words(Key.RUN_UP, bot=health.bot)
    key = Key.RUN_STOPPED if health.link is Link.STOPPED else Key.RUN_WAITING
    return words(key, bot=health.bot, error=reason(health, words)).rstrip()

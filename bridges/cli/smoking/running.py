"""Runs the smoke test that was asked for, and says how it went. Ctrl-C ends it with a report of what was done."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import msgspec

from bridges import private_file, shown
from bridges.cli.problems import worded
from bridges.cli.signals import on_signal
from bridges.cli.smoking.lines import CHANNELS, Side
from bridges.cli.smoking.live import Live
from bridges.cli.smoking.plan import plan_live, plan_simulated
from bridges.cli.smoking.record import FAILED, Record
from bridges.cli.smoking.report import Paper, as_table, counted, promise
from bridges.cli.smoking.walk import Flow
from bridges.cli.spoken import spoken
from bridges.command_desk import VERSION
from bridges.config import Config, load, locate
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.log import Redactor, logging_to
from bridges.noting import newest
from bridges.race import beside, first_of
from bridges.state import StateError, Trouble, open_state
from bridges.terminal.script import lines_of
from harness_client.clock import SYSTEM_CLOCK
from harness_client.embedded import EmbeddedError
from harness_client.errors import HarnessError
from i18n import Key, Language, Words

MISUSED: Final = 2

STOP_SECONDS: Final = 15.0
"""What a run that is stopped may take: a bot drains for 5 and closes its link in 5 more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for on the command line. No ``channels``: all; ``patience`` in seconds."""

    side: Side
    channels: Sequence[str] = ()
    report: Path | None = None
    config: Path | None = None
    language: str | None = None
    patience: float = 120.0


class _Misused(Exception):
    """What was asked for cannot be; ``args[0]`` says why."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: what was asked for, what is known, and where that is written."""

    options: Options
    config: Config
    words: Words
    redact: Redactor
    record: Record
    paper: Paper
    flow: Flow = field(default_factory=Flow)

    def save(self) -> None:
        """Write the report as it is now. Raises OSError."""
        self.paper.save(self.record, self.words)


_Work = Callable[[], Coroutine[object, object, None]]


def smoke(options: Options) -> int:
    """Run it and return the exit code: that of :meth:`bridges.cli.smoking.record.Record.code`, 2 for wrong options."""
    language = Language(options.language) if options.language else None
    try:
        config = load(options.config, environment())
    except ConfigError as error:
        click.echo(Words(spoken(environment(), options.language))(error.key, **error.values), err=True)
        return MISUSED
    config = msgspec.structs.replace(config, language=language or config.language)
    words, record = Words(config.language), Record(options.side, VERSION, SYSTEM_CLOCK.time())
    paper = Paper.of(record, options.report or config.state.path.absolute().parent / "smoke")
    run = _Run(options, config, words, Redactor(config.secrets()), record, paper)
    try:
        work = _simulated(run) if options.side is Side.SIMULATED else _live(run)
        return _carry_out(run, work)
    except _Misused as error:
        click.echo(str(error), err=True)
        return MISUSED
    except OSError as error:
        where = error.filename or paper.folder
        click.echo(words(Key.SMOKE_NOT_WRITTEN, path=where, reason=shown.reason(error)), err=True)
        return FAILED


def _carry_out(run: _Run, work: _Work) -> int:
    words, record = run.words, run.record
    private_file.folder(run.paper.folder)
    log = os.open(run.paper.log, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)  # nobody else has a report of that name
    with os.fdopen(log, "w", encoding="utf-8") as stream, logging_to(stream, run.redact):
        run.save()
        problem = asyncio.run(_until_over(run, work))
    record.ended = SYSTEM_CLOCK.time()
    run.save()
    if problem is not None:
        click.echo(problem, err=True)
        return FAILED
    click.echo(f"\n{as_table(record, words)}\n")
    if run.flow.stopped:
        click.echo(words(Key.SMOKE_STOPPED))
    click.echo(words(Key.SMOKE_REPORTED, path=run.paper.markdown))
    return record.code(stopped=run.flow.stopped)


async def _until_over(run: _Run, work: _Work) -> str | None:
    """Do the work until it is done or somebody ends it; return why it could not begin, in words."""
    for number in (signal.SIGTERM, signal.SIGINT):
        on_signal(number, run.flow.stop)
    click.echo(promise(run.record, run.words))  # from here on Ctrl-C ends with a report
    address = run.config.harness.address
    try:
        await first_of(work(), _overdue(run.flow))
    except StateError as error:
        running = await _running(run.config) if error.trouble is Trouble.LOCKED else None
        return run.words(Key.SMOKE_RUNS, pid=running) if running else worded(error, run.words)
    except (HarnessError, EmbeddedError) as error:
        return worded(error, run.words, address=address.base if address else "127.0.0.1")
    return None


async def _overdue(flow: Flow) -> None:
    """Wait until a run that was stopped has had its time to end in order."""
    await flow.until_stopped()
    await SYSTEM_CLOCK.sleep(STOP_SECONDS)


async def _running(config: Config) -> int | None:
    """Return the process that serves the bots of this state, by its own last note."""
    async with open_state(config.state.path, alongside=True) as state:
        latest = newest(await state.healths.noted(), SYSTEM_CLOCK.time())
    return latest.pid if latest else None


def _simulated(run: _Run) -> _Work:
    """Plan the simulated platforms. Raises _Misused where they cannot be trusted."""
    words, channels = run.words, _channels(run)
    if sys.flags.optimize:
        raise _Misused(words(Key.SMOKE_OPTIMISED))
    try:
        from bridges.cli.smoking.simulated import Acceptance, is_ours  # noqa: PLC0415 - the fakes, for this alone
    except ModuleNotFoundError as error:
        raise _Misused(words(Key.SMOKE_NO_FAKES, name=error.name or "")) from None
    if not is_ours():
        raise _Misused(words(Key.SMOKE_FOREIGN))
    plan_simulated(run.record, channels)
    plan_live(run.record, run.config.bots, ())

    def done(channel: str) -> None:
        lines = [line for line in run.record if line.spot.channel == channel and line.spot.side is Side.SIMULATED]
        click.echo(words(Key.SMOKE_CHANNEL_DONE, channel=channel, counts=counted(lines, words)))
        run.save()

    async def work() -> None:
        await first_of(Acceptance(run.record, SYSTEM_CLOCK, done).run(channels), run.flow.until_stopped())

    return work


def _live(run: _Run) -> _Work:
    """Plan the configured bots. Raises _Misused where there are none."""
    words, channels, bots = run.words, _channels(run), run.config.bots
    chosen = tuple(bot for bot in bots if bot.channel in channels)
    if not chosen:
        file = locate(run.options.config, environment())
        raise _Misused(words(Key.SMOKE_NO_BOTS, path=file, channels=", ".join(channels)))
    plan_live(run.record, bots, chosen)
    live = Live(
        config=run.config,
        path=run.options.config,
        chosen=chosen,
        words=words,
        redact=run.redact,
        record=run.record,
        publish=run.save,
        flow=run.flow,
        patience=run.options.patience,
    )

    async def work() -> None:
        async with beside(_heed_operator(run.flow)):
            await live.run()

    return work


async def _heed_operator(flow: Flow) -> None:
    """Give up the present message at each empty line; words are no order, they were meant for the chat."""
    if sys.stdin is not None:
        async for line in lines_of(sys.stdin.fileno()):
            if not line.strip():
                flow.skip()


def _channels(run: _Run) -> Sequence[str]:
    wanted = tuple(dict.fromkeys(run.options.channels))
    for channel in wanted:
        if channel not in CHANNELS:
            raise _Misused(run.words(Key.SMOKE_NO_CHANNEL, channel=channel, channels=", ".join(CHANNELS)))
    return wanted or CHANNELS

"""Runs the terminal's chat: configuration, host, state, then the same path as every channel's."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TextIO

import click
import msgspec

from bridges import private_file
from bridges.access import TERMINAL
from bridges.app import Parts, converse, mint, open_parts
from bridges.cli.problems import worded
from bridges.cli.spoken import spoken
from bridges.config import Config, Harness, HarnessMode, load
from bridges.config_error import ConfigError, Wrong
from bridges.environment import environment
from bridges.intake import Policy
from bridges.log import Redactor, logging_to
from bridges.message import Channel, EventId
from bridges.secret import Secret
from bridges.state import BotKey, StateError
from bridges.terminal.chat import CHAT
from bridges.terminal.script import OutputLost, ScriptChannel, as_json, as_text, lines_of, none, only
from commands.model import Outcome
from commands.sessions import is_session_id
from harness_client.embedded import EmbeddedError
from harness_client.errors import HarnessError
from harness_client.types import SessionId
from i18n import Key, Language, Words

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

LONGEST_LOG: Final = 5_000_000
"""Bytes of the chat's log at which a new one is begun; the one before is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for on the command line."""

    once: str | None = None
    session: str | None = None
    harness: str | None = None
    demo_model: bool = False
    language: str | None = None
    as_json: bool = False
    config: Path | None = None


class _Misused(Exception):
    """Options that cannot be; ``args[0]`` says why."""


class TerminalChannel(Channel, Protocol):
    """What both kinds of terminal channels are."""

    def settled(self, event: EventId) -> None:
        """Note that a message's reply is out."""


def run(options: Options) -> int:
    """Run the chat and return its exit code: 0, 1 for a failure that was told, 2 for options and configuration."""
    try:
        config = _configuration(options)
    except ConfigError as error:
        click.echo(Words(spoken(environment(), options.language))(error.key, **error.values), err=True)
        return MISUSED
    words = Words(config.language)
    try:
        _check(options, words)
    except _Misused as error:
        click.echo(str(error), err=True)
        return MISUSED
    redact = Redactor(config.secrets())
    _leave_as_by_ctrl_c(signal.SIGTERM, signal.SIGHUP)
    try:
        with _log(options, config) as log, logging_to(log, redact, as_json=config.log.format == "json"):
            return asyncio.run(_chat(options, config, words, redact))
    except KeyboardInterrupt:
        return INTERRUPTED
    except OutputLost as error:
        click.echo(words(Key.START_NO_OUTPUT, reason=error.strerror), err=True)
        return FAILED
    except OSError as error:
        path = error.filename or config.state.path
        click.echo(words(Key.STATE_FAILED, path=path, reason=type(error).__name__), err=True)
        return FAILED


def _leave_as_by_ctrl_c(*numbers: signal.Signals) -> None:
    """Let each signal end the chat in order, its terminal restored; one that our parent ignores (nohup) stays so."""
    # What a script starts in the background begins with this one ignored, and then the others would do nothing here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: signal.raise_signal(signal.SIGINT))


def _configuration(options: Options) -> Config:
    """Read the configuration, the command line's word above it. Raises ConfigError."""
    config = load(options.config, environment())
    if options.language:
        config = msgspec.structs.replace(config, language=Language(options.language))
    workspace = config.harness.workspace
    try:
        if options.demo_model:
            harness = Harness(mode=HarnessMode.EMBEDDED, workspace=workspace)
            config = msgspec.structs.replace(config, harness=harness)
        elif options.harness is not None:
            harness = Harness(mode=HarnessMode.HTTP, url=Secret(options.harness), workspace=workspace)
            config = msgspec.structs.replace(config, harness=harness)
    except Wrong as error:
        raise ConfigError("--harness", error.key, expected="http://HOST:PORT/?token=…") from None
    return config


def _check(options: Options, words: Words) -> None:
    if options.demo_model and options.harness is not None:
        raise _Misused(words(Key.START_TWO_HOSTS))
    if options.session is not None and not is_session_id(options.session):
        raise _Misused(words(Key.START_BAD_SESSION))


def _interactive(options: Options) -> bool:
    return options.once is None and not options.as_json and _is_terminal(sys.stdin) and _is_terminal(sys.stdout)


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at the other end; None stands for a stream that was closed before our start."""
    return stream is not None and stream.isatty()


@contextmanager
def _log(options: Options, config: Config) -> Iterator[TextIO]:
    """Open the log: standard error for scripts, a file beside the state where a person looks at the screen."""
    if not _interactive(options):
        yield sys.stderr
        return
    path = config.state.path.parent / "chat.log"
    private_file.folder(path.parent)
    if path.exists() and path.stat().st_size > LONGEST_LOG:
        path.replace(path.with_suffix(".log.old"))
    path.touch(0o600)
    with path.open("a", encoding="utf-8") as file:
        yield file


async def _chat(options: Options, config: Config, words: Words, redact: Redactor) -> int:
    address = config.harness.address
    try:
        async with open_parts(config, environment(), redact, demo_model=options.demo_model) as parts:
            return await _converse(options, parts, words)
    except (StateError, HarnessError, EmbeddedError) as error:
        click.echo(worded(error, words, address=address.base if address else "127.0.0.1"), err=True)
        return FAILED


async def _converse(options: Options, parts: Parts, words: Words) -> int:
    if options.session is not None:
        await _bind(parts, SessionId(options.session))
    await _introduce(options, parts, words)
    outcomes: set[Outcome] = set()
    channel = _channel(options, words)

    def settled(event: EventId, outcome: Outcome) -> None:
        outcomes.add(outcome)
        channel.settled(event)

    await converse(
        parts,
        BotKey(CHAT.channel, CHAT.bot),
        channel,
        Policy(lambda: TERMINAL, tells_trouble=False),
        settled=settled,
        inherit=options.once is None,
    )
    return FAILED if Outcome.FAILED in outcomes and not _interactive(options) else OK


def _channel(options: Options, words: Words) -> TerminalChannel:
    if _interactive(options):
        from bridges.terminal.screen import ScreenChannel  # noqa: PLC0415 - costs memory that scripts save

        return ScreenChannel(mint, lambda error: worded(error, words))
    if sys.stdout is None:  # closed before our start: its number may be that of another file by now
        raise OutputLost(errno.EBADF, os.strerror(errno.EBADF))
    if options.once is not None:
        lines = only(options.once)
    else:
        lines = lines_of(sys.stdin.fileno()) if sys.stdin is not None else none()
    printer = as_text if options.once is not None and not options.as_json else as_json
    return ScriptChannel(lines, sys.stdout.fileno(), printer, mint)


async def _bind(parts: Parts, session: SessionId) -> None:
    """Bind the chat; whether the session exists is for the first command that needs it to say."""
    binding = await parts.state.chats.get(CHAT)
    if binding.session != session:
        await parts.state.chats.bind(CHAT, session, expected=binding)


async def _introduce(options: Options, parts: Parts, words: Words) -> None:
    """Say which host and session this chat talks to; beside the replies, where a script reads those."""
    health = await parts.harness.health()
    session = (await parts.state.chats.get(CHAT)).session
    header = words(
        Key.TERMINAL_HEADER,
        generation=health.generation,
        version=health.version or "",
        address=parts.harness.address.base,
        session=session or words(Key.TERMINAL_UNBOUND),
    )
    notes = [" ".join(header.split())]
    if parts.state.set_aside is not None:
        notes.append(words(Key.STATE_SET_ASIDE, path=parts.state.set_aside))
    if options.demo_model:
        notes.append(words(Key.TERMINAL_DEMO))
    if _interactive(options):
        notes.append(words(Key.TERMINAL_HINT))
    click.echo("\n".join(notes), err=not _interactive(options))

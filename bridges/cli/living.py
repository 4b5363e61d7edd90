"""Whether the program lives, by the notes it makes of its bots. Neither locks nor changes the state file."""

from __future__ import annotations

from pathlib import Path

import click

from bridges.cli.pairing import FAILED, MISUSED, OK
from bridges.cli.problems import worded
from bridges.cli.spoken import spoken
from bridges.config import load
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.noting import STALE_SECONDS, is_fresh
from bridges.state import StateError
from bridges.state.file import last_note
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Words


def look(path: Path | None) -> int:
    """Print what the notes say and return the exit code: 0, 1 when nothing lives, 2 for the configuration."""
    try:
        config = load(path, environment())
    except ConfigError as error:
        click.echo(Words(spoken(environment()))(error.key, **error.values), err=True)
        return MISUSED
    words, now = Words(config.language), SYSTEM_CLOCK.time()
    try:
        noted = last_note(config.state.path, now + STALE_SECONDS) if config.state.path.exists() else None
    except StateError as error:
        click.echo(worded(error, words), err=True)
        return FAILED
    if noted is None or not is_fresh(noted, now):
        click.echo(words(Key.HEALTH_SILENT), err=True)
        return FAILED
    click.echo(words(Key.HEALTH_ALIVE, seconds=max(0, round(now - noted))))
    return OK

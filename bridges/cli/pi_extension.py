"""``harness-im history install-pi``: puts the extension where Pi finds it, with the way back to this program."""

from __future__ import annotations

import json
import os
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import click

from bridges.archives import agent_dir
from bridges.cli.spoken import spoken
from bridges.environment import environment
from i18n import Key, Words

NAME: Final = "pbot-history.ts"
_COMMAND: Final = '["harness-im"]'
"""How the extension calls us where nothing is installed; replaced by what is."""


def extension() -> str:
    """Return the extension's source; it calls this very program, whatever Pi's PATH is."""
    source = resources.files("archive").joinpath("pi_extension", NAME).read_text("utf-8")
    return source.replace(_COMMAND, json.dumps([sys.executable, "-m", "bridges.cli"]), 1)


def install(language: str | None) -> int:
    """Install or renew it; return the exit code."""
    words = Words(spoken(environment(), language))
    path = agent_dir(environment()) / "extensions" / NAME
    try:
        _write(path, extension())
    except OSError as error:
        click.echo(words(Key.PAST_NOT_INSTALLED, path=path, reason=type(error).__name__), err=True)
        return 1
    click.echo(words(Key.PAST_INSTALLED, path=path))
    return 0


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(text, "utf-8")
    unfinished.replace(path)

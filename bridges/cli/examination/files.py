"""Configuration, secrets and state: what is there, and who else may read it."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bridges.cli.examination.finding import Check, Finding, Level
from bridges.cli.problems import worded
from bridges.config import Config, Weixin, WhatsApp
from bridges.secret import Places, Secret, placed_secrets
from bridges.state import StateError
from bridges.state.file import inspect
from bridges.text.whatsapp_sidecar import kept as device
from bridges.weixin.account import NAME as ACCOUNTS
from i18n import Key, Words

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def configuration(config: Config, file: Path, words: Words) -> Finding:
    """Look at the file: is it there, and may others read it though it holds secrets."""
    if not file.exists():
        return Finding(Check.CONFIGURATION, str(file), Level.NOTE, words(Key.DOCTOR_NO_FILE))
    text = file.read_text("utf-8")
    if _open_to_others(file) and any(secret in text for secret in config.secrets()):
        return Finding(Check.CONFIGURATION, str(file), Level.WRONG, words(Key.DOCTOR_OTHERS_READ, path=file))
    return Finding(Check.CONFIGURATION, str(file), Level.OK, words(Key.DOCTOR_CONFIGURED, count=len(config.bots)))


def secrets(config: Config, words: Words) -> Iterator[Finding]:
    """Say of every secret that it was found, and how long it is: a cut copy is a common fault."""
    for path, secret in placed_secrets(config):
        yield Finding(Check.SECRET, path, Level.OK, words(Key.DOCTOR_SECRET, shown=masked(secret)))


def masked(secret: Secret) -> str:
    """Return dots and the number of characters."""
    return f"•••• ({len(secret.reveal())})"


def secret_files(file: Path, places: Places, words: Words) -> Iterator[Finding]:
    """Name the files that secrets come from and that others may read."""
    tree = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    for path in map(places.path, dict.fromkeys(_named_files(tree))):
        if _open_to_others(path):
            yield Finding(Check.SECRET, str(path), Level.WRONG, words(Key.DOCTOR_OTHERS_READ, path=path))


def stored_logins(config: Config, words: Words) -> Iterator[Finding]:
    """Name what the program keeps logins in, beside the state, and that others may read."""
    data = config.state.path.absolute().parent
    kept = [data / ACCOUNTS] if any(isinstance(bot, Weixin) for bot in config.bots) else []
    kept += [device(data, bot.name) for bot in config.bots if isinstance(bot, WhatsApp) and not bot.cloud]
    for path in kept:
        if path.exists() and _open_to_others(path):
            yield Finding(Check.SECRET, str(path), Level.WRONG, words(Key.DOCTOR_OTHERS_READ, path=path))


def _named_files(node: object) -> Iterator[str]:
    match node:
        case {"file": str(name), **rest} if not rest:
            yield name
        case Mapping():
            for child in node.values():
                yield from _named_files(child)
        case list():
            for child in node:
                yield from _named_files(child)
        case _:
            return


def _open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & _OTHERS)


def state(path: Path, words: Words) -> Finding:
    """Look at the state file without changing it."""
    return Finding(Check.STATE, str(path), *_state(path, words))


def _state(path: Path, words: Words) -> tuple[Level, str]:
    try:
        others = _open_to_others(path)
        inspect(path)
    except FileNotFoundError:
        if not os.access(_nearest(path), os.W_OK):
            return Level.WRONG, words(Key.STATE_READ_ONLY, path=path)
        return Level.NOTE, words(Key.DOCTOR_NO_STATE)
    except StateError as error:
        return Level.WRONG, worded(error, words)
    except OSError as error:
        return Level.WRONG, words(Key.STATE_FAILED, path=path, reason=type(error).__name__)
    if others:
        return Level.WRONG, words(Key.DOCTOR_OTHERS_READ, path=path)
    return Level.OK, words(Key.DOCTOR_STATE)


def _nearest(path: Path) -> Path:
    """Return the folder that is there already, of those on the way to a file."""
    return next(folder for folder in path.absolute().parents if folder.is_dir())

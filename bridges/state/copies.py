"""The copy of the state file from before its last upgrade: the way back to an older program."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import Final

PRIVATE_FILE: Final = 0o600


def copy_of(path: Path, number: int) -> Path:
    """Return where the copy of the file is that has seen ``number`` upgrades."""
    return path.with_name(f"{path.name}.v{number}")


def newest_copy(path: Path, number: int) -> Path | None:
    """Return the newest copy that a program can read which knows ``number`` upgrades."""
    return next((copy for seen in range(number, 0, -1) if (copy := copy_of(path, seen)).is_file()), None)


def keep_copy(connection: sqlite3.Connection, path: Path, number: int) -> None:
    """Put a copy beside the file, whole or not at all. Raises OSError, sqlite3.Error."""
    copy = copy_of(path, number)
    beside = copy.with_name(f"{copy.name}.part")
    beside.unlink(missing_ok=True)  # of a process that was killed
    os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    with contextlib.closing(sqlite3.connect(beside)) as target:
        target.execute("PRAGMA journal_mode = OFF")  # nothing to go back to, and nothing left beside it by a kill
        connection.backup(target)
    with beside.open("rb+") as file:
        os.fsync(file.fileno())
    beside.replace(copy)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def drop_copies(path: Path, but: int) -> None:
    """Remove the copies that are older than the one of ``but`` upgrades. Raises OSError."""
    pattern = re.compile(re.escape(path.name) + r"\.v\d+(\.part)?")
    for entry in path.parent.iterdir():
        if pattern.fullmatch(entry.name) and entry != copy_of(path, but):
            entry.unlink(missing_ok=True)

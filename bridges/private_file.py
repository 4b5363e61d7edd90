"""Files and folders for this user alone; files whole at every moment: written beside, flushed, then put in place."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, which whoever may write there could take away from us.

    Python's own ``parents=True`` leaves those to the umask. What is there already stays as it is. Raises OSError.
    """
    if not path.parent.exists():
        folder(path.parent)
    path.mkdir(0o700, exist_ok=True)


def write(path: Path, data: bytes, *, owner: os.stat_result | None = None) -> None:
    """Put ``data`` in the place of whatever is at ``path``, readable and writable by its owner alone.

    A symbolic link at ``path`` is replaced, not followed. ``owner`` is whose it becomes, if not ours. Raises OSError.
    """
    _place(path, data, owner, Path.replace)
    _sync(path.parent)


def create(path: Path, data: bytes, *, owner: os.stat_result | None = None) -> None:
    """As :func:`write`, but raises FileExistsError when anything is at ``path``."""
    _place(path, data, owner, lambda beside, place: place.hardlink_to(beside))
    try:
        _sync(path.parent)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _place(path: Path, data: bytes, owner: os.stat_result | None, put: Callable[[Path, Path], object]) -> None:
    folder(path.parent)
    beside = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    try:
        with os.fdopen(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            if owner is not None and (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        put(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make the names in a folder last."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

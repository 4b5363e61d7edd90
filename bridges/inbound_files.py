"""Files a person sent, put into the workspace of their session: 0600, under safe names, never outside of it.

``WORKSPACE/.harness-im/inbound/NAME/01-plan.pdf``. Each folder on the way is opened without following links, relative
to the one before, so that nothing an agent leaves in the workspace can lead a file elsewhere. Blocking.
"""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

ROOT: Final = (".harness-im", "inbound")
LONGEST_NAME: Final = 120
"""Bytes of a name, its number aside; file systems hold 255."""

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_KEPT: Final = frozenset(" ._-()")


def store(workspace: str, folder: str, files: Sequence[tuple[str, bytes]]) -> tuple[str, ...]:
    """Write all files or none; return their paths from the workspace on. Raises OSError.

    ``folder`` is a name of ours that was never used in this workspace before.
    """
    with _opened(workspace, *ROOT) as inbound:
        _ignore(inbound)
        os.mkdir(folder, _FOLDER_MODE, dir_fd=inbound)
        try:
            with _entered(inbound, folder) as place:
                names = [f"{number:02}-{safe_name(name)}" for number, (name, _) in enumerate(files, 1)]
                for name, (_, data) in zip(names, files, strict=True):
                    _write(place, name, data)
        except BaseException:
            _empty(inbound, folder)
            raise
    return tuple("/".join((*ROOT, folder, name)) for name in names)


def discard(workspace: str, folder: str) -> None:
    """Remove what :func:`store` wrote; what is gone already is no error. Raises OSError."""
    with contextlib.suppress(FileNotFoundError), _opened(workspace, *ROOT) as inbound:
        _empty(inbound, folder)


def safe_name(name: str) -> str:
    """Return the last part of a name a person's device gave, with nothing in it but letters, digits and ``._-()``."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(char if unicodedata.category(char)[0] in "LN" or char in _KEPT else "_" for char in last)
    kept = unicodedata.normalize("NFC", kept).strip(" .")
    stem, dot, ending = kept.rpartition(".")
    if not stem or len(ending.encode()) > 16:
        stem, dot, ending = kept, "", ""
    room = LONGEST_NAME - len(f"{dot}{ending}".encode())
    return (stem.encode()[:room].decode(errors="ignore").rstrip(" .") or "file") + dot + ending


@contextmanager
def _opened(workspace: str, *folders: str) -> Iterator[int]:
    """Open a folder below the workspace, making what is missing of the way."""
    with contextlib.ExitStack() as stack:
        place = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, place)
        for folder in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, _FOLDER_MODE, dir_fd=place)
            place = stack.enter_context(_entered(place, folder))
        yield place


@contextmanager
def _entered(place: int, folder: str) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    inner = os.open(folder, flags, dir_fd=place)
    try:
        yield inner
    finally:
        os.close(inner)


def _write(place: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, _FILE_MODE, dir_fd=place), "wb") as file:
        file.write(data)


def _ignore(place: int) -> None:
    """Keep what people send out of the workspace's version control."""
    with contextlib.suppress(FileExistsError):
        _write(place, ".gitignore", b"*\n")


def _empty(inbound: int, folder: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        with _entered(inbound, folder) as place:
            for name in os.listdir(place):  # noqa: PTH208 - a descriptor has no Path
                os.unlink(name, dir_fd=place)
        os.rmdir(folder, dir_fd=inbound)

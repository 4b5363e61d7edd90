"""Everything is written at the end: first the secrets, each in a new file, then the configuration, in one move.

After ``kill -9`` between any two steps the configuration is the old one or the new one; what may be left over is a
secret's file that nothing names.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridges import private_file
from bridges.cli.setup.draft import Draft, Given, Hidden, Reference, value_of
from bridges.cli.setup.toml import extended, written
from bridges.config import MAX_BYTES
from i18n import Language

FOLDER: Final = "secrets"
"""Beside the configuration."""

MOST_TAKEN: Final = 1_000
"""Files that may have a secret's name before it is given up."""

_ENDINGS: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Changed(Exception):
    """The file is not what it was when it was read."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A configuration that is there: what it says, and whose it is."""

    data: bytes
    status: os.stat_result

    @property
    def open_to_others(self) -> bool:
        """Whether anybody else may read it."""
        return bool(self.status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))

    @classmethod
    def read(cls, path: Path) -> Existing | None:
        """Read a file, following links; None when there is none. Raises OSError."""
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError("not a file")
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        if len(data) > MAX_BYTES:
            raise OSError(f"> {MAX_BYTES} bytes")
        return cls(data, status)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written to ``path``. ``old`` is what is there now, ``extends`` whether it stays."""

    path: Path
    old: Existing | None
    extends: bool
    language: Language
    harness: Given | None
    bots: Sequence[Draft]


def save(plan: Plan) -> tuple[Path, ...]:
    """Write everything, or nothing; return the files of the secrets. No signal ends the program in between.

    Raises Changed, toml.CannotExtend, UnicodeError, OSError.
    """
    target = Path(os.path.realpath(plan.path))  # a link to the file stays one
    owner = plan.old.status if plan.old else None
    made: list[Path] = []
    data = b""
    private_file.folder(target.parent)
    with _undisturbed(), _alone(target.parent):
        try:
            harness, bots = _with_files(plan, _Secrets(target.parent / FOLDER, owner, made))
            data = _text(plan, harness, bots).encode()
            _commit(plan, target, data)
        except BaseException:
            if not data or not _holds(target, data):
                for path in made:
                    path.unlink(missing_ok=True)
            raise
    return tuple(made)


def _commit(plan: Plan, target: Path, data: bytes) -> None:
    if plan.old is None:
        try:
            private_file.create(target, data)
        except FileExistsError:
            raise Changed from None
        return
    now = Existing.read(target)
    if now is None or now.data != plan.old.data:
        raise Changed
    private_file.write(target, data, owner=plan.old.status)


def _text(plan: Plan, harness: Given | None, bots: Sequence[Draft]) -> str:
    if plan.extends and plan.old is not None:
        text = plan.old.data.decode()
        for bot in bots:
            text = extended(text, bot.text())
        return text
    parts = [written("", {"language": plan.language.value}), *(bot.text() for bot in bots)]
    if harness is not None:
        parts.insert(1, written("[harness]", {"url": value_of(harness)}))
    return "\n".join(parts)


class _Secrets:
    """Where secrets go: each into a file that was not there before."""

    def __init__(self, folder: Path, owner: os.stat_result | None, made: list[Path]) -> None:
        self._folder = folder
        self._owner = owner
        self._made = made

    def keep(self, name: str, secret: str) -> Path:
        """Write a secret to a file of that name, or of one like it; return its path. Raises OSError."""
        self._open()
        data = secret.encode()
        for number in itertools.islice(itertools.count(1), MOST_TAKEN):
            path = self._folder / (name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                private_file.create(path, data, owner=self._owner)
                self._made.append(path)
                return path
        raise FileExistsError(name)

    def _open(self) -> None:
        if self._folder.exists():
            return
        private_file.folder(self._folder)
        if self._owner is not None and self._owner.st_uid != os.geteuid():
            os.chown(self._folder, self._owner.st_uid, self._owner.st_gid)


def _with_files(plan: Plan, secrets: _Secrets) -> tuple[Given | None, list[Draft]]:
    """Return Harness and bots with every hidden value in a file."""
    harness, bots = plan.harness, list(plan.bots)
    if isinstance(harness, Hidden):
        harness = Reference("file", str(secrets.keep("harness-url", harness.text)))
    for index, bot in enumerate(bots):
        for key, value in bot.values.items():
            if isinstance(value, Hidden):
                bots[index] = bots[index].kept(key, secrets.keep(f"{bot.name}-{key}", value.text))
    return harness, bots


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, also a pipe that nobody writes to."""
    return os.open(path, flags | os.O_NONBLOCK)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one program at a time write here. Raises Changed when another does."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Changed from None
        yield
    finally:
        os.close(opened)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals that end the program wait until this is through."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""Values that must not be shown, and the three places they come from."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

MAX_BYTES: Final = 64 * 1024
"""A secret file larger than this is the wrong file."""

CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
"""Where a service supervisor puts credentials: a relative ``{ file = }`` is looked for there first."""


class NoFile(OSError):
    """There is something, but no regular file."""


def read_file(path: Path, limit: int) -> bytes:
    """Read a file, ``limit`` + 1 bytes of it at most: more tells that it is too big.

    Raises OSError, NoFile where a pipe or a device might keep us waiting for ever, ValueError for a NUL in the path.
    """
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123 - it is open
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NoFile(str(path))
        return file.read(limit + 1)


class Secret:
    """A string that shows itself only to :meth:`reveal`: not in ``repr``, ``str`` or an f-string."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value; the result must go nowhere but to the service it is for."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(…)"


class SecretMissing(ValueError):
    """The place named in the configuration holds no secret. ``place`` is ``$NAME`` or a path, never a value."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


@dataclass(frozen=True, slots=True)
class Places:
    """Where secrets are looked up: an environment, and the folder of the configuration file."""

    environ: Mapping[str, str]
    folder: Path

    def find(self, source: object) -> str:
        """Resolve a string, ``{ env = "NAME" }`` or ``{ file = "PATH" }``.

        Raises SecretMissing when nothing is there, TypeError when ``source`` is none of the three.
        """
        match source:
            case str() if source:
                return source
            case {"env": str(name), **rest} if name and not rest:
                return self._variable(name)
            case {"file": str(name), **rest} if name and not rest:
                return self._file(name)
            case _:
                raise TypeError(source.__class__.__name__)

    def absolute(self, path: str) -> Path:
        """Return ``path`` from the configuration's folder; ``~`` is the home directory. Raises ValueError."""
        try:
            return self.folder / Path(path).expanduser()
        except RuntimeError as error:  # ~somebody-unknown
            raise ValueError(path) from error

    def _variable(self, name: str) -> str:
        value = self.environ.get(name, "").strip()
        if not value:
            raise SecretMissing(f"${name}")
        return value

    def _file(self, name: str) -> str:
        path = name
        try:
            path = str(self.path(name))
            data = read_file(Path(path), MAX_BYTES)
            value = data.decode().strip()
        except SecretMissing:
            raise
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
            raise SecretMissing(path) from error
        if not value or len(data) > MAX_BYTES:
            raise SecretMissing(path)
        return value

    def path(self, name: str) -> Path:
        """Return where ``{ file = name }`` is. Raises SecretMissing, ValueError."""
        given = Path(name.removeprefix(f"${CREDENTIALS}/"))
        credentials = self.environ.get(CREDENTIALS)
        if credentials and not given.is_absolute():
            return Path(credentials) / given
        if name.startswith(f"${CREDENTIALS}/"):
            raise SecretMissing(f"${CREDENTIALS}")
        return self.absolute(name)


def secrets_in(node: object) -> Iterator[Secret]:
    """Yield every secret in a configuration."""
    for _, secret in placed_secrets(node):
        yield secret


def placed_secrets(node: object, path: str = "") -> Iterator[tuple[str, Secret]]:
    """Yield every secret in a configuration, each with the path of its key, such as ``bot[0].token``."""
    if isinstance(node, Secret):
        yield path, node
    elif isinstance(node, msgspec.Struct):
        for field, name in zip(node.__struct_fields__, node.__struct_encode_fields__, strict=True):
            yield from placed_secrets(getattr(node, field), f"{path}.{name}" if path else name)
    elif isinstance(node, tuple):
        for index, item in enumerate(node):
            yield from placed_secrets(item, f"{path}[{index}]")

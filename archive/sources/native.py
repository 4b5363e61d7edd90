"""What a source of native sessions offers to a refresh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from archive.model import Code, Host, Notice, Scan, Stamp
from harness_client.types import SessionId


class Found(Protocol):
    """A session found, not yet read. Its stamp was taken when it was found."""

    @property
    def session(self) -> SessionId:
        """The id its header gives."""

    @property
    def stamp(self) -> Stamp:
        """The state it was found in."""


class NativeSession(Found, Protocol):
    """A session found on this machine."""

    def read(self) -> Scan:
        """Read it whole. Raises OSError when that fails."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The sessions of one workspace, and what stood in the way of finding more."""

    sessions: Sequence[NativeSession]
    notices: tuple[Notice, ...]


class NativeSource(Protocol):
    """A local host's home."""

    @property
    def host(self) -> Host:
        """Which host this is."""

    def discover(self, workspace: Path) -> Discovery:
        """Find the workspace's sessions by their headers alone. Never raises OSError: it becomes a notice."""


def children(directory: Path, code: Code, notices: list[Notice]) -> list[Path]:
    """List a directory by name. One that is not there is empty; one that may not be read is told of by ``code``."""
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        notices.append(Notice(code, directory.name))
        return []


def same_directory(path: str, workspace: Path) -> bool:
    """Whether a path from a header names the workspace, symlinks resolved; what is no path at all names nothing."""
    try:
        return bool(path) and Path(path).resolve() == workspace.resolve()
    except (OSError, ValueError, RuntimeError):  # a loop of links, or a character no path can hold
        return False

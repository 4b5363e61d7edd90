"""Where a workspace's Pi sessions may lie (facts SESSIONS 1.2). Places only; the header of each file decides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from archive.model import Code, Notice
from archive.opening import open_file
from harness_client.types import SessionId


@dataclass(frozen=True, slots=True)
class PiHome:
    """A local Pi. ``session_dir`` is the override in force, from an option or the environment, if any.

    ``current`` is the file of the running session; ``experts`` are sessions the workspace manages elsewhere, by id.
    Any of these files may not exist yet.
    """

    agent_dir: Path
    session_dir: Path | None = None
    current: Path | None = None
    experts: tuple[tuple[SessionId, Path], ...] = ()


def default_directory(agent_dir: Path, cwd: str) -> Path:
    """Return the directory Pi computes from a cwd. The name is lossy: ``/a/b-c`` and ``/a-b/c`` share it."""
    name = re.sub(r"[/:\\]", "-", cwd.removeprefix("/"))
    return agent_dir / "sessions" / f"--{name}--"


def directories(home: PiHome, workspace: Path, notices: list[Notice]) -> list[Path]:
    """Return every directory that may hold sessions of the workspace, existing or not, without repeats."""
    places = [default_directory(home.agent_dir, str(path)) for path in (workspace.absolute(), workspace.resolve())]
    if home.session_dir is not None:
        places.append(home.session_dir)
    if home.current is not None:
        places.append(home.current.parent)
    for settings in (workspace / ".pi" / "settings.json", home.agent_dir / "settings.json"):
        named = _session_dir(settings, notices)
        if named is not None:
            places.append(workspace / named)
    return list(dict.fromkeys(places))


class _Settings(msgspec.Struct, rename="camel"):
    session_dir: str | None = None


def _session_dir(file: Path, notices: list[Notice]) -> Path | None:
    try:
        with open_file(file) as settings:
            named = msgspec.json.decode(settings.read(), type=_Settings).session_dir
        if named and "\0" in named:
            raise ValueError(file.name)
        return Path(named).expanduser() if named else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RuntimeError):  # unreadable, no JSON of this shape, or nobody's home
        notices.append(Notice(Code.SETTINGS_INVALID, file.name))
        return None

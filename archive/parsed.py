"""The archive files of a folder as they were last parsed; a file is parsed again only when it changed."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from archive.model import Code, Host, NodeId, SessionArchive
from archive.names import root_name
from archive.opening import open_file
from archive.schema import Unreadable, decode
from harness_client.types import SessionId

_SUFFIX = ".json"
_NEVER = (0, 0, 0, 0)
"""The stamp of no file."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """One file: its archive, or why it has none. ``stamp`` is its device, inode, size and time of change."""

    stamp: tuple[int, int, int, int]
    content: SessionArchive | Code
    old_fields: bool
    """It carries fields that only old indexes had, or a path."""


class ParsedFiles:
    """Files by the stem of their names. Safe to use from several threads."""

    def __init__(self, path: Path, host: Host) -> None:
        self._path = path
        self._host = host
        self._files: dict[str, ParsedFile] = {}
        self._roots: dict[SessionId, NodeId] = {}
        self._folded: dict[str, str] = {}
        self._lock = threading.RLock()

    def __bool__(self) -> bool:
        return bool(self._files)

    def path(self, stem: str) -> Path:
        """Return where the file of that name lies."""
        return self._path / f"{stem}{_SUFFIX}"

    def known(self) -> list[ParsedFile]:
        """Return every file as it was last read."""
        with self._lock:
            return list(self._files.values())

    def read_all(self) -> dict[str, ParsedFile]:
        """Read the whole folder, by name. A folder that does not exist is empty."""
        with self._lock:
            stems = self._stems()
            for gone in self._files.keys() - set(stems):
                self._forget(gone)
            read = {stem: self.read(stem) for stem in stems}
            return {stem: file for stem, file in read.items() if file is not None}

    def read(self, stem: str) -> ParsedFile | None:
        """Read one file, from memory if it is unchanged; None when there is none."""
        with self._lock:
            try:
                with open_file(self.path(stem)) as file:
                    stat = os.fstat(file.fileno())
                    stamp = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
                    known = self._files.get(stem)
                    if known is not None and known.stamp == stamp:
                        return known
                    data = file.read()
            except FileNotFoundError:
                self._forget(stem)
                return None
            except OSError:
                return self._keep(stem, ParsedFile(_NEVER, Code.UNREADABLE, old_fields=False))
            return self._keep(stem, self._parse(data, stem, stamp))

    def root(self, session: SessionId) -> NodeId:
        """Return the name a session's archive has, or shall have, going by what was read so far."""
        with self._lock:
            return self._roots.get(session) or root_name(self._host, session, self._folded)

    def _stems(self) -> list[str]:
        try:
            names = [path.name for path in self._path.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX) and name[0] != ".")

    def _parse(self, data: bytes, stem: str, stamp: tuple[int, int, int, int]) -> ParsedFile:
        try:
            decoded = decode(data, stem=stem, host=self._host)
        except Unreadable as error:
            return ParsedFile(stamp, error.code, old_fields=False)
        return ParsedFile(stamp, decoded.archive, old_fields=decoded.file is not None or decoded.cwd is not None)

    def _keep(self, stem: str, file: ParsedFile) -> ParsedFile:
        self._forget(stem)
        self._files[stem] = file
        self._folded[stem.casefold()] = stem
        if isinstance(file.content, SessionArchive):
            self._roots[file.content.session] = file.content.id
        return file

    def _forget(self, stem: str) -> None:
        file = self._files.pop(stem, None)
        self._folded.pop(stem.casefold(), None)
        if file is not None and isinstance(file.content, SessionArchive):
            self._roots.pop(file.content.session, None)

"""Both sources of a workspace side by side, ready to be searched; what did not change since is used again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from archive.answers import Warned
from archive.files import ArchiveFolder
from archive.forks import shared_pairs
from archive.model import Host, NodeId, Notice, Parentage
from archive.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Library:
    """The archives of a workspace at one moment, by host and root id, and what could not be read."""

    shelves: Mapping[tuple[Host, NodeId], Shelf]
    notices: tuple[Notice, ...]
    _shared: dict[NodeId, frozenset[NodeId]] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """The notices, as answers give them."""
        return warned(self.notices)

    def with_notices(self, notices: tuple[Notice, ...]) -> Library:
        """Return the library with more warnings, such as those of the scan before."""
        return replace(self, notices=(*self.notices, *notices))

    def shared(self, shelf: Shelf, name: NodeId) -> bool:
        """Whether a fork copied this pair from the session it came from."""
        root = shelf.archive.id
        if root not in self._shared:
            self._shared[root] = self._copies(shelf)
        return name in self._shared[root]

    def _copies(self, shelf: Shelf) -> frozenset[NodeId]:
        fork = shelf.stored
        if fork.lineage.origin is not Parentage.FORK:
            return frozenset()
        own_host = (each.stored for (host, _), each in self.shelves.items() if host is fork.host)
        parent = next((each for each in own_host if each.session == fork.lineage.parent), None)
        return frozenset() if parent is None else shared_pairs(fork, parent)


class Shelves:
    """Keeps shelves for as long as their archives stay as they are. Safe to use from several threads."""

    def __init__(self, folders: Mapping[Host, ArchiveFolder]) -> None:
        self._folders = folders
        self._kept: dict[tuple[Host, NodeId], Shelf] = {}
        self._lock = threading.Lock()

    def open(self) -> Library:
        """Read both sources as they stand, whatever is damaged or missing."""
        with self._lock:
            shelves: dict[tuple[Host, NodeId], Shelf] = {}
            notices: list[Notice] = []
            for host, folder in self._folders.items():
                contents = folder.load()
                notices += contents.notices
                for root, archive in contents.archives.items():
                    kept = self._kept.get((host, root))
                    known = kept is not None and kept.stored is archive
                    shelves[host, root] = kept if kept is not None and known else Shelf(archive)
            self._kept = shelves
            return Library(shelves, tuple(notices))


def warned(notices: tuple[Notice, ...]) -> tuple[Warned, ...]:
    """Show warnings as answers give them, each once."""
    unique = dict.fromkeys(notices)
    return tuple(Warned(code=notice.code, subject=notice.subject, line=notice.line) for notice in unique)

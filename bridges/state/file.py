"""Opening the state file: lock, permissions, upgrades, and putting a broken one aside. Blocking; runs on a thread."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import filelock

from bridges import private_file
from bridges.state.copies import PRIVATE_FILE, drop_copies, keep_copy, newest_copy
from bridges.state.model import Link, StateError, Trouble
from bridges.state.upgrades import Foreign, Newer, is_current, upgrade, version

LOCK_SECONDS: Final = 1.0
"""How long a start waits for an operator's command to be through; a program that runs keeps the lock."""

BUSY_SECONDS: Final = 5.0
"""How long a write waits for the operator's ``pair`` command, the only other writer."""

_TROUBLES: Final = {
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: Trouble.FULL,  # no room for the file that SQLite keeps beside it
    sqlite3.SQLITE_READONLY: Trouble.READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: Trouble.READ_ONLY,
    sqlite3.SQLITE_PERM: Trouble.READ_ONLY,
    sqlite3.SQLITE_BUSY: Trouble.BUSY,
    sqlite3.SQLITE_LOCKED: Trouble.BUSY,
    sqlite3.SQLITE_CORRUPT: Trouble.BROKEN,
    sqlite3.SQLITE_NOTADB: Trouble.BROKEN,
}
_ERRNOS: Final = {
    errno.ENOSPC: Trouble.FULL,
    errno.EDQUOT: Trouble.FULL,
    errno.EACCES: Trouble.READ_ONLY,
    errno.EPERM: Trouble.READ_ONLY,
    errno.EROFS: Trouble.READ_ONLY,
}


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A state file ready for use. ``set_aside`` is where a broken predecessor was put."""

    connection: sqlite3.Connection
    lock: filelock.BaseFileLock | None
    set_aside: Path | None

    def close(self) -> None:
        """Close the file, then let the next process in."""
        self.connection.close()
        if self.lock is not None:
            self.lock.release()


def trouble(path: Path, error: sqlite3.Error | OSError) -> StateError:
    """Put an error of SQLite or the system into ours."""
    if isinstance(error, OSError):
        return StateError(_ERRNOS.get(error.errno or 0, Trouble.FAILED), path, type(error).__name__)
    # The low byte is the class of an extended code; a ProgrammingError of the module itself has none.
    code = getattr(error, "sqlite_errorcode", 0)
    found = _TROUBLES.get(code) or _TROUBLES.get(code & 0xFF, Trouble.FAILED)
    return StateError(found, path, getattr(error, "sqlite_errorname", "sqlite3"))


def open_file(path: Path, *, alongside: bool) -> OpenFile:
    """Open or create the file. Raises StateError.

    One process holds the lock. With ``alongside`` a second one may join it for single transactions, which SQLite
    keeps apart; it changes nothing about the file itself, and puts no broken one aside: whoever starts next is to hear
    of that.
    """
    with _worded(path):
        private_file.folder(path.parent)
        lock = _lock(path, seconds=0.0 if alongside else LOCK_SECONDS)
    if lock is None:
        if not alongside:
            raise StateError(Trouble.LOCKED, path)
        return OpenFile(_join(path), None, None)
    try:
        connection, set_aside = (_connect(path), None) if alongside else _own(path)
    except BaseException:
        lock.release()
        raise
    return OpenFile(connection, lock, set_aside)


@contextlib.contextmanager
def _worded(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with the file into a StateError."""
    try:
        yield
    except StateError:
        raise
    except Foreign as error:
        raise StateError(Trouble.FOREIGN, path) from error
    except Newer as error:
        raise StateError(Trouble.NEWER, path, str(newest_copy(path, error.known) or "")) from error
    except NotImplementedError as error:
        raise StateError(Trouble.FAILED, path, "a file system without locks") from error
    except (sqlite3.Error, OSError) as error:
        raise trouble(path, error) from error


def _lock(path: Path, seconds: float) -> filelock.BaseFileLock | None:
    """Take the lock, or return None when another process has it. It ends with the process, however that ends."""
    lock = filelock.FileLock(f"{path}.lock", timeout=seconds, mode=PRIVATE_FILE)
    try:
        lock.acquire()
    except filelock.Timeout:
        return None
    return lock


def _own(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    try:
        return _connect(path), None
    except StateError as error:
        if error.trouble is not Trouble.BROKEN:
            raise
    kept = _set_aside(path)
    return _connect(path), kept


def _connect(path: Path) -> sqlite3.Connection:
    with _worded(path), contextlib.ExitStack() as on_failure:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
        connection = on_failure.enter_context(contextlib.closing(_plain(path)))
        version(connection)  # before anything is written: a file that is not ours stays as it is
        path.chmod(PRIVATE_FILE)
        connection.execute("PRAGMA journal_mode = WAL")
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StateError(Trouble.BROKEN, path, "quick_check")
        _upgrade(connection, path)
        on_failure.pop_all()
    return connection


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to this program's shape; what it was before is kept beside it until the next upgrade."""
    if is_current(connection):
        return
    if seen := version(connection):
        keep_copy(connection, path, seen)
    upgrade(connection)
    if seen:
        drop_copies(path, but=seen)


def _join(path: Path) -> sqlite3.Connection:
    with _worded(path), contextlib.ExitStack() as on_failure:
        connection = on_failure.enter_context(contextlib.closing(_plain(path)))
        if not is_current(connection):
            raise StateError(Trouble.BUSY, path, "being upgraded")
        on_failure.pop_all()
    return connection


def inspect(path: Path) -> None:
    """Read the file through and change nothing: no upgrade, no setting aside, no lock. Raises StateError."""
    with _worded(path), contextlib.closing(_plain(path)) as connection:
        version(connection)
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StateError(Trouble.BROKEN, path, "quick_check")
        if not all(os.access(each, os.W_OK) for each in (path, path.parent)):  # a journal is written beside it
            raise StateError(Trouble.READ_ONLY, path)


def last_note(path: Path, until: float) -> float | None:
    """Return when a program that has not ended noted its bots last, ``until`` at most; no lock is taken.

    Seconds since the epoch; None when there is no such note. Raises StateError.
    """
    with _worded(path), contextlib.closing(_plain(path)) as connection:
        if not is_current(connection):
            return None
        query = "SELECT max(at) FROM health WHERE link <> ? AND at <= ?"
        (at,) = connection.execute(query, (Link.CLOSED, until)).fetchone()
        return None if at is None else float(at)


def _plain(path: Path) -> sqlite3.Connection:
    """Connect in the mode the whole project relies on.

    ``synchronous = FULL`` in WAL mode: a commit is in the operating system's hands before it returns, so it survives
    ``kill -9``, and on the disk too, so it survives a power cut as far as the disk keeps its word.
    """
    address = f"{path.absolute().as_uri()}?mode=rw"  # never creates: that is done above, 0600 from the first byte
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _set_aside(path: Path) -> Path:
    """Rename a broken file under a dated name. Its log goes first: a new file must never meet the old one's log."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name, number = f"{path.name}.broken-{stamp}", 1
    while os.path.lexists(path.with_name(name)):
        number += 1
        name = f"{path.name}.broken-{stamp}-{number}"
    with _worded(path):
        for suffix in ("-wal", "-shm", ""):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(path.with_name(name + suffix))
    return path.with_name(name)

"""One SQLite connection on one thread, with group commit."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

from bridges.state.file import OpenFile, open_file, trouble
from bridges.state.model import StateError, Trouble

GROUP: Final = 64
"""Transactions that share one commit, and so one wait for the disk."""

MAX_WAITING: Final = 10_000
"""Calls that may wait; one more is refused as busy."""

T = TypeVar("T")


class _Job(Generic[T]):
    """One transaction of one caller."""

    __slots__ = ("_error", "_result", "_work", "future")

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self._work = work
        self._result: T | None = None
        self._error: Exception | None = None
        self.future: Future[T] = Future()

    def run(self, connection: sqlite3.Connection) -> None:
        """Do the work; an error of its own undoes this job alone, one of SQLite goes up to the whole group."""
        connection.execute("SAVEPOINT job")
        try:
            self._result = self._work(connection)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - carried to the caller, as an executor does
            self._error = error
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")

    def settle(self, failure: StateError | None = None) -> None:
        """Hand the outcome over, now that it is durable."""
        if error := failure or self._error:
            self.future.set_exception(error)
        else:
            self.future.set_result(self._result)  # type: ignore[arg-type]  # run() has set it, None only if T allows


class Database:
    """Runs functions on the connection's own thread; use as an async context manager.

    Calls that wait at the same time share one commit; each is atomic by itself and returns after the commit.
    """

    def __init__(self, path: Path, *, alongside: bool = False) -> None:
        self._path = path
        self._alongside = alongside
        self._jobs: queue.Queue[_Job[object] | None] = queue.Queue()
        self._opened: Future[Path | None] = Future()
        self._thread = threading.Thread(target=self._serve, name="state", daemon=True)
        self._closing = False
        self.set_aside: Path | None = None
        """Where a broken file was put, once open."""

    async def __aenter__(self) -> Self:
        """Open the file. Raises StateError."""
        self._opened.set_running_or_notify_cancel()  # the thread opens to the end, whoever stops waiting
        self._thread.start()
        try:
            self.set_aside = await asyncio.wrap_future(self._opened)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what waits, then close the file. Again is no error."""
        if not self._closing:
            self._closing = True
            self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` as one transaction; return once it is durable. Raises StateError, and whatever work raises.

        A caller cancelled before its turn leaves nothing behind; later, the transaction is made.
        """
        if self._closing:
            raise StateError(Trouble.FAILED, self._path, "closed")
        if self._jobs.qsize() >= MAX_WAITING:
            raise StateError(Trouble.BUSY, self._path, "too many waiting")
        job = _Job(work)
        self._jobs.put(job)  # type: ignore[arg-type]  # the queue does not look at the result
        return await asyncio.wrap_future(job.future)

    def _serve(self) -> None:
        try:
            file = open_file(self._path, alongside=self._alongside)
        except BaseException as error:  # noqa: BLE001 - carried to the caller, as an executor does
            self._opened.set_exception(error)
            return
        self._opened.set_result(file.set_aside)
        try:
            while self._turn(file):
                pass
        finally:
            file.close()

    def _turn(self, file: OpenFile) -> bool:
        """Serve one group; False when it was the last."""
        waiting = [self._jobs.get()]
        with contextlib.suppress(queue.Empty):
            while len(waiting) < GROUP and waiting[-1] is not None:
                waiting.append(self._jobs.get_nowait())
        jobs = [job for job in waiting if job is not None and job.future.set_running_or_notify_cancel()]
        if jobs:
            self._commit(file.connection, jobs)
        return waiting[-1] is not None

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Job[object]]) -> None:
        failure: sqlite3.Error | None = None
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                job.run(connection)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            failure = error
            with contextlib.suppress(sqlite3.Error):  # some errors have rolled back already
                connection.execute("ROLLBACK")
        for job in jobs:
            job.settle(trouble(self._path, failure) if failure else None)

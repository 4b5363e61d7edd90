"""How the bots are, in the state file: the way from the running program to the operator's."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from bridges.message import Stop
from bridges.state.database import Database
from bridges.state.model import BotKey, Health, Link, Noted
from harness_client.clock import Clock


class SqliteHealths:
    """See :class:`bridges.state.model.Healths`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def note(self, healths: Iterable[Health]) -> None:
        """See :meth:`Healths.note`."""
        now, pid = self._clock.time(), os.getpid()
        rows = [
            (each.bot.channel, each.bot.name, each.link, each.since, each.last_event, each.error, each.why, now, pid)
            for each in healths
        ]

        def work(db: sqlite3.Connection) -> None:
            db.executemany("REPLACE INTO health VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

        await self._database.run(work)

    async def noted(self) -> tuple[Noted, ...]:
        """See :meth:`Healths.noted`."""

        def work(db: sqlite3.Connection) -> tuple[Noted, ...]:
            query = (
                "SELECT channel, bot, link, since, last_event, error, why, at, pid FROM health ORDER BY channel, bot"
            )
            return tuple(_Record._make(row).noted() for row in db.execute(query))

        return await self._database.run(work)


class _Record(NamedTuple):
    """A row, columns in the order of the query."""

    channel: str
    name: str
    link: str
    since: float
    last_event: float | None
    error: str | None
    why: str | None
    at: float
    pid: int

    def noted(self) -> Noted:
        """Return the row as what it says."""
        bot, why = BotKey(self.channel, self.name), Stop(self.why) if self.why else None
        return Noted(Health(bot, Link(self.link), self.since, self.last_event, self.error, why), self.at, self.pid)

"""How the bots are, in the state file: the way from the running program to the operator's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

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
        now = self._clock.time()
        rows = [
            (each.bot.channel, each.bot.name, each.link, each.since, each.last_event, each.error, each.why, now)
            for each in healths
        ]

        def work(db: sqlite3.Connection) -> None:
            db.executemany("REPLACE INTO health VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

        await self._database.run(work)

    async def noted(self) -> tuple[Noted, ...]:
        """See :meth:`Healths.noted`."""

        def work(db: sqlite3.Connection) -> tuple[Noted, ...]:
            query = "SELECT channel, bot, link, since, last_event, error, why, at FROM health ORDER BY channel, bot"
            return tuple(_noted(*row) for row in db.execute(query))

        return await self._database.run(work)


def _noted(
    channel: str,
    name: str,
    link: str,
    since: float,
    last_event: float | None,
    error: str | None,
    why: str | None,
    at: float,
) -> Noted:
    return Noted(Health(BotKey(channel, name), Link(link), since, last_event, error, Stop(why) if why else None), at)

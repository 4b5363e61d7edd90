"""The state in one SQLite file: :func:`open_state` is the way in."""

from __future__ import annotations

import functools
import math
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bridges.message import EventId
from bridges.state.chats import SqliteBots, SqliteChats
from bridges.state.database import Database
from bridges.state.healths import SqliteHealths
from bridges.state.model import BotKey, Pairing, State, Turn
from bridges.state.turns import SqliteTurns, write_turn
from commands.model import SenderId
from harness_client.clock import SYSTEM_CLOCK, Clock

CLAIM_SECONDS: Final = 8 * 24 * 3600.0
"""How long a claim is kept; a platform delivers again for up to 7 days (WhatsApp), most of them for hours."""

CLAIMS_PRUNED: Final = 32
"""Old claims forgotten with each new one: more than come in, so the table shrinks back, and a bounded delay."""

CURSOR_BYTES: Final = 64 * 1024
CURSOR_KEYS: Final = 1024

CODE_GAP_SECONDS: Final = 600.0
CODE_SECONDS: Final = 3600.0
CODES_WAITING: Final = 20
"""Strangers per bot who may wait for approval at a time; the next ones hear nothing until a code expires."""

CODE_ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Nothing that looks like another: no 0 O, 1 I L, U V."""


def mint_code() -> str:
    """Return eight random characters: 39 bits, and only an owner or the operator can try one."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(8))


@asynccontextmanager
async def open_state(
    path: Path, *, clock: Clock = SYSTEM_CLOCK, code: Callable[[], str] = mint_code, alongside: bool = False
) -> AsyncIterator[State]:
    """Open the state file, created 0600 when there is none. Raises StateError.

    One process at a time; ``alongside`` joins a running one, for the operator's single transactions such as ``pair``.
    """
    async with Database(path, alongside=alongside) as database:
        yield State(
            chats=SqliteChats(database),
            bots=SqliteBots(database),
            claims=SqliteClaims(database, clock),
            turns=SqliteTurns(database),
            pairings=SqlitePairings(database, clock, code),
            healths=SqliteHealths(database, clock),
            cursors=functools.partial(SqliteCursors, database),
            set_aside=database.set_aside,
        )


class SqliteClaims:
    """See :class:`bridges.state.model.Claims`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def claim(self, bot: BotKey, event: EventId, *, turn: Turn | None = None) -> bool:
        """See :meth:`Claims.claim`."""
        now = self._clock.time()

        def work(db: sqlite3.Connection) -> bool:
            db.execute(
                "DELETE FROM claim WHERE rowid IN (SELECT rowid FROM claim WHERE at < ? ORDER BY at LIMIT ?)",
                (now - CLAIM_SECONDS, CLAIMS_PRUNED),
            )
            row = (bot.channel, bot.name, event, now)
            ours = db.execute("INSERT OR IGNORE INTO claim VALUES (?, ?, ?, ?)", row).rowcount == 1
            if ours and turn is not None:
                write_turn(db, turn)
            return ours

        return await self._database.run(work)


class SqliteCursors:
    """See :class:`bridges.message.Cursors`."""

    def __init__(self, database: Database, bot: BotKey) -> None:
        self._database = database
        self._bot = (bot.channel, bot.name)

    async def load(self, key: str) -> bytes | None:
        """See :meth:`Cursors.load`."""

        def work(db: sqlite3.Connection) -> bytes | None:
            row: tuple[bytes] | None = db.execute(
                "SELECT value FROM cursor WHERE channel = ? AND bot = ? AND key = ?", (*self._bot, key)
            ).fetchone()
            return row and row[0]

        return await self._database.run(work)

    async def save(self, key: str, value: bytes) -> None:
        """See :meth:`Cursors.save`."""
        if len(value) > CURSOR_BYTES:
            raise ValueError(f"{key}: {len(value)} bytes, at most {CURSOR_BYTES}")

        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "REPLACE INTO cursor (channel, bot, key, value, written) SELECT ?, ?, ?, ?, "
                "(SELECT coalesce(max(written), 0) + 1 FROM cursor WHERE channel = ? AND bot = ?)",
                (*self._bot, key, value, *self._bot),
            )
            db.execute(
                "DELETE FROM cursor WHERE rowid IN (SELECT rowid FROM cursor WHERE channel = ? AND bot = ? "
                "ORDER BY written DESC LIMIT -1 OFFSET ?)",
                (*self._bot, CURSOR_KEYS),
            )

        await self._database.run(work)


class SqlitePairings:
    """See :class:`bridges.state.model.Pairings`."""

    def __init__(self, database: Database, clock: Clock, code: Callable[[], str]) -> None:
        self._database = database
        self._clock = clock
        self._code = code

    async def ask(self, bot: BotKey, sender: SenderId) -> str | None:
        """See :meth:`Pairings.ask`."""
        now, code = self._clock.time(), self._code()

        def work(db: sqlite3.Connection) -> str | None:
            db.execute("DELETE FROM pairing_code WHERE expires <= ?", (now,))
            query = "SELECT sender, asked FROM pairing_code WHERE channel = ? AND bot = ?"
            waiting: dict[str, float] = dict(db.execute(query, (bot.channel, bot.name)).fetchall())
            if now < waiting.get(sender, -math.inf) + CODE_GAP_SECONDS:
                return None
            if sender not in waiting and len(waiting) >= CODES_WAITING:
                return None
            if db.execute("SELECT 1 FROM pairing_code WHERE code = ?", (code,)).fetchone():
                return None  # by chance another stranger's: REPLACE would take it from them
            row = (bot.channel, bot.name, sender, code, now, now + CODE_SECONDS)
            db.execute("REPLACE INTO pairing_code VALUES (?, ?, ?, ?, ?, ?)", row)
            return code

        return await self._database.run(work)

    async def approve(self, code: str, *, bot: BotKey | None = None) -> Pairing | None:
        """See :meth:`Pairings.approve`."""
        now = self._clock.time()
        wanted = code.strip().upper()

        def work(db: sqlite3.Connection) -> Pairing | None:
            found = [pairing for pairing in _waiting(db, now) if pairing.code == wanted and bot in {None, pairing.bot}]
            for pairing in found:
                person = (pairing.bot.channel, pairing.bot.name, pairing.sender)
                db.execute("DELETE FROM pairing_code WHERE code = ?", (wanted,))
                db.execute("INSERT OR IGNORE INTO pairing VALUES (?, ?, ?, ?)", (*person, now))
            return found[0] if found else None

        return await self._database.run(work)

    async def admitted(self, bot: BotKey, sender: SenderId) -> bool:
        """See :meth:`Pairings.admitted`."""

        def work(db: sqlite3.Connection) -> bool:
            query = "SELECT 1 FROM pairing WHERE channel = ? AND bot = ? AND sender = ?"
            return db.execute(query, (bot.channel, bot.name, sender)).fetchone() is not None

        return await self._database.run(work)

    async def dismiss(self, bot: BotKey, sender: SenderId) -> bool:
        """See :meth:`Pairings.dismiss`."""

        def work(db: sqlite3.Connection) -> bool:
            person = (bot.channel, bot.name, sender)
            code = db.execute("DELETE FROM pairing_code WHERE channel = ? AND bot = ? AND sender = ?", person)
            pairing = db.execute("DELETE FROM pairing WHERE channel = ? AND bot = ? AND sender = ?", person)
            return code.rowcount + pairing.rowcount > 0

        return await self._database.run(work)

    async def waiting(self) -> tuple[Pairing, ...]:
        """See :meth:`Pairings.waiting`."""
        now = self._clock.time()
        return await self._database.run(lambda db: tuple(_waiting(db, now)))


def _waiting(db: sqlite3.Connection, now: float) -> list[Pairing]:
    rows = db.execute(
        "SELECT channel, bot, sender, code, expires FROM pairing_code WHERE expires > ? ORDER BY asked", (now,)
    )
    return [
        Pairing(BotKey(channel, name), SenderId(sender), code, expires) for channel, name, sender, code, expires in rows
    ]

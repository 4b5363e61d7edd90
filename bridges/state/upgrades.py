"""The shape of the state file, as numbered steps. A step that was released is never changed again: add one."""

from __future__ import annotations

import sqlite3
from typing import Final

UPGRADES: Final[tuple[tuple[str, ...], ...]] = (
    (
        # A bot that is gone keeps its row: `incarnation` must not repeat when it comes back.
        """CREATE TABLE bot (
            channel TEXT NOT NULL, name TEXT NOT NULL,
            present INTEGER NOT NULL DEFAULT 1,
            generation INTEGER NOT NULL DEFAULT 0,
            incarnation INTEGER NOT NULL DEFAULT 0,
            workspace TEXT,
            PRIMARY KEY (channel, name)) WITHOUT ROWID""",
        """CREATE TABLE chat (
            channel TEXT NOT NULL, bot TEXT NOT NULL, chat TEXT NOT NULL,
            session TEXT, version INTEGER NOT NULL DEFAULT 0,
            language TEXT, workspace TEXT,
            PRIMARY KEY (channel, bot, chat)) WITHOUT ROWID""",
        """CREATE TABLE claim (
            channel TEXT NOT NULL, bot TEXT NOT NULL, event TEXT NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (channel, bot, event))""",
        "CREATE INDEX claim_at ON claim (at)",
        """CREATE TABLE turn (
            channel TEXT NOT NULL, bot TEXT NOT NULL, event TEXT NOT NULL,
            chat TEXT NOT NULL, route TEXT NOT NULL, sender TEXT NOT NULL,
            began REAL NOT NULL, phase INTEGER NOT NULL,
            session TEXT, cwd TEXT, request TEXT, carrier TEXT,
            binding_session TEXT, binding_version INTEGER, binding_generation INTEGER, binding_incarnation INTEGER,
            PRIMARY KEY (channel, bot, event)) WITHOUT ROWID""",
        """CREATE TABLE cursor (
            channel TEXT NOT NULL, bot TEXT NOT NULL, key TEXT NOT NULL,
            value BLOB NOT NULL, written INTEGER NOT NULL,
            PRIMARY KEY (channel, bot, key))""",
        "CREATE INDEX cursor_written ON cursor (channel, bot, written)",
        """CREATE TABLE pairing_code (
            channel TEXT NOT NULL, bot TEXT NOT NULL, sender TEXT NOT NULL,
            code TEXT NOT NULL UNIQUE, asked REAL NOT NULL, expires REAL NOT NULL,
            PRIMARY KEY (channel, bot, sender))""",
        """CREATE TABLE pairing (
            channel TEXT NOT NULL, bot TEXT NOT NULL, sender TEXT NOT NULL,
            since REAL NOT NULL,
            PRIMARY KEY (channel, bot, sender)) WITHOUT ROWID""",
    ),
    ("ALTER TABLE chat ADD COLUMN preset TEXT",),
    (
        """CREATE TABLE health (
            channel TEXT NOT NULL, bot TEXT NOT NULL,
            link TEXT NOT NULL, since REAL NOT NULL, last_event REAL, error TEXT, why TEXT,
            at REAL NOT NULL,
            PRIMARY KEY (channel, bot)) WITHOUT ROWID""",
    ),
    ("ALTER TABLE health ADD COLUMN pid INTEGER NOT NULL DEFAULT 0",),
)


class Foreign(Exception):
    """The file is a database, but none of ours."""


class Newer(Exception):
    """A later version of this program wrote the file; this one knows ``known`` steps."""

    def __init__(self, known: int) -> None:
        super().__init__(known)
        self.known = known


def version(connection: sqlite3.Connection) -> int:
    """Return the number of steps the file has seen. Raises Foreign, Newer."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return 0
    if not {"state_version", "claim"} <= tables:
        raise Foreign
    (number,) = connection.execute("SELECT number FROM state_version").fetchone() or (0,)
    if not isinstance(number, int) or number > len(UPGRADES):
        raise Newer(len(UPGRADES))
    return number


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the file has seen every step. Raises Foreign, Newer."""
    return version(connection) == len(UPGRADES)


def upgrade(connection: sqlite3.Connection) -> None:
    """Take all missing steps in one transaction: a crash leaves the file as it was, or as this version wants it."""
    seen = version(connection)
    connection.execute("BEGIN IMMEDIATE")
    if seen == 0:
        connection.execute("CREATE TABLE state_version (number INTEGER NOT NULL)")
        connection.execute("INSERT INTO state_version VALUES (0)")
    for step in UPGRADES[seen:]:
        for statement in step:
            connection.execute(statement)
    connection.execute("UPDATE state_version SET number = ?", (len(UPGRADES),))
    connection.execute("COMMIT")

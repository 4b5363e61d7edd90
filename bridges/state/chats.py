"""Bindings and settings of chats, and what moves them all: the bot's workspace and its coming and going."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final, Literal

from bridges.state.database import Database
from bridges.state.model import BotKey, Settings
from commands.model import Binding, ChatKey, StaleBinding
from harness_client.types import SessionId
from i18n import Language

_FORGET: Final = (
    "DELETE FROM chat WHERE channel = ? AND bot = ?",
    "DELETE FROM turn WHERE channel = ? AND bot = ?",
    "DELETE FROM cursor WHERE channel = ? AND bot = ?",
    "DELETE FROM pairing_code WHERE channel = ? AND bot = ?",
    "DELETE FROM pairing WHERE channel = ? AND bot = ?",
    "DELETE FROM health WHERE channel = ? AND bot = ?",
    "UPDATE bot SET present = 0, workspace = NULL, incarnation = incarnation + 1 WHERE channel = ? AND name = ?",
)
"""All that is kept for one bot but its claims: a message must not run again because its bot was renamed back."""


class SqliteChats:
    """See :class:`bridges.state.model.Chats`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, chat: ChatKey) -> Binding:
        """See :meth:`Bindings.get`."""
        return await self._database.run(lambda db: _read(db, chat))

    async def bind(self, chat: ChatKey, session: SessionId, *, expected: Binding) -> Binding:
        """See :meth:`Bindings.bind`."""

        def work(db: sqlite3.Connection) -> Binding:
            if _read(db, chat) != expected:
                raise StaleBinding
            return _write(db, chat, session)

        return await self._database.run(work)

    async def unbind(self, chat: ChatKey) -> Binding:
        """See :meth:`Bindings.unbind`."""
        return await self._database.run(lambda db: _write(db, chat, None))

    async def settings(self, chat: ChatKey) -> Settings:
        """See :meth:`Chats.settings`."""

        def work(db: sqlite3.Connection) -> Settings:
            query = "SELECT language, workspace, preset FROM chat WHERE channel = ? AND bot = ? AND chat = ?"
            language, workspace, preset = db.execute(query, _row(chat)).fetchone() or (None, None, None)
            return Settings(Language(language) if language else None, workspace, preset)

        return await self._database.run(work)

    async def bound(self) -> tuple[tuple[ChatKey, SessionId], ...]:
        """See :meth:`Chats.bound`."""

        def work(db: sqlite3.Connection) -> tuple[tuple[ChatKey, SessionId], ...]:
            rows = db.execute(
                "SELECT channel, bot, chat, session FROM chat WHERE session IS NOT NULL ORDER BY channel, bot, chat"
            )
            return tuple((ChatKey(channel, bot, chat), SessionId(session)) for channel, bot, chat, session in rows)

        return await self._database.run(work)

    async def set_language(self, chat: ChatKey, language: Language | None) -> None:
        """See :meth:`Chats.set_language`."""
        await self._database.run(lambda db: _choose(db, chat, "language", language))

    async def set_preset(self, chat: ChatKey, preset: str | None) -> None:
        """See :meth:`Chats.set_preset`."""
        await self._database.run(lambda db: _choose(db, chat, "preset", preset))

    async def pin_workspace(self, chat: ChatKey, path: str | None) -> Binding:
        """See :meth:`Chats.pin_workspace`."""

        def work(db: sqlite3.Connection) -> Binding:
            _choose(db, chat, "workspace", path)
            return _write(db, chat, None)

        return await self._database.run(work)


class SqliteBots:
    """See :class:`bridges.state.model.Bots`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def workspace(self, bot: BotKey) -> str | None:
        """See :meth:`Bots.workspace`."""

        def work(db: sqlite3.Connection) -> str | None:
            query = "SELECT workspace FROM bot WHERE channel = ? AND name = ?"
            row: tuple[str | None] | None = db.execute(query, (bot.channel, bot.name)).fetchone()
            return row and row[0]

        return await self._database.run(work)

    async def switch_workspace(self, bot: BotKey, path: str, *, unpin: ChatKey | None = None) -> None:
        """See :meth:`Bots.switch_workspace`."""

        def work(db: sqlite3.Connection) -> None:
            key = (bot.channel, bot.name)
            _ensure_bot(db, bot)
            db.execute(
                "UPDATE bot SET workspace = ?, generation = generation + 1 WHERE channel = ? AND name = ?", (path, *key)
            )
            db.execute("UPDATE chat SET session = NULL, version = version + 1 WHERE channel = ? AND bot = ?", key)
            if unpin is not None:
                _choose(db, unpin, "workspace", None)

        await self._database.run(work)

    async def settle(self, present: Iterable[BotKey]) -> None:
        """See :meth:`Bots.settle`."""
        configured = frozenset(present)

        def work(db: sqlite3.Connection) -> None:
            rows = db.execute("SELECT channel, name FROM bot WHERE present").fetchall()
            for gone in {BotKey(channel, name) for channel, name in rows} - configured:
                for statement in _FORGET:
                    db.execute(statement, (gone.channel, gone.name))
            for bot in configured:
                _ensure_bot(db, bot)

        await self._database.run(work)


def _row(chat: ChatKey) -> tuple[str, str, str]:
    return (chat.channel, chat.bot, chat.chat)


def _ensure_bot(db: sqlite3.Connection, bot: BotKey) -> None:
    db.execute(
        "INSERT INTO bot (channel, name) VALUES (?, ?) ON CONFLICT DO UPDATE SET present = 1", (bot.channel, bot.name)
    )


def _ensure(db: sqlite3.Connection, chat: ChatKey) -> None:
    _ensure_bot(db, BotKey.of(chat))
    db.execute("INSERT OR IGNORE INTO chat (channel, bot, chat) VALUES (?, ?, ?)", _row(chat))


_Choice = Literal["language", "workspace", "preset"]


def _choose(db: sqlite3.Connection, chat: ChatKey, choice: _Choice, value: str | None) -> None:
    _ensure(db, chat)
    statement = f"UPDATE chat SET {choice} = ? WHERE channel = ? AND bot = ? AND chat = ?"  # noqa: S608 - one of three
    db.execute(statement, (value, *_row(chat)))


def _read(db: sqlite3.Connection, chat: ChatKey) -> Binding:
    query = "SELECT session, version FROM chat WHERE channel = ? AND bot = ? AND chat = ?"
    session, version = db.execute(query, _row(chat)).fetchone() or (None, 0)
    query = "SELECT generation, incarnation FROM bot WHERE channel = ? AND name = ?"
    generation, incarnation = db.execute(query, (chat.channel, chat.bot)).fetchone() or (0, 0)
    return Binding(session, version, generation, incarnation)


def _write(db: sqlite3.Connection, chat: ChatKey, session: SessionId | None) -> Binding:
    _ensure(db, chat)
    statement = "UPDATE chat SET session = ?, version = version + 1 WHERE channel = ? AND bot = ? AND chat = ?"
    db.execute(statement, (session, *_row(chat)))
    return _read(db, chat)

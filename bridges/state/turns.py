"""Outstanding turns in the state file."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from bridges.message import EventId, ReplyTarget, SentId
from bridges.state.database import Database
from bridges.state.model import BotKey, Phase, Turn
from commands.model import Binding, ChatKey, SenderId
from harness_client.types import RequestId, SessionId


class SqliteTurns:
    """See :class:`bridges.state.model.Turns`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, turn: Turn) -> None:
        """See :meth:`Turns.save`."""

        def work(db: sqlite3.Connection) -> None:
            query = "SELECT phase FROM turn WHERE channel = ? AND bot = ? AND event = ?"
            row = db.execute(query, _key(turn)).fetchone()
            if row is None:
                return
            if row[0] > turn.phase:
                raise ValueError(f"{Phase(row[0]).name} does not go back to {turn.phase.name}")
            write_turn(db, turn)

        await self._database.run(work)

    async def end(self, turn: Turn) -> None:
        """See :meth:`Turns.end`."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM turn WHERE channel = ? AND bot = ? AND event = ?", _key(turn))

        await self._database.run(work)

    async def outstanding(self, bot: BotKey) -> tuple[Turn, ...]:
        """See :meth:`Turns.outstanding`."""

        def work(db: sqlite3.Connection) -> tuple[Turn, ...]:
            rows = db.execute(
                "SELECT channel, bot, event, chat, route, sender, began, phase, session, cwd, request, carrier, "
                "binding_session, binding_version, binding_generation, binding_incarnation "
                "FROM turn WHERE channel = ? AND bot = ? ORDER BY began, event",
                (bot.channel, bot.name),
            )
            return tuple(_Record._make(row).turn() for row in rows)

        return await self._database.run(work)


def write_turn(db: sqlite3.Connection, turn: Turn) -> None:
    """Write a turn, new or known, within the caller's transaction."""
    db.execute(
        "REPLACE INTO turn (channel, bot, event, chat, route, sender, began, phase, session, cwd, request, carrier, "
        "binding_session, binding_version, binding_generation, binding_incarnation) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        _Record.of(turn),
    )


def _key(turn: Turn) -> tuple[str, str, str]:
    return (turn.chat.channel, turn.chat.bot, turn.event)


class _Record(NamedTuple):
    """One row of the table, in the order of the statements above."""

    channel: str
    bot: str
    event: EventId
    chat: str
    route: str
    sender: SenderId
    began: float
    phase: int
    session: SessionId | None
    cwd: str | None
    request: RequestId | None
    carrier: SentId | None
    binding_session: SessionId | None
    binding_version: int | None
    binding_generation: int | None
    binding_incarnation: int | None

    @classmethod
    def of(cls, turn: Turn) -> _Record:
        chat, binding = turn.chat, turn.binding
        return cls(
            *(chat.channel, chat.bot, turn.event, chat.chat, turn.reply_to.route, turn.sender),
            *(turn.began, turn.phase.value, turn.session, turn.cwd, turn.request, turn.carrier),
            *((binding.session, binding.version, binding.generation, binding.incarnation) if binding else (None,) * 4),
        )

    def turn(self) -> Turn:
        return Turn(
            event=self.event,
            reply_to=ReplyTarget(ChatKey(self.channel, self.bot, self.chat), self.route),
            sender=self.sender,
            began=self.began,
            phase=Phase(self.phase),
            session=self.session,
            cwd=self.cwd,
            request=self.request,
            binding=self._binding(),
            carrier=self.carrier,
        )

    def _binding(self) -> Binding | None:
        version, generation, incarnation = self.binding_version, self.binding_generation, self.binding_incarnation
        if version is None or generation is None or incarnation is None:
            return None
        return Binding(self.binding_session, version, generation, incarnation)

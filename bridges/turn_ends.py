"""The ends of turns, written down in the end: a turn that looks outstanding would be delivered again."""

from __future__ import annotations

import asyncio
from typing import Final

from bridges.bot import RunningBot
from bridges.message import EventId
from bridges.state import StateError, Turn

RETRY_SECONDS: Final = 5.0
MOST: Final = 10_000
"""Ends that may wait for a disk with room; beyond it they are left to the next start, which asks the log."""


class TurnEnds:
    """Those of one bot."""

    def __init__(self, bot: RunningBot, tasks: asyncio.TaskGroup) -> None:
        self._bot = bot
        self._tasks = tasks
        self._waiting: dict[EventId, Turn] = {}

    async def note(self, turn: Turn) -> None:
        """Write down that the turn is over, now or when the state can be written again."""
        try:
            await self._bot.state.turns.end(turn)
        except StateError as error:
            self._bot.references.record(error, actor=turn.sender, session=turn.session)
            if len(self._waiting) >= MOST:
                return
            if not self._waiting:
                self._tasks.create_task(self._note_waiting(), name=f"turn ends of {self._bot.key}")
            self._waiting[turn.event] = turn

    async def _note_waiting(self) -> None:
        while self._waiting:
            await self._bot.clock.sleep(RETRY_SECONDS)
            for event, turn in tuple(self._waiting.items()):
                try:
                    await self._bot.state.turns.end(turn)
                except StateError:
                    break
                del self._waiting[event]

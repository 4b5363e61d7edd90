"""The ordinary messages of a bot's chats: one bounded queue and at most one worker a chat, none for an idle one.

A chat has one prompt at a time; its later messages wait here, not on the host, where ``/stop`` would park them
(facts HARNESS 6).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from bridges.bot import RunningBot
from bridges.late import finish_late
from bridges.message import EventId, InboundMessage
from bridges.state import Turn
from bridges.turn import End, PromptRun
from commands.model import ChatKey, ChatTurn, Outcome, StopOutcome

CHAT_LIMIT = 20
"""Messages that may wait in one chat."""

TOTAL_LIMIT = 16_000_000
"""Characters of text that may wait in all chats of one bot, each message counted with :data:`OVERHEAD` more."""

OVERHEAD = 2_000
"""What a waiting message costs beside its text; with it no more than 8,000 messages wait in one bot."""

LATE_LIMIT = 4
"""Late answers a chat may have outstanding; beyond it ``/history`` has to do."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One message in a queue. It is not taken up before ``after``, an earlier command of the chat, is done."""

    message: InboundMessage
    turn: Turn
    after: asyncio.Event | None

    @property
    def weight(self) -> int:
        """What it counts against :data:`TOTAL_LIMIT`."""
        return len(self.message.text) + OVERHEAD


@dataclass(slots=True)
class _Chat:
    """One chat that has something to do."""

    queue: deque[Waiting] = field(default_factory=deque)
    running: PromptRun | None = None


class Conversations:
    """All chats of one bot; also the :class:`commands.model.Turns` of its commands."""

    def __init__(self, bot: RunningBot, tasks: asyncio.TaskGroup, settled: Callable[[EventId, Outcome], None]) -> None:
        """``settled`` is told once for every submitted message, when its reply is out."""
        self._bot = bot
        self._tasks = tasks
        self._settled = settled
        self._chats: dict[ChatKey, _Chat] = {}
        self._late: dict[ChatKey, int] = {}
        self._total = 0

    def submit(self, waiting: Waiting) -> bool:
        """Queue a message; False when its chat or the bot has too many already, and nothing was done."""
        key = waiting.message.chat
        chat = self._chats.get(key)
        if self._total + waiting.weight > TOTAL_LIMIT or (chat is not None and len(chat.queue) >= CHAT_LIMIT):
            return False
        self._total += waiting.weight
        if chat is None:
            chat = self._chats[key] = _Chat()
            self._tasks.create_task(self._work(key, chat))
        chat.queue.append(waiting)
        return True

    # -- what commands may do -------------------------------------------------------------------------------------

    def current(self, chat: ChatKey) -> ChatTurn | None:
        """See :meth:`commands.model.Turns.current`."""
        found = self._chats.get(chat)
        if found is None or found.running is None:
            return None
        run = found.running
        return ChatTurn(run.turn.session, self._bot.clock.monotonic() - run.since, len(found.queue))

    async def stop(self, chat: ChatKey) -> StopOutcome:
        """See :meth:`commands.model.Turns.stop`."""
        found = self._chats.get(chat)
        return StopOutcome.IDLE if found is None or found.running is None else await found.running.stop()

    async def steer(self, chat: ChatKey, text: str) -> bool:
        """See :meth:`commands.model.Turns.steer`."""
        found = self._chats.get(chat)
        return found is not None and found.running is not None and await found.running.steer(text)

    # -- one chat's worker ----------------------------------------------------------------------------------------

    async def _work(self, key: ChatKey, chat: _Chat) -> None:
        try:
            while chat.queue:
                waiting = chat.queue.popleft()
                self._total -= waiting.weight
                if waiting.after is not None:
                    await waiting.after.wait()
                message = waiting.message
                work = partial(self._run, chat, waiting)
                outcome = await self._bot.safely(work, reply_to=message.reply_to, sender=message.sender)
                self._settled(message.id, outcome or Outcome.FAILED)
        finally:
            del self._chats[key]

    async def _run(self, chat: _Chat, waiting: Waiting) -> Outcome:
        run = PromptRun(self._bot, waiting.turn, await self._bot.words(waiting.message.chat))
        chat.running = run
        try:
            reply = await run.run(waiting.message)
        finally:
            chat.running = None
        if reply.end is End.LATE:
            await self._leave_late(run.turn)
        return reply.outcome

    async def _leave_late(self, turn: Turn) -> None:
        if self._late.get(turn.chat, 0) >= LATE_LIMIT:
            await self._bot.state.turns.end(turn)
            return
        self._late[turn.chat] = self._late.get(turn.chat, 0) + 1
        self._tasks.create_task(self._finish_late(turn))

    async def _finish_late(self, turn: Turn) -> None:
        try:
            work = partial(finish_late, self._bot, turn)
            await self._bot.safely(work, reply_to=turn.reply_to, sender=turn.sender)
        finally:
            self._late[turn.chat] -= 1
            if not self._late[turn.chat]:
                del self._late[turn.chat]

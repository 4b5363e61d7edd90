"""One ear per bot: hears what the host asks in all sessions while turns run, and finds the turn it is about."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import structlog

from bridges.bot import RunningBot
from bridges.interactions.approval import decision_in
from bridges.interactions.dialogue import Answering, Dialogue, Opening
from bridges.message import InboundMessage
from commands.model import ChatKey, Outcome, SenderId
from harness_client.client import HostEvent
from harness_client.errors import HarnessError
from harness_client.streams import ApprovalAsked, InteractionClosed, QuestionAsked
from harness_client.types import InteractionId, SessionId
from i18n import Key

FIRST_DELAY, LONGEST_DELAY = 0.25, 10.0
"""Seconds before the host is listened to again after a break."""

REPLAY_SECONDS: Final = 5.0
"""What still waits is told again at once when somebody listens anew; after this, what was not is settled."""

STRAY_SECONDS: Final = 300.0
"""How long after an approval is over a word that would decide one is taken for a late answer, not for a prompt."""

_LINEAGE_SECONDS: Final = 10.0
_DEPTH: Final = 8
"""How deep subagents of subagents are traced to the chat's own session."""

K = TypeVar("K")
V = TypeVar("V")

_KEPT: Final = 1_000
"""Entries of each memory; the oldest go first."""


class Interactions:
    """What the host asks in the turns of one bot."""

    def __init__(self, bot: RunningBot, tasks: asyncio.TaskGroup) -> None:
        self._bot = bot
        self._tasks = tasks
        self._by_session: dict[SessionId, list[Dialogue]] = {}
        self._by_chat: dict[ChatKey, list[Dialogue]] = {}
        self._unclaimed: OrderedDict[InteractionId, QuestionAsked | ApprovalAsked] = OrderedDict()
        self._decided: OrderedDict[tuple[ChatKey, SenderId], float] = OrderedDict()
        self._listener: asyncio.Task[None] | None = None

    @contextmanager
    def dialogue(self, opening: Opening) -> Iterator[Dialogue]:
        """Open the dialogue of one turn; leaving ends all it asked."""
        dialogue = Dialogue(self._bot, self._tasks, opening, self)
        chat = opening.target.chat
        self._by_chat.setdefault(chat, []).append(dialogue)
        try:
            yield dialogue
        finally:
            dialogue.close()
            _remove(self._by_chat, chat, dialogue)
            self._leave(dialogue)

    def hear(self, session: SessionId, dialogue: Dialogue) -> None:
        """Hand to ``dialogue`` whatever the host asks in ``session``, what waits already included, and in no other."""
        if dialogue in self._by_session.get(session, ()):
            return
        self._leave(dialogue)
        self._by_session.setdefault(session, []).append(dialogue)
        if self._listener is None:
            self._listener = self._tasks.create_task(self._listen(), name=f"questions for {self._bot.key}")
        for asked in [asked for asked in self._unclaimed.values() if asked.session == session]:
            dialogue.take(asked, None)

    def _leave(self, dialogue: Dialogue) -> None:
        for session in [session for session, dialogues in self._by_session.items() if dialogue in dialogues]:
            _remove(self._by_session, session, dialogue)
        if not self._by_session and self._listener is not None:
            self._listener.cancel()
            self._listener = None
            self._unclaimed.clear()

    def waits(self, chat: ChatKey) -> bool:
        """Whether something waits for a person in this chat."""
        return any(dialogue.waits for dialogue in self._by_chat.get(chat, ()))

    def offer(self, message: InboundMessage) -> Answering | None:
        """Return how to take a message as an answer; None when it answers nothing and is a message of its own."""
        for dialogue in self._by_chat.get(message.chat, ()):
            answering = dialogue.offer(message)
            if answering is not None:
                return answering
        if decision_in(message.text) is None:
            return None
        decided = self._decided.get((message.chat, message.sender))
        if decided is None or self._bot.clock.monotonic() - decided > STRAY_SECONDS:
            return None
        return lambda: self._refuse(message)

    async def moved(self, chat: ChatKey) -> None:
        """Turn down what turns of other sessions than the chat's present one still ask."""
        for dialogue in tuple(self._by_chat.get(chat, ())):
            await dialogue.moved()

    async def _refuse(self, message: InboundMessage) -> Outcome:
        words = await self._bot.words(message.chat)
        await self._bot.replies.reply(message.reply_to, (words(Key.APPROVAL_ALREADY),))
        return Outcome.REFUSED

    def decided(self, opening: Opening) -> None:
        """See :meth:`bridges.interactions.dialogue.Ears.decided`."""
        _keep(self._decided, (opening.target.chat, opening.actor), self._bot.clock.monotonic())

    # -- the host ---------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        delay = FIRST_DELAY
        while True:
            try:
                async with self._bot.harness.host_events() as events:
                    await self._hear_all(events)
            except HarnessError as error:
                structlog.get_logger(__name__).info("questions cannot be heard", code=error.code, retry_in=delay)
            await self._bot.clock.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)

    async def _hear_all(self, events: AsyncIterator[HostEvent]) -> None:
        doubtful = {known for dialogue in self._dialogues() for known in dialogue.known()}
        self._unclaimed.clear()
        forgetting = asyncio.create_task(self._forget(doubtful))
        try:
            async for event in events:
                if isinstance(event, QuestionAsked | ApprovalAsked):
                    doubtful.discard(event.id)
                    await self._asked(event)
                elif isinstance(event, InteractionClosed):
                    doubtful.discard(event.id)
                    self._gone(event.id, event.outcome)
        finally:
            forgetting.cancel()

    async def _forget(self, doubtful: set[InteractionId]) -> None:
        """Give up what the host did not tell again."""
        await self._bot.clock.sleep(REPLAY_SECONDS)
        for interaction in doubtful:
            self._gone(interaction, None)

    async def _asked(self, asked: QuestionAsked | ApprovalAsked) -> None:
        session = await self._root(asked.session)
        dialogues = self._by_session.get(session, ())
        if not dialogues:
            _keep(self._unclaimed, asked.id, asked)
        for dialogue in tuple(dialogues):
            dialogue.take(asked, None if session == asked.session else session)

    def _gone(self, interaction: InteractionId, outcome: str | None) -> None:
        self._unclaimed.pop(interaction, None)
        for dialogue in self._dialogues():
            dialogue.gone(interaction, outcome)

    def _dialogues(self) -> set[Dialogue]:
        return {dialogue for dialogues in self._by_session.values() for dialogue in dialogues}

    async def _root(self, session: SessionId) -> SessionId:
        """Return the session of ours on whose behalf ``session``, perhaps a subagent's, asks; else itself."""
        if session in self._by_session:
            return session
        try:
            async with self._bot.clock.timeout(_LINEAGE_SECONDS):
                rows = await self._bot.harness.sessions()
        except (HarnessError, TimeoutError):
            return session
        parents = {row.id: row.parent for row in rows if row.subagent}
        ancestor: SessionId | None = session
        for _ in range(_DEPTH):
            ancestor = parents.get(ancestor) if ancestor is not None else None
            if ancestor in self._by_session and ancestor is not None:
                return ancestor
        return session


def _remove(shelf: dict[K, list[Dialogue]], key: K, dialogue: Dialogue) -> None:
    dialogues = shelf[key]
    dialogues.remove(dialogue)
    if not dialogues:
        del shelf[key]


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > _KEPT:
        kept.popitem(last=False)

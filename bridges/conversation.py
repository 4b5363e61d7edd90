"""The ordinary messages of a bot's chats: one bounded queue and at most one worker a chat, none for an idle one.

A chat has one prompt at a time; its later messages wait here, not on the host, where ``/stop`` would park them
(facts HARNESS 6).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from bridges.bot import RunningBot
from bridges.host_turn import HostTurn
from bridges.interactions import Dialogue, Interactions, Opening
from bridges.late import finish_late, settle
from bridges.message import EventId, InboundMessage
from bridges.prompt import Prompt, Prompts
from bridges.state import Phase, Turn
from bridges.turn import End, PromptRun, Reply
from bridges.turn_ends import TurnEnds
from commands.model import ChatKey, ChatKind, ChatTurn, Outcome, SteerOutcome, StopOutcome
from harness_client.turn import TurnReader

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
    prompt: Prompt
    turn: Turn
    after: asyncio.Event | None
    replied: Callable[[Reply | None], Awaitable[None]] | None = None
    """Told what the chat was told; None for a fault of the program."""

    @property
    def weight(self) -> int:
        """What it counts against :data:`TOTAL_LIMIT`."""
        return sum(map(len, self.prompt.texts)) + OVERHEAD


@dataclass(slots=True)
class _Chat:
    """One chat that has something to do."""

    queue: deque[Waiting] = field(default_factory=deque)
    taken: bool = False
    """Whether a message of it is being worked on; one that waits for an earlier command is not yet."""
    running: PromptRun | None = None


@dataclass(frozen=True, slots=True)
class _Late:
    """A turn that its chat waits for no more. ``since`` on the monotonic clock."""

    turn: Turn
    host_turn: HostTurn
    dialogue: Dialogue
    since: float


class Conversations:
    """All chats of one bot; also the :class:`commands.model.Turns` of its commands."""

    def __init__(
        self,
        bot: RunningBot,
        tasks: asyncio.TaskGroup,
        settled: Callable[[EventId, Outcome], None],
        *,
        group_approvals: bool,
    ) -> None:
        """``settled`` is told once for every submitted message, when its reply is out."""
        self._bot = bot
        self._tasks = tasks
        self._settled = settled
        self._group_approvals = group_approvals
        self._prompts = Prompts(bot)
        self._chats: dict[ChatKey, _Chat] = {}
        self._late: dict[ChatKey, list[_Late]] = {}
        self._total = 0
        self.ends = TurnEnds(bot, tasks)
        self.interactions = Interactions(bot, tasks)

    @property
    def waiting(self) -> int:
        """Return how many messages wait in all chats."""
        return sum(len(chat.queue) for chat in self._chats.values())

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

    async def recover(self, turn: Turn) -> None:
        """Bring a turn of an earlier process to its end; call it once the channel can send."""
        if turn.phase in {Phase.PROMPTING, Phase.RUNNING}:
            await self._watch_again(turn)
        else:
            await settle(self._bot, turn)

    def may_join(self, waiting: Waiting) -> bool:
        """Whether a message could be added to a turn of its chat that runs now."""
        found = self._chats.get(waiting.message.chat)
        plain = not waiting.prompt.attachments and waiting.replied is None and waiting.after is None
        return plain and found is not None and found.running is not None

    # -- what commands may do -------------------------------------------------------------------------------------

    def current(self, chat: ChatKey) -> ChatTurn | None:
        """See :meth:`commands.model.Turns.current`."""
        found, late = self._chats.get(chat), self._late.get(chat)
        asked = self.interactions.waits(chat)
        now = self._bot.clock.monotonic()
        if found is not None and (run := found.running) is not None:
            starting = run.turn.phase < Phase.PROMPTING
            return ChatTurn(run.turn.session, now - run.since, len(found.queue), asked, starting)
        if found is not None and found.taken:
            return ChatTurn(None, 0.0, len(found.queue), asked, starting=True)
        return ChatTurn(late[0].turn.session, now - late[0].since, 0, asked) if late else None

    async def stop(self, chat: ChatKey) -> StopOutcome:
        """See :meth:`commands.model.Turns.stop`."""
        found, late = self._chats.get(chat), self._late.get(chat)
        if found is not None and found.running is not None:
            return await found.running.stop()
        return await late[0].host_turn.stop() if late else StopOutcome.IDLE

    async def steer(self, chat: ChatKey, text: str) -> SteerOutcome:
        """See :meth:`commands.model.Turns.steer`."""
        found, late = self._chats.get(chat), self._late.get(chat)
        if found is not None and found.running is not None:
            return await found.running.steer(text)
        return await late[0].host_turn.steer(text) if late else SteerOutcome.IDLE

    # -- one chat's worker ----------------------------------------------------------------------------------------

    async def _work(self, key: ChatKey, chat: _Chat) -> None:
        try:
            while chat.queue:
                waiting = chat.queue.popleft()
                self._total -= waiting.weight
                if waiting.after is not None:
                    await waiting.after.wait()
                chat.taken = True
                message = waiting.message
                work = partial(self._run, chat, waiting)
                outcome = await self._bot.safely(work, reply_to=message.reply_to, sender=message.sender)
                self._settled(message.id, outcome or Outcome.FAILED)
        finally:
            del self._chats[key]

    async def _run(self, chat: _Chat, waiting: Waiting) -> Outcome:
        reply: Reply | None = None
        try:
            with ExitStack() as stack:
                dialogue = stack.enter_context(self.interactions.dialogue(self._opening(waiting)))
                words = await self._bot.words(waiting.message.chat)
                run = chat.running = PromptRun(self._bot, waiting.turn, words, self._prompts, dialogue)
                reply = await run.run(waiting.prompt)
                if reply.end is End.LATE and run.host_turn is not None:
                    late = _Late(run.turn, run.host_turn, dialogue, run.since)
                    self._leave_late(late, stack.pop_all())
                else:
                    await self.ends.note(run.turn)
        finally:
            chat.running, chat.taken = None, False
            if waiting.replied is not None:
                await waiting.replied(reply)
        return reply.outcome

    def _opening(self, waiting: Waiting) -> Opening:
        message = waiting.message
        approves = message.kind is ChatKind.DIRECT or self._group_approvals
        return Opening(message.reply_to, message.sender, message.kind, approves)

    # -- answers that come later ----------------------------------------------------------------------------------

    async def _watch_again(self, turn: Turn) -> None:
        if turn.session is None or turn.request is None:
            await self.ends.note(turn)
            return
        opening = Opening(turn.reply_to, turn.sender, ChatKind.GROUP, approves=False, recovered=True)
        with ExitStack() as stack:
            dialogue = stack.enter_context(self.interactions.dialogue(opening))
            reader = TurnReader(turn.request)
            dialogue.follow(turn.session, reader, turn.binding)
            host_turn = HostTurn(self._bot, turn.session, reader, dialogue)
            self._add_late(_Late(turn, host_turn, dialogue, self._bot.clock.monotonic()), stack.pop_all())

    def _leave_late(self, late: _Late, stack: ExitStack) -> None:
        if len(self._late.get(late.turn.chat, ())) < LATE_LIMIT:
            self._add_late(late, stack)
            return
        stack.close()
        self._tasks.create_task(self.ends.note(late.turn))

    def _add_late(self, late: _Late, stack: ExitStack) -> None:
        self._late.setdefault(late.turn.chat, []).append(late)
        self._tasks.create_task(self._finish_late(late, stack))

    async def _finish_late(self, late: _Late, stack: ExitStack) -> None:
        turn = late.turn
        try:
            with stack:
                work = partial(finish_late, self._bot, turn, late.host_turn)
                await self._bot.safely(work, reply_to=turn.reply_to, sender=turn.sender)
                if late.host_turn.reader.ending is None:
                    await late.dialogue.withdraw(lambda notices: notices.expired)
        finally:
            self._late[turn.chat].remove(late)
            if not self._late[turn.chat]:
                del self._late[turn.chat]
        await self.ends.note(turn)

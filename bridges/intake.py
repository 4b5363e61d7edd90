"""THE inbound path: whatever a person sends to a bot of any channel passes here, in this order.

1. group rule: what is not addressed to the bot is not its business
2. access: deny by default, before anything is stored, fetched or asked (:mod:`bridges.access`)
3. the durable claim: a message id is taken on once, across crashes; only then does the platform hear of it
4. command recognition: a recognised command is always consumed and runs outside the chat's queue
5. the batch: while a chat collects texts, everything but the batch's own commands goes into it or is refused
6. an answer to what the host asks (:mod:`bridges.interactions`)
7. the prompt, in the chat's queue (:mod:`bridges.conversation`)

Order within a chat: a command that changes what later messages meet, or what their numbers mean (tag ``barrier``), is
over before anything that was sent after it begins. Nothing else waits for anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from bridges.access import Rights, rights
from bridges.bot import RunningBot
from bridges.command_desk import CommandDesk
from bridges.config import Access, Busy
from bridges.conversation import Conversations, Waiting
from bridges.message import Acceptance, EventId, InboundMessage
from bridges.prompt import Prompt
from bridges.prompt import refusal as unusable
from bridges.state import Phase, StateError, Turn
from bridges.turn import End, Reply
from bridges.welcome import Welcomes
from commands.batch import SEND, Batches
from commands.budget import utf16_length
from commands.catalog import BARRIER, COMMANDS, KNOWN
from commands.model import ChatKey, ChatKind, Outcome, SteerOutcome
from commands.recognise import NotOurs, Recognised, recognise
from harness_client.errors import HarnessError
from i18n import Key

COMMANDS_AT_ONCE: Final = 64
"""Commands of one bot that run at the same time; beyond it the channel waits before it acknowledges."""

LONGEST_TEXT: Final = 100_000
"""UTF-16 units of one message; more is refused with a word."""


TROUBLED_CHATS: Final = 1_000
"""Chats that are told, once, that nothing can be stored."""

Work = Callable[[], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Policy:
    """How one bot is addressed, who may use it, and how it behaves. ``access`` is read anew for every message."""

    access: Callable[[], Access | None]
    name: str | None = None
    """The bot's own name where people write ``/command@name``."""
    busy: Busy = Busy.QUEUE
    group_approvals: bool = False
    tells_trouble: bool = True
    """Whether the chat hears of a state that cannot be written; the terminal says so by itself."""
    turns_down: Callable[[InboundMessage], Key | None] = lambda message: None
    """What to say to somebody with access in the place of taking their message up; None takes it up."""


class Intake:
    """The :class:`bridges.message.Inbox` of one bot."""

    def __init__(
        self,
        bot: RunningBot,
        policy: Policy,
        tasks: asyncio.TaskGroup,
        *,
        settled: Callable[[EventId, Outcome], None] = lambda event, outcome: None,
    ) -> None:
        """``settled`` is told once for every accepted message, when its reply is out."""
        self._bot = bot
        self._policy = policy
        self._tasks = tasks
        self._settled = settled
        self._slots = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self._rebinding: dict[ChatKey, asyncio.Event] = {}
        self._batching: dict[ChatKey, asyncio.Event] = {}
        self._inherited: tuple[Turn, ...] = ()
        self._troubled: set[ChatKey] = set()
        self._batches = Batches()
        self.conversations = Conversations(bot, tasks, settled, group_approvals=policy.group_approvals)
        self._desk = CommandDesk(bot, self.conversations, self._batches)
        self._welcomes = Welcomes(bot, tasks)

    async def inherit(self) -> None:
        """Take over what an earlier process left unfinished; it is seen to once the channel is connected."""
        self._inherited = await self._bot.state.turns.outstanding(self._bot.key)

    def connected(self) -> None:
        """See :meth:`bridges.message.Inbox.connected`."""
        inherited, self._inherited = self._inherited, ()
        for turn in inherited:
            # A session that was being made is bound before the chat's next message could make another.
            changing = self._announce(turn.chat) if turn.phase is Phase.CREATING else None
            self._tasks.create_task(self._recover(turn, changing))

    async def accept(self, message: InboundMessage) -> Acceptance:
        """See :meth:`bridges.message.Inbox.accept`."""
        command = recognise(message.text, KNOWN, bot=self._policy.name)
        if isinstance(command, NotOurs) or not message.addressed:
            return Acceptance.IGNORED
        bot = self._bot
        may = await rights(self._policy.access(), bot.state.pairings, bot.key, message.kind, message.sender)
        if not may.talk:
            await self._turn_away(message, may)
            return Acceptance.DENIED
        self._welcomes.forget(message.sender)
        if (instead := self._policy.turns_down(message)) is not None:
            return await self._refuse(message, instead)
        if (batching := self._batching.get(message.chat)) is not None:
            await batching.wait()  # a batch that is just begun takes this message, one just cancelled does not
        if command is not None:
            return await self._take_command(message, command, may)
        if self._collects(message):
            return await self._take_on(message, partial(self._collect, message))
        return await self._take_words(message)

    async def _take_words(self, message: InboundMessage) -> Acceptance:
        if utf16_length(message.text) > LONGEST_TEXT:
            return await self._refuse(message, Key.CHAT_TOO_LONG)
        answering = self.conversations.interactions.offer(message)
        if answering is not None and message.chat in self._rebinding:
            return await self._take_prompt(message, Prompt((message.text,), message.attachments), answering=answering)
        if answering is not None:
            return await self._take_on(message, lambda: answering)
        refusal = unusable(self._bot, message.attachments)
        if refusal is None and not message.attachments and not message.text.strip():
            refusal = Key.CHAT_EMPTY
        if refusal is not None:
            return await self._refuse(message, refusal)
        return await self._take_prompt(message, Prompt((message.text,), message.attachments))

    async def _take_command(self, message: InboundMessage, command: Recognised, may: Rights) -> Acceptance:
        if self._collects(message) and not COMMANDS[command.name].during_batch:
            return await self._refuse(message, Key.BATCH_COLLECTING)
        if command == SEND and message.kind is ChatKind.DIRECT and may.command:
            texts = self._batches.submit(message.chat)
            if texts:
                return await self._take_batch(message, texts)
        return await self._take_on(message, partial(self._command, message, command, may))

    async def _refuse(self, message: InboundMessage, key: Key) -> Acceptance:
        return await self._take_on(message, lambda: partial(self._desk.say, message, key))

    async def _take_on(self, message: InboundMessage, work: Callable[[], Work]) -> Acceptance:
        """Claim a message and begin what ``work``, called right after the claim, returns."""
        await self._slots.acquire()
        ours = False
        try:
            ours = await self._claim(message)
        finally:
            if not ours:
                self._slots.release()
        if not ours:
            return Acceptance.DUPLICATE
        self._begin(message, work())
        return Acceptance.ACCEPTED

    async def _claim(self, message: InboundMessage, turn: Turn | None = None) -> bool:
        try:
            ours = await self._bot.state.claims.claim(self._bot.key, message.id, turn=turn)
        except StateError:
            self._tell_trouble(message)
            raise
        self._troubled.clear()
        return ours

    def _tell_trouble(self, message: InboundMessage) -> None:
        """Tell the chat, once until the state can be written again, that its message was not taken."""
        if self._policy.tells_trouble and message.chat not in self._troubled and len(self._troubled) < TROUBLED_CHATS:
            self._troubled.add(message.chat)
            self._spawn(message, partial(self._desk.say, message, Key.CHAT_NOT_STORED))

    async def _turn_away(self, message: InboundMessage, may: Rights) -> None:
        """Give a stranger a pairing code where the bot pairs, and nothing at all anywhere else."""
        if not may.pair:
            return
        code = await self._bot.state.pairings.ask(self._bot.key, message.sender)
        if code is not None:
            self._welcomes.expect(message)
            self._spawn(message, partial(self._desk.say, message, Key.CHAT_PAIRING, code=code))

    # -- prompts ----------------------------------------------------------------------------------------------------

    async def _take_prompt(
        self,
        message: InboundMessage,
        prompt: Prompt,
        *,
        replied: Callable[[Reply | None], Awaitable[None]] | None = None,
        answering: Work | None = None,
    ) -> Acceptance:
        turn = Turn(message.id, message.reply_to, message.sender, self._bot.clock.time())
        if not await self._claim(message, turn):
            return Acceptance.DUPLICATE
        waiting = Waiting(message, prompt, turn, self._rebinding.get(message.chat), replied)
        if answering is not None:
            self._pass_on(message, partial(self._answer_or_queue, waiting, answering))
        elif self._policy.busy is Busy.STEER and self.conversations.may_join(waiting):
            self._pass_on(message, partial(self._join, waiting))
        else:
            await self._queue(waiting)
        return Acceptance.ACCEPTED

    async def _answer_or_queue(self, waiting: Waiting, answering: Work) -> Outcome | None:
        """Take a message as an answer, unless the command before it took away what it would have answered."""
        message = waiting.message
        if waiting.after is not None:
            await waiting.after.wait()
        if self.conversations.interactions.offer(message) is None:
            await self._queue(waiting)
            return None
        outcome = await answering()
        await self.conversations.ends.note(waiting.turn)
        return outcome

    async def _queue(self, waiting: Waiting) -> None:
        if self.conversations.submit(waiting):
            return
        await self.conversations.ends.note(waiting.turn)
        await self._slots.acquire()
        self._begin(waiting.message, partial(self._desk.say, waiting.message, Key.CHAT_FULL))
        if waiting.replied is not None:
            await waiting.replied(None)

    async def _join(self, waiting: Waiting) -> Outcome | None:
        """Add a message to the turn that runs; one that comes too late for it waits for a turn of its own."""
        message = waiting.message
        try:
            outcome = await self.conversations.steer(message.chat, message.text)
        except HarnessError as error:
            reference = self._bot.references.record(error, actor=message.sender, session=None)
            await self._desk.say(message, Key.STEER_FAILED, reference=reference)
            end = Outcome.FAILED
        else:
            if outcome is not SteerOutcome.TAKEN:
                await self._queue(waiting)
                return None
            await self._desk.say(message, Key.STEER_DONE)
            end = Outcome.OK
        await self.conversations.ends.note(waiting.turn)
        return end

    # -- batches ----------------------------------------------------------------------------------------------------

    def _collects(self, message: InboundMessage) -> bool:
        return message.kind is ChatKind.DIRECT and self._batches.collects(message.chat)

    def _collect(self, message: InboundMessage) -> Work:
        """Add to the chat's batch at once, for the next message may send it."""
        if message.attachments or message.quoted:
            key: Key | None = Key.BATCH_PLAIN_ONLY
        elif utf16_length(message.text) > LONGEST_TEXT:
            key = Key.CHAT_TOO_LONG
        else:
            key = self._batches.add(message.chat, message.text)
        return _nothing if key is None else partial(self._desk.say, message, key)

    async def _take_batch(self, message: InboundMessage, texts: tuple[str, ...]) -> Acceptance:
        taken = False
        try:
            acceptance = await self._take_prompt(message, Prompt(texts), replied=partial(self._batch_over, message))
            taken = acceptance is Acceptance.ACCEPTED
        finally:
            if not taken:
                self._batches.settle(message.chat, keep=True)
        return acceptance

    async def _batch_over(self, message: InboundMessage, reply: Reply | None) -> None:
        """Drop a batch that ran; one that did not is kept, to be sent again."""
        failed = reply is None or (reply.outcome is not Outcome.OK and reply.end is End.ANSWERED)
        count = self._batches.settle(message.chat, keep=failed)
        if failed:
            await self._desk.say(message, Key.BATCH_KEPT, count=str(count))

    # -- commands ---------------------------------------------------------------------------------------------------

    def _command(self, message: InboundMessage, command: Recognised, may: Rights) -> Work:
        if COMMANDS[command.name].during_batch:
            return self._batch_command(message, command, may)
        before = self._rebinding.get(message.chat)
        changing = self._announce(message.chat) if BARRIER in COMMANDS[command.name].tags else None

        async def in_order() -> Outcome:
            try:
                if before is not None:
                    await before.wait()
                outcome = await self._observed(message, command, may)
                if changing is not None:
                    await self.conversations.interactions.moved(message.chat)
                return outcome
            finally:
                self._changed(message.chat, changing)

        return in_order

    def _batch_command(self, message: InboundMessage, command: Recognised, may: Rights) -> Work:
        """Run a command that waits for no other; what comes after it is not looked at before the batch has changed."""
        chat = message.chat
        changing = self._batching[chat] = asyncio.Event()

        def changed() -> None:
            changing.set()
            if self._batching.get(chat) is changing:
                del self._batching[chat]

        async def at_once() -> Outcome:
            try:
                return await self._observed(message, command, may, changed)
            finally:
                changed()

        return at_once

    async def _observed(
        self, message: InboundMessage, command: Recognised, may: Rights, ran: Callable[[], None] = lambda: None
    ) -> Outcome:
        bot, outcome = self._bot, Outcome.FAILED
        began = bot.clock.monotonic()
        try:
            outcome = await self._desk.run(message, command, may, ran)
        finally:
            seconds = bot.clock.monotonic() - began
            bot.observer.commanded(message.chat.channel, command.name, outcome, seconds)
        return outcome

    async def _recover(self, turn: Turn, changing: asyncio.Event | None) -> None:
        try:
            work = partial(self.conversations.recover, turn)
            await self._bot.safely(work, reply_to=turn.reply_to, sender=turn.sender)
        finally:
            self._changed(turn.chat, changing)

    def _announce(self, chat: ChatKey) -> asyncio.Event:
        """Say that the chat's session is about to change: what is sent from now on waits for it."""
        changing = self._rebinding[chat] = asyncio.Event()
        return changing

    def _changed(self, chat: ChatKey, changing: asyncio.Event | None) -> None:
        if changing is not None:
            changing.set()
            if self._rebinding.get(chat) is changing:
                del self._rebinding[chat]

    def _spawn(self, message: InboundMessage, work: Callable[[], Awaitable[object]]) -> None:
        self._tasks.create_task(self._bot.safely(work, reply_to=message.reply_to, sender=message.sender))

    def _pass_on(self, message: InboundMessage, work: Callable[[], Awaitable[Outcome | None]]) -> None:
        """Do ``work``, which ends a message or, by returning None, leaves that to the chat's queue."""

        async def run() -> Outcome:
            outcome = await work()
            if outcome is not None:
                self._settled(message.id, outcome)
            return Outcome.OK

        async def to_the_end() -> None:
            if await self._bot.safely(run, reply_to=message.reply_to, sender=message.sender) is None:
                self._settled(message.id, Outcome.FAILED)

        self._tasks.create_task(to_the_end())

    def _begin(self, message: InboundMessage, work: Work) -> None:
        """Run ``work`` by itself, in the slot that was acquired for it."""

        async def run() -> None:
            try:
                outcome = await self._bot.safely(work, reply_to=message.reply_to, sender=message.sender)
            finally:
                self._slots.release()
            self._settled(message.id, outcome or Outcome.FAILED)

        self._tasks.create_task(run())


async def _nothing() -> Outcome:
    """Answer with silence."""
    return Outcome.OK

"""THE inbound path: whatever a person sends to a bot of any channel passes here, in this order.

1. group rule: what is not addressed to the bot is not its business
2. access: deny by default, before anything is stored, fetched or asked (:mod:`bridges.access`)
3. the durable claim: a message id is taken on once, across crashes; only then does the platform hear of it
4. command recognition: a recognised command is always consumed and runs outside the chat's queue
5. the prompt, in the chat's queue (:mod:`bridges.conversation`)

Order within a chat: a command that changes what the chat talks to (tag ``barrier``) is over before anything that was
sent after it begins. Nothing else waits for anything.
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
from bridges.config import Access
from bridges.conversation import Conversations, Waiting
from bridges.late import recover
from bridges.message import Acceptance, EventId, InboundMessage
from bridges.state import Phase, Turn
from commands.budget import utf16_length
from commands.catalog import BARRIER, COMMANDS, KNOWN
from commands.model import ChatKey, Outcome
from commands.recognise import NotOurs, Recognised, recognise
from i18n import Key

COMMANDS_AT_ONCE: Final = 64
"""Commands of one bot that run at the same time; beyond it the channel waits before it acknowledges."""

LONGEST_TEXT: Final = 100_000
"""UTF-16 units of one message; more is refused with a word."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How one bot is addressed, and who may use it. ``access`` is read anew for every message."""

    access: Callable[[], Access | None]
    name: str | None = None
    """The bot's own name where people write ``/command@name``."""


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
        self._inherited: tuple[Turn, ...] = ()
        self.conversations = Conversations(bot, tasks, settled)
        self._desk = CommandDesk(bot, self.conversations)

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
        refusal = _refusal(message)
        if command is None and refusal is None:
            return await self._take_prompt(message)
        await self._slots.acquire()
        ours = False
        try:
            ours = await bot.state.claims.claim(bot.key, message.id)
        finally:
            if not ours:
                self._slots.release()
        if not ours:
            return Acceptance.DUPLICATE
        if command is not None:
            self._begin_command(message, command, may)
        elif refusal is not None:
            self._begin(message, partial(self._desk.say, message, refusal))
        return Acceptance.ACCEPTED

    async def _turn_away(self, message: InboundMessage, may: Rights) -> None:
        """Give a stranger a pairing code where the bot pairs, and nothing at all anywhere else."""
        if not may.pair:
            return
        code = await self._bot.state.pairings.ask(self._bot.key, message.sender)
        if code is not None:
            work = partial(self._desk.say, message, Key.CHAT_PAIRING, code=code)
            self._tasks.create_task(self._bot.safely(work, reply_to=message.reply_to, sender=message.sender))

    async def _take_prompt(self, message: InboundMessage) -> Acceptance:
        bot = self._bot
        turn = Turn(message.id, message.reply_to, message.sender, bot.clock.time())
        if not await bot.state.claims.claim(bot.key, message.id, turn=turn):
            return Acceptance.DUPLICATE
        if not self.conversations.submit(Waiting(message, turn, self._rebinding.get(message.chat))):
            await bot.state.turns.end(turn)
            await self._slots.acquire()
            self._begin(message, partial(self._desk.say, message, Key.CHAT_FULL))
        return Acceptance.ACCEPTED

    def _begin_command(self, message: InboundMessage, command: Recognised, may: Rights) -> None:
        before = self._rebinding.get(message.chat)
        changing = self._announce(message.chat) if BARRIER in COMMANDS[command.name].tags else None

        async def in_order() -> Outcome:
            try:
                if before is not None:
                    await before.wait()
                return await self._desk.run(message, command, may)
            finally:
                self._changed(message.chat, changing)

        self._begin(message, in_order)

    async def _recover(self, turn: Turn, changing: asyncio.Event | None) -> None:
        try:
            await self._bot.safely(partial(recover, self._bot, turn), reply_to=turn.reply_to, sender=turn.sender)
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

    def _begin(self, message: InboundMessage, work: Callable[[], Awaitable[Outcome]]) -> None:
        """Run ``work`` by itself, in the slot that was acquired for it."""

        async def run() -> None:
            try:
                outcome = await self._bot.safely(work, reply_to=message.reply_to, sender=message.sender)
            finally:
                self._slots.release()
            self._settled(message.id, outcome or Outcome.FAILED)

        self._tasks.create_task(run())


def _refusal(message: InboundMessage) -> Key | None:
    """Return why a message cannot become a prompt, if so."""
    if message.attachments:
        return Key.CHAT_ATTACHMENTS
    if not message.text.strip():
        return Key.CHAT_EMPTY
    return Key.CHAT_TOO_LONG if utf16_length(message.text) > LONGEST_TEXT else None

"""One ordinary message: its session, its prompt, its answer. Each step is written down before it is taken.

What a restart may conclude from each step is said at :class:`bridges.state.Phase`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import Final

from bridges.bot import RunningBot
from bridges.live import LiveAnswer
from bridges.message import InboundMessage, SentId
from bridges.race import first_of
from bridges.state import Phase, StateError, Turn
from bridges.turn_text import ending_text, failure_text, joined
from commands.marks import wrap
from commands.model import Binding, ChatKey, Outcome, StaleBinding, StopOutcome
from harness_client.errors import HarnessError, SessionNotFound, TimedOut, Unreachable
from harness_client.turn import TurnReader
from harness_client.types import PromptMode, QueueAction, RequestId, SessionId, TextPart
from harness_client.watch import PromptLost, Watch
from i18n import Key, Words

ANSWER_SECONDS = 600.0
"""How long a chat waits for an answer before its later messages go on; the answer then follows by itself."""

PATIENCE_SECONDS = 60.0
"""How long a broken link to the host is mended while the chat waits."""

_TRIES = 3
"""Times a message looks for its session when the binding moves under it."""

_BEGIN_LOOKS, _BEGIN_SECONDS = 5, 0.2
"""How often ``/stop`` looks for a prompt that is neither begun nor queued, and the pause between: it is on its way."""


class End(Enum):
    """What is left to do after a run."""

    ANSWERED = auto()
    LATE = auto()
    """The host still works on it: the answer is to follow by itself (:mod:`bridges.late`)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What to tell the chat at the end of a run."""

    text: str
    outcome: Outcome = Outcome.OK
    end: End = End.ANSWERED


class _Withdrawn(Exception):
    """The prompt was taken back before the host began it."""


_KNOWN_ENDS: Final[dict[type[Exception], tuple[Key, Outcome]]] = {
    _Withdrawn: (Key.CHAT_WITHDRAWN, Outcome.OK),
    StaleBinding: (Key.CHAT_SWITCHED, Outcome.REFUSED),
    SessionNotFound: (Key.CHAT_SESSION_GONE, Outcome.REFUSED),
    PromptLost: (Key.CHAT_PROMPT_LOST, Outcome.FAILED),
}
"""Ends that need no reference: the person knows all there is to know."""


class PromptRun:
    """Runs one claimed message. ``turn`` is its durable form, kept up to date."""

    def __init__(self, bot: RunningBot, turn: Turn, words: Words) -> None:
        self._bot = bot
        self._words = words
        self._reader = TurnReader(RequestId(bot.mint()))
        self._sending = asyncio.Lock()
        self._withdrawn = asyncio.Event()
        self.turn = turn
        self.since = bot.clock.monotonic()
        """When the message was taken up, on the monotonic clock."""

    async def run(self, message: InboundMessage) -> Reply:
        """Ask the host and show the answer, or say why there is none. Raises nothing of the host or the state."""
        async with LiveAnswer(self._bot, message.reply_to, self._reader.text, self._note_carrier) as live:
            reply = await self._reply(message, live)
            if reply.end is End.ANSWERED:
                await self._note(replace(self.turn, phase=Phase.DELIVERING))
            sent = await live.finish(reply.text)
        if reply.end is End.LATE:
            await self._note(replace(self.turn, carrier=None))
            return reply
        if not sent:
            await self._bot.replies.reply(message.reply_to, (self._words(Key.CHAT_UNDELIVERED),))
        await self._forget()
        return reply

    async def _reply(self, message: InboundMessage, live: LiveAnswer) -> Reply:
        try:
            await self._ask(message, live)
        except tuple(_KNOWN_ENDS) as error:
            key, outcome = _KNOWN_ENDS[type(error)]
            return Reply(self._words(key), outcome)
        except StateError as error:
            return Reply(self._words(Key.CHAT_STATE, reference=self._record(error)), Outcome.FAILED)
        except HarnessError as error:
            return self._failed(error)
        if self._reader.ending is None:
            text = joined(self._reader.text(), self._words(Key.CHAT_STILL_RUNNING))
            return Reply(text, Outcome.OK, End.LATE)
        return Reply(*ending_text(self._reader, self._words))

    def _failed(self, error: HarnessError) -> Reply:
        reference = self._record(error)
        if self.turn.phase >= Phase.PROMPTING and isinstance(error, Unreachable | TimedOut):
            text = joined(self._reader.text(), self._words(Key.CHAT_LOST_CONTACT, reference=reference))
            return Reply(text, Outcome.FAILED, End.LATE)
        text = joined(self._reader.text(), failure_text(error, self._words, reference))
        return Reply(text, Outcome.FAILED)

    async def _ask(self, message: InboundMessage, live: LiveAnswer) -> None:
        """Send the prompt once and watch its turn; return at its end or at the wait limit.

        A binding that moves before the prompt is out is followed: the message runs where the chat is now.
        """
        for attempt in range(_TRIES):
            try:
                session, binding = await self._bound()
                watch = Watch(self._bot.harness, session, self._reader, self._bot.clock, live.changed)
                send = partial(self._send, message, session, binding)
                await first_of(
                    watch.until_ended(send, patience=PATIENCE_SECONDS),
                    watch.until_lost(),
                    self._bot.clock.sleep(ANSWER_SECONDS),
                    self._until_withdrawn(),
                )
            except StaleBinding:
                if attempt == _TRIES - 1:
                    raise
            else:
                return

    async def _bound(self) -> tuple[SessionId, Binding]:
        """Return the chat's session; an unbound chat gets one, its id written down before it is made."""
        chats, chat = self._bot.state.chats, self.turn.chat
        binding = await chats.get(chat)
        if binding.session is not None:
            return binding.session, binding
        session = SessionId(f"session-{self._bot.mint()}")
        folder = (await self._bot.place(chat)).folder
        await self._save(replace(self.turn, phase=Phase.CREATING, session=session, cwd=folder))
        await create_session(self._bot, chat, session, folder)
        return session, await chats.bind(chat, session, expected=binding)

    async def _send(self, message: InboundMessage, session: SessionId, binding: Binding) -> None:
        async with self._sending:
            if self._withdrawn.is_set():
                raise _Withdrawn
            if await self._bot.state.chats.get(message.chat) != binding:
                raise StaleBinding
            request = self._reader.request
            await self._save(
                replace(self.turn, phase=Phase.PROMPTING, session=session, request=request, binding=binding)
            )
            await self._bot.harness.prompt(session, [TextPart(wrap([message.text]))], request=request)
            await self._note(replace(self.turn, phase=Phase.RUNNING))

    # -- while it runs ----------------------------------------------------------------------------------------------

    async def stop(self) -> StopOutcome:
        """Stop this turn and no other; a prompt that has not begun on the host is taken back. Raises HarnessError."""
        async with self._sending:
            session, request = self.turn.session, self.turn.request
            if session is None or request is None:
                self._withdrawn.set()
                return StopOutcome.WITHDRAWN
        for _ in range(_BEGIN_LOOKS):
            if self._reader.ending is not None:
                return StopOutcome.IDLE
            if self._reader.begun:
                await self._bot.harness.cancel(session)
                return StopOutcome.STOPPED
            for item in (await self._bot.harness.projections(session)).queue or ():
                if item.request == request:
                    await self._bot.harness.update_queue(session, item.id, QueueAction.REMOVE)
                    self._withdrawn.set()
                    return StopOutcome.WITHDRAWN
            await self._bot.clock.sleep(_BEGIN_SECONDS)
        return StopOutcome.NOT_BEGUN

    async def steer(self, text: str) -> bool:
        """Add an instruction to this turn; False when it is not running. Raises HarnessError."""
        session = self.turn.session
        if session is None or not self._reader.begun or self._reader.ending is not None:
            return False
        request = RequestId(self._bot.mint())
        await self._bot.harness.prompt(session, [TextPart(text)], request=request, mode=PromptMode.STEER)
        return True

    async def _until_withdrawn(self) -> None:
        await self._withdrawn.wait()
        raise _Withdrawn

    # -- writing down -----------------------------------------------------------------------------------------------

    async def _save(self, turn: Turn) -> None:
        self.turn = turn  # at once: a carrier may be noted while the phase is being written, and must not undo it
        await self._bot.state.turns.save(turn)

    async def _note(self, turn: Turn) -> None:
        """Write down what already happened; a full disk does not stop an answer."""
        try:
            await self._save(turn)
        except StateError as error:
            self._record(error)

    async def _forget(self) -> None:
        try:
            await self._bot.state.turns.end(self.turn)
        except StateError as error:
            self._record(error)

    async def _note_carrier(self, carrier: SentId) -> None:
        await self._note(replace(self.turn, carrier=carrier))

    def _record(self, error: BaseException) -> str:
        return self._bot.references.record(error, actor=self.turn.sender, session=self.turn.session)


async def create_session(bot: RunningBot, chat: ChatKey, session: SessionId, folder: str) -> None:
    """Create the chat's session; a lost answer is no reason to fail: asking again gives the same session back."""
    preset = (await bot.state.chats.settings(chat)).preset
    try:
        await bot.harness.create_session(session=session, cwd=folder, preset=preset)
    except (Unreachable, TimedOut):
        await bot.harness.create_session(session=session, cwd=folder, preset=preset)

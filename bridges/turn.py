"""One ordinary message: its session, its prompt, its answer. Each step is written down before it is taken.

What a restart may conclude from each step is said at :class:`bridges.state.Phase`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import Final

from bridges.bot import RunningBot
from bridges.host_turn import HostTurn, Withdrawn
from bridges.interactions import Dialogue
from bridges.live import LiveAnswer
from bridges.message import SentId
from bridges.prompt import Prompt, Prompts, Unusable, title_of
from bridges.race import first_of
from bridges.state import Phase, StateError, Turn
from bridges.turn_text import ending_text, failure_text, joined
from commands.model import Binding, ChatKey, Outcome, StaleBinding, SteerOutcome, StopOutcome
from harness_client.errors import HarnessError, HostFault, SessionNotFound, TimedOut, Unreachable
from harness_client.turn import TurnReader
from harness_client.types import RequestId, SessionId
from harness_client.watch import PromptLost, PromptParked
from i18n import Key, Words

ANSWER_SECONDS = 600.0
"""How long a chat waits for an answer before its later messages go on; the answer then follows by itself."""

PATIENCE_SECONDS = 60.0
"""How long a broken link to the host is mended while the chat waits."""

TITLE_SECONDS = 3.0
"""How long the naming of a new session may hold up its first prompt."""

_TRIES = 3
"""Times a message looks for its session when the binding moves under it."""


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


_KNOWN_ENDS: Final[dict[type[Exception], tuple[Key, Outcome]]] = {
    Withdrawn: (Key.CHAT_WITHDRAWN, Outcome.OK),
    StaleBinding: (Key.CHAT_SWITCHED, Outcome.REFUSED),
    SessionNotFound: (Key.CHAT_SESSION_GONE, Outcome.REFUSED),
    PromptLost: (Key.CHAT_PROMPT_LOST, Outcome.FAILED),
    PromptParked: (Key.CHAT_PARKED, Outcome.FAILED),
}
"""Ends that need no reference: the person knows all there is to know."""


class PromptRun:
    """Runs one claimed message. ``turn`` is its durable form, kept up to date."""

    def __init__(self, bot: RunningBot, turn: Turn, words: Words, prompts: Prompts, dialogue: Dialogue) -> None:
        self._bot = bot
        self._words = words
        self._prompts = prompts
        self._dialogue = dialogue
        self._reader = TurnReader(RequestId(bot.mint()))
        self._sending = asyncio.Lock()
        self._withdrawn = asyncio.Event()
        self.host_turn: HostTurn | None = None
        """The prompt on the host, once it is about to go there."""
        self.turn = turn
        self.since = bot.clock.monotonic()
        """When the message was taken up, on the monotonic clock."""

    async def run(self, prompt: Prompt) -> Reply:
        """Ask the host and show the answer, or say why there is none. Raises nothing of the host or the state."""
        target = self.turn.reply_to
        async with LiveAnswer(self._bot, target, self._text, self._note_carrier) as live:
            reply = await self._reply(prompt, live)
            if reply.end is End.ANSWERED:
                await self._note(replace(self.turn, phase=Phase.DELIVERING))
            sent = await live.finish(reply.text)
        if reply.end is End.LATE:
            await self._note(replace(self.turn, carrier=None))
        elif not sent:
            await self._bot.replies.reply(target, (self._words(Key.CHAT_UNDELIVERED),))
        return reply

    def _text(self) -> str:
        return self._reader.text()

    async def _reply(self, prompt: Prompt, live: LiveAnswer) -> Reply:
        try:
            await self._ask(prompt, live)
        except tuple(_KNOWN_ENDS) as error:
            key, outcome = _KNOWN_ENDS[type(error)]
            return Reply(joined(self._reader.text(), self._words(key)), outcome)
        except Unusable as error:
            reference = self._record(error.cause) if error.cause else ""
            return Reply(self._words(error.key, reference=reference), Outcome.REFUSED)
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
        if self.turn.phase >= Phase.PROMPTING and isinstance(error, Unreachable | TimedOut | HostFault):
            text = joined(self._reader.text(), self._words(Key.CHAT_LOST_CONTACT, reference=reference))
            return Reply(text, Outcome.FAILED, End.LATE)
        text = joined(self._reader.text(), failure_text(error, self._words, reference))
        return Reply(text, Outcome.FAILED)

    async def _ask(self, prompt: Prompt, live: LiveAnswer) -> None:
        """Send the prompt once and watch its turn; return at its end or at the wait limit.

        A binding that moves before the prompt is out is followed: the message runs where the chat is now. A prompt that
        somebody's stop has parked on the host is taken out of its queue, and only then sent anew.
        """
        for attempt in range(_TRIES):
            try:
                session, binding = await self._bound(title_of(prompt))
                self.host_turn = HostTurn(self._bot, session, self._reader, self._dialogue, live.changed)
                self._dialogue.follow(session, self._reader, binding)
                send = partial(self._send, prompt, session, binding)
                await self._or_withdrawn(self.host_turn.over(send, patience=PATIENCE_SECONDS, limit=ANSWER_SECONDS))
            except StaleBinding:
                if attempt == _TRIES - 1:
                    raise
            except PromptParked:
                if attempt == _TRIES - 1 or not await self._taken_back():
                    raise
                self._reader = TurnReader(RequestId(self._bot.mint()))
            else:
                return

    async def _or_withdrawn(self, work: Coroutine[object, object, None]) -> None:
        await first_of(work, self._until_withdrawn())

    async def _until_withdrawn(self) -> None:
        await self._withdrawn.wait()
        raise Withdrawn

    async def _taken_back(self) -> bool:
        return self.host_turn is not None and await self.host_turn.take_back([self._reader.request])

    async def _bound(self, title: str | None) -> tuple[SessionId, Binding]:
        """Return the chat's session; an unbound chat gets one, its id written down before it is made.

        ``title`` is for the new one, None to leave that to the host.
        """
        chats, chat = self._bot.state.chats, self.turn.chat
        binding = await chats.get(chat)
        if binding.session is not None:
            return binding.session, binding
        session = SessionId(f"session-{self._bot.mint()}")
        folder = (await self._bot.place(chat)).folder
        await self._save(replace(self.turn, phase=Phase.CREATING, session=session, cwd=folder))
        await create_session(self._bot, chat, session, folder)
        binding = await chats.bind(chat, session, expected=binding)
        if title is not None:
            await self._name(session, title)
        return session, binding

    async def _name(self, session: SessionId, title: str) -> None:
        """Name a session; one without a name is as good, so a failure is only recorded."""
        try:
            async with self._bot.clock.timeout(TITLE_SECONDS):
                await self._bot.harness.rename_session(session, title)
        except (HarnessError, TimeoutError) as error:
            self._record(error)

    async def _send(self, prompt: Prompt, session: SessionId, binding: Binding) -> None:
        async with self._prompts.parts(prompt, session, self._words) as parts, self._sending:
            if self._withdrawn.is_set():
                raise Withdrawn
            if await self._bot.state.chats.get(self.turn.chat) != binding:
                raise StaleBinding
            request, phase = self._reader.request, max(self.turn.phase, Phase.PROMPTING)
            await self._save(replace(self.turn, phase=phase, session=session, request=request, binding=binding))
            await self._bot.harness.prompt(session, parts, request=request)
            await self._note(replace(self.turn, phase=Phase.RUNNING))

    # -- while it runs ----------------------------------------------------------------------------------------------

    async def stop(self) -> StopOutcome:
        """Stop this turn and no other; a prompt that has not begun on the host is taken back. Raises HarnessError."""
        async with self._sending:
            if self.host_turn is None or self.turn.request is None:
                self._withdrawn.set()
                return StopOutcome.WITHDRAWN
        return await self.host_turn.stop()

    async def steer(self, text: str) -> SteerOutcome:
        """Add an instruction to this turn. Raises HarnessError."""
        return SteerOutcome.IDLE if self.host_turn is None else await self.host_turn.steer(text)

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

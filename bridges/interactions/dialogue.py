"""One turn's talk with whoever started it, about what the host asks meanwhile.

One thing is asked at a time: a question before any approval, so that no word said to a question can allow a tool call,
and approvals in the host's order. Words count as an answer only when what they answer had been sent, as a whole, before
they came in. Everything ends with the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from bridges.bot import RunningBot
from bridges.interactions.approval import Approval, arguments_of, decision_in
from bridges.interactions.matter import LONGEST, Matter, Notices
from bridges.interactions.question import QuestionSet
from bridges.message import InboundMessage, ReplyTarget
from commands.budget import utf16_length
from commands.model import Binding, ChatKind, Outcome, SenderId
from harness_client.errors import HarnessError
from harness_client.streams import ApprovalAsked, QuestionAsked
from harness_client.turn import TurnReader
from harness_client.types import InteractionId, SessionId
from i18n import Key, Words

MOST_WAITING: Final = 20
"""Matters that may wait in one turn; one more is turned down."""

Answering = Callable[[], Awaitable[Outcome]]
"""Takes a message as an answer, and says what came of it."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Whose turn it is. ``approves``: whether tool calls may be approved in this chat at all."""

    target: ReplyTarget
    actor: SenderId
    kind: ChatKind
    approves: bool
    recovered: bool = False
    """An earlier process began the turn: what it asked then may have been seen, or not, and is turned down."""


class _Asked:
    """A matter in this dialogue."""

    __slots__ = ("answering", "matter", "over", "shown")

    def __init__(self, matter: Matter) -> None:
        self.matter = matter
        self.shown: object | None = None
        """A new token each time it was sent as a whole; None while it was not."""
        self.answering = False
        self.over = False


class Ears(Protocol):
    """What a dialogue needs of whoever listens to the host."""

    def hear(self, session: SessionId, dialogue: Dialogue) -> None:
        """Hand to ``dialogue`` what the host asks in ``session`` from now on, and what waits there already."""

    def decided(self, opening: Opening) -> None:
        """Note that an approval is over."""


class Dialogue:
    """See the module."""

    def __init__(self, bot: RunningBot, tasks: asyncio.TaskGroup, opening: Opening, ears: Ears) -> None:
        self._bot = bot
        self._tasks = tasks
        self._opening = opening
        self._ears = ears
        self._reader: TurnReader | None = None
        self._binding: Binding | None = None
        self._news = asyncio.Event()
        self._lock = asyncio.Lock()
        self._known: set[InteractionId] = set()
        self._asked: list[_Asked] = []
        self._closed = False
        self.stopping = False
        """Set while the turn is being stopped: nothing is answered then, and nobody is told that a matter is gone."""

    @property
    def waits(self) -> bool:
        """Whether something waits for a person."""
        return any(not each.over for each in self._asked)

    def follow(self, session: SessionId, reader: TurnReader, binding: Binding | None) -> None:
        """Take part in the turn of ``reader``, in a chat bound as ``binding`` says."""
        self._reader = reader
        self._binding = binding
        self._ears.hear(session, self)
        self.changed()

    def changed(self) -> None:
        """Say that the reader may know more."""
        self._news.set()

    # -- from the host ----------------------------------------------------------------------------------------------

    def known(self) -> frozenset[InteractionId]:
        """Return what is pending as far as this dialogue knows."""
        return frozenset(self._known)

    def take(self, asked: QuestionAsked | ApprovalAsked, parent: SessionId | None) -> None:
        """Take what the host asks; telling it again changes nothing."""
        if self._closed or asked.id in self._known:
            return
        self._known.add(asked.id)
        self._spawn(partial(self._admit, asked, parent))

    def gone(self, interaction: InteractionId, outcome: str | None) -> None:
        """Take it that the host waits no more; our own answers are told by their receipts instead."""
        self._known.discard(interaction)
        for each in self._asked:
            if each.matter.id == interaction and not each.over and not each.answering:
                each.over = True
                self._spawn(partial(self._tell_gone, each, outcome))

    def close(self) -> None:
        """End all that was asked: the turn is over."""
        self._closed = True
        for each in self._asked:
            self._end(each)
        self._asked.clear()
        self._known.clear()
        self.changed()

    async def withdraw(self, notice: Callable[[Notices], Key]) -> None:
        """Turn down everything that waits, and say why."""
        async with self._lock:
            for each in [each for each in self._asked if not each.over]:
                await self._turn_down(each.matter, notice(each.matter.notices))
                self._end(each)
            self._asked.clear()

    async def moved(self) -> None:
        """Turn everything down when the chat talks to another session now."""
        if self.waits and await self._has_moved():
            await self.withdraw(lambda notices: notices.switched)

    async def _has_moved(self) -> bool:
        return await self._bot.state.chats.get(self._opening.target.chat) != self._binding

    async def _admit(self, asked: QuestionAsked | ApprovalAsked, parent: SessionId | None) -> None:
        await self._until_begun()
        async with self._lock:
            if not self._pends(asked.id):
                return
            words = await self._words()
            matter, refusal = await self._judged(asked, parent, words)
            if refusal is not None:
                await self._turn_down(matter, refusal)
            elif self._pends(asked.id):
                self._asked.append(_Asked(matter))
                self._asked.sort(key=lambda each: each.matter.rank)
                await self._show()

    def _pends(self, interaction: InteractionId) -> bool:
        return not self._closed and interaction in self._known

    async def _until_begun(self) -> None:
        """Wait until the turn that runs is ours: before, the host may be asking somebody else."""
        while not self._closed and (self._reader is None or not self._reader.begun):
            self._news.clear()
            await self._news.wait()

    async def _judged(
        self, asked: QuestionAsked | ApprovalAsked, parent: SessionId | None, words: Words
    ) -> tuple[Matter, Key | None]:
        """Return the matter, and why it cannot be put to the person, if so."""
        opening = self._opening
        full = len(self._asked) >= MOST_WAITING
        if isinstance(asked, QuestionAsked):
            questions = QuestionSet(self._bot, asked, parent)
            if opening.recovered:
                return questions, Key.QUESTION_RESTARTED
            if full or any(isinstance(each.matter, QuestionSet) and not each.over for each in self._asked):
                return questions, Key.QUESTION_SECOND
            return questions, None if questions.fits(words) else Key.QUESTION_UNSHOWN
        if opening.recovered:
            return Approval(self._bot, asked, parent), Key.APPROVAL_RESTARTED
        if not opening.approves:
            return Approval(self._bot, asked, parent), Key.APPROVAL_GROUP
        arguments = await arguments_of(self._bot, asked, parent, opening.actor)
        approval = Approval(self._bot, asked, parent, arguments)
        whole = arguments is not None and utf16_length(approval.text(words)) <= LONGEST
        return approval, None if whole and not full else Key.APPROVAL_UNSHOWN

    async def _turn_down(self, matter: Matter, notice: Key) -> None:
        try:
            await matter.withdraw()
        except HarnessError as error:
            self._known.discard(matter.id)  # asked again, it is turned down again
            reference = self._bot.references.record(error, actor=self._opening.actor, session=None)
            await self._say((await self._words())(Key.ASKED_STUCK, reference=reference))
        else:
            await self._say((await self._words())(notice))

    async def _tell_gone(self, asked: _Asked, outcome: str | None) -> None:
        async with self._lock:
            if not self._closed and not self.stopping:
                await self._say(asked.matter.elsewhere(outcome, await self._words()))
            self._end(asked)
            await self._show()

    # -- from the chat ----------------------------------------------------------------------------------------------

    def offer(self, message: InboundMessage) -> Answering | None:
        """Return how to take ``message`` as an answer; None when it is none. What it can answer is fixed now."""
        if not self._asked:
            return None
        asked = self._asked[0]
        if message.sender == self._opening.actor:
            return partial(self._answer, message, asked, asked.shown)
        if isinstance(asked.matter, Approval) and decision_in(message.text) is not None:
            return partial(self._refuse, Key.APPROVAL_NOT_YOURS)
        return None

    async def _answer(self, message: InboundMessage, asked: _Asked, shown: object | None) -> Outcome:
        async with self._lock:
            words = await self._words()
            if asked.over or self.stopping:
                return await self._refuse(asked.matter.notices.already)
            if asked is not self._asked[0] or shown is None or shown is not asked.shown:
                self._asked[0].shown = None
                await self._show()
                return Outcome.REFUSED
            if message.attachments:
                return await self._refuse(asked.matter.notices.text_only)
            if not await self._has_moved():
                return await self._hear(asked, message.text, words)
        await self.moved()
        return Outcome.REFUSED

    async def _hear(self, asked: _Asked, text: str, words: Words) -> Outcome:
        asked.answering = True
        try:
            heard = await asked.matter.hear(text, words)
        except HarnessError as error:
            reference = self._bot.references.record(error, actor=self._opening.actor, session=None)
            await self._say(words(asked.matter.notices.failed, reference=reference))
            asked.shown = None
            await self._show()
            return Outcome.FAILED
        finally:
            asked.answering = False
        if heard.over:
            asked.over = True
        if heard.text:
            await self._say(heard.text)
        if heard.over:
            self._end(asked)
        elif heard.again:
            asked.shown = None
        await self._show()
        return Outcome.OK

    async def _refuse(self, key: Key) -> Outcome:
        await self._say((await self._words())(key))
        return Outcome.REFUSED

    # -- both -------------------------------------------------------------------------------------------------------

    async def _show(self) -> None:
        """Send what is to be answered now. Until all of it is out, nothing answers it."""
        if self._closed or not self._asked or self._asked[0].shown is not None:
            return
        first, *others = self._asked
        for each in others:
            each.shown = None
        words = await self._words()
        text = first.matter.text(words)
        if self._opening.kind is ChatKind.GROUP:
            text = f"{text}\n{words(Key.ASKED_IN_GROUP)}"
        if await self._say(text):
            first.shown = object()

    def _end(self, asked: _Asked) -> None:
        asked.over = True
        self._known.discard(asked.matter.id)
        if asked in self._asked and not self._closed:
            self._asked.remove(asked)
        if isinstance(asked.matter, Approval):
            self._ears.decided(self._opening)

    async def _words(self) -> Words:
        return await self._bot.words(self._opening.target.chat)

    async def _say(self, text: str) -> bool:
        return await self._bot.replies.reply(self._opening.target, (text,), aside=True)

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        opening = self._opening
        self._tasks.create_task(self._bot.safely(work, reply_to=opening.target, sender=opening.actor))

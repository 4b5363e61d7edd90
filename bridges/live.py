"""The visible side of one answer while it is being made: a live carrier, an edited message, or the final text only.

Every path ends the carrier: :meth:`LiveAnswer.finish`, or leaving the context.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol, Self

import structlog

from bridges.bot import RunningBot
from bridges.message import (
    AnswerStream,
    EditsMessages,
    NotSent,
    ReplyTarget,
    RetryAfter,
    SendOutcome,
    Sent,
    SentId,
    ShowsTyping,
    StreamsAnswers,
)
from bridges.split import split_answer, whole

_log = structlog.get_logger(__name__)

_TYPING_SHARE = 0.8
"""The typing sign is renewed after this share of the time it lasts."""

_LONGEST_WAIT = 30.0
"""Seconds a platform may ask us to wait before the last edit; a longer wait sends a new message instead."""

_ABANDON_SECONDS = 0.3
"""How long ending a carrier may take when the program is ending."""

NoteCarrier = Callable[[SentId], Awaitable[None]]
"""Writes down the message that carries the answer, so that a restart can end it."""


class _Surface(Protocol):
    """One way to show an answer."""

    @property
    def pace(self) -> float:
        """Seconds between two states of it."""

    async def show(self, text: str) -> None:
        """Show the answer so far."""

    async def finish(self, text: str) -> bool:
        """Show the final text; return whether all of it was sent."""

    async def abandon(self) -> None:
        """End what is open and cannot be ended by a later process."""


class LiveAnswer:
    """Shows one answer as it grows. ``text`` is asked for the answer so far, at the channel's own pace."""

    def __init__(self, bot: RunningBot, target: ReplyTarget, text: Callable[[], str], note: NoteCarrier) -> None:
        self._bot = bot
        self._target = target
        self._text = text
        self._surface = _surface(bot, target, note)
        self._changed = asyncio.Event()
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._show()), asyncio.create_task(self._type())]
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._closing:
            with contextlib.suppress(TimeoutError):
                async with self._bot.clock.timeout(_ABANDON_SECONDS):
                    await self._surface.abandon()

    def changed(self) -> None:
        """Say that the text may have changed."""
        self._changed.set()

    async def finish(self, text: str) -> bool:
        """Show the final text and end the carrier; return whether the whole answer was sent.

        A carrier that is just being opened or updated gets to its end first, so that none is left behind. A channel
        that failed to show the answer growing still gets the final text.
        """
        self._closing = True
        self._changed.set()
        show, typing = self._tasks
        typing.cancel()
        await asyncio.wait([show])
        if not show.cancelled() and (error := show.exception()) is not None:
            _log.error("live answer failed", channel=self._target.chat.channel, error=type(error).__name__)
        return await self._surface.finish(text)

    async def _show(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._closing:
                return
            text = whole(self._text())
            if text.strip():
                self._tasks[1].cancel()
                await self._surface.show(text)
                await self._bot.clock.sleep(self._surface.pace)

    async def _type(self) -> None:
        channel = self._bot.channel
        if not isinstance(channel, ShowsTyping):
            return
        while True:
            await channel.typing(self._target)
            await self._bot.clock.sleep(channel.typing_seconds * _TYPING_SHARE)


def _surface(bot: RunningBot, target: ReplyTarget, note: NoteCarrier) -> _Surface:
    plain = _FinalOnly(bot, target)
    surface = _Edited(bot, bot.channel, target, note) if isinstance(bot.channel, EditsMessages) else plain
    return _Streamed(bot, bot.channel, target, surface) if isinstance(bot.channel, StreamsAnswers) else surface


class _FinalOnly:
    """The channel can only send."""

    pace = 0.0

    def __init__(self, bot: RunningBot, target: ReplyTarget) -> None:
        self._bot = bot
        self._target = target

    async def show(self, text: str) -> None:
        """Nothing to show before the end."""

    async def finish(self, text: str) -> bool:
        return await self._bot.replies.reply(self._target, split_answer(text, self._bot.channel.limits))

    async def abandon(self) -> None:
        """Nothing is open; a message that was growing is known to the state."""


class _Streamed:
    """The channel has a carrier, which keeps its own pace on slow platforms; ``otherwise`` where it has none.

    A carrier holds what one message holds: the rest of a longer answer follows at the end.
    """

    def __init__(self, bot: RunningBot, channel: StreamsAnswers, target: ReplyTarget, otherwise: _Surface) -> None:
        self._bot = bot
        self._channel = channel
        self._target = target
        self._otherwise = otherwise
        self._asked = False
        self._shown = ""
        self._stream: AnswerStream | None = None

    @property
    def pace(self) -> float:
        return self._otherwise.pace if self._asked and self._stream is None else 0.05

    async def show(self, text: str) -> None:
        if not self._asked:
            self._asked = True
            self._stream = await self._channel.begin(self._target)
        if self._stream is None:
            await self._otherwise.show(text)
        else:
            self._shown = text
            await self._stream.update(text)

    async def finish(self, text: str) -> bool:
        if self._stream is not None:
            head, *rest = split_answer(text, self._bot.channel.limits)
            outcome = await self._stream.finish(head)
            if isinstance(outcome, Sent):
                return not rest or await self._bot.replies.reply(self._target, tuple(rest))
            if outcome is NotSent.UNKNOWN:
                return False
        return await self._otherwise.finish(text)

    async def abandon(self) -> None:
        if self._stream is not None:
            await self._stream.finish(split_answer(self._shown, self._bot.channel.limits)[0])


class _Edited(_FinalOnly):
    """The channel can edit what it sent: one message grows until it is full, the rest follows at the end."""

    def __init__(self, bot: RunningBot, channel: EditsMessages, target: ReplyTarget, note: NoteCarrier) -> None:
        super().__init__(bot, target)
        self._channel = channel
        self._note = note
        self._message: SentId | None = None
        self._opened = False
        self._shown = ""
        self.pace = channel.pace

    async def show(self, text: str) -> None:
        head = split_answer(text, self._bot.channel.limits)[0]
        if head == self._shown:
            return
        if self._message is not None:
            outcome = await self._edit(self._message, head)
        elif self._opened:
            return
        else:
            outcome = await self._bot.channel.send(self._target, head)
            self._opened = not isinstance(outcome, RetryAfter)
            if isinstance(outcome, Sent) and outcome.id is not None:
                self._message = outcome.id
                await self._note(outcome.id)
        if isinstance(outcome, Sent):
            self._shown = head
        asked = outcome.seconds if isinstance(outcome, RetryAfter) else 0.0
        self.pace = min(_LONGEST_WAIT, max(self._channel.pace, asked))

    async def finish(self, text: str) -> bool:
        if self._message is None:
            return await super().finish(text)
        head, *rest = split_answer(text, self._bot.channel.limits)
        if head != self._shown and not await self._edit_surely(self._message, head):
            return await super().finish(text)
        return not rest or await self._bot.replies.reply(self._target, tuple(rest))

    async def _edit_surely(self, message: SentId, head: str) -> bool:
        """Edit, and once more where the platform says when; an edit may be repeated, it cannot double anything."""
        outcome = await self._edit(message, head)
        if isinstance(outcome, RetryAfter) and outcome.seconds <= _LONGEST_WAIT:
            await self._bot.clock.sleep(outcome.seconds)
            outcome = await self._edit(message, head)
        elif outcome in (NotSent.REAUTHENTICATE, NotSent.UNKNOWN):
            outcome = await self._edit(message, head)
        return isinstance(outcome, Sent)

    async def _edit(self, message: SentId, head: str) -> SendOutcome:
        return await self._channel.edit(self._target, message, head)

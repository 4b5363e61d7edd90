"""One ordered way out per chat: segments in order, paced, and each sent at most once.

A delivery waits its turn behind the earlier ones of its chat and never beside those of another chat. The first segment
that is neither sent nor kept by its channel ends it: what follows makes no sense then, and nothing is run again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import structlog

from bridges.message import (
    Channel,
    Kept,
    Limits,
    NotSent,
    RationsReplies,
    ReplyTarget,
    RetryAfter,
    SendOutcome,
    SendsReplies,
    Sent,
    SentId,
)
from commands.model import ChatKey
from harness_client.clock import SYSTEM_CLOCK, Clock

MAX_WAITING: Final = 128
"""Deliveries that may wait in one chat; one more is refused. More than the commands of a bot that run at once
(:mod:`bridges.intake`): none of those that were taken goes without its reply."""

SEND_SECONDS: Final = 60.0
"""How long one send may take before its outcome counts as unknown."""

RETRY_SECONDS: Final = 60.0
"""How long all waits together that the platform asks for may hold up one message."""

RETRIES: Final = 5
"""How often the platform may ask for them: a "wait 0 s" could go on for ever."""

Splitter = Callable[[str, Limits], Sequence[str]]
"""Cuts a text into messages the platform holds, losing nothing and tearing no grapheme cluster."""

RestWaits = Callable[[ChatKey], Awaitable[str]]
"""Says, in the chat's language, that more is to come once its person writes again."""

Observer = Callable[[str, float], None]
"""Told the outcome and the seconds of each send, for metrics."""


class End(StrEnum):
    """How a delivery ended: sent as a whole, or why its first unsent segment was not."""

    SENT = "sent"
    KEPT = "kept"
    """Nothing was refused; the channel sends the rest when the person writes again."""
    RATE_LIMITED = "rate-limited"
    UNAUTHENTICATED = "unauthenticated"
    WINDOW_CLOSED = "window-closed"
    BLOCKED = "blocked"
    TOO_LONG = "too-long"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    """That segment may or may not have arrived."""
    OVERLOADED = "overloaded"
    CLOSED = "closed"


_ENDS: Final = {
    NotSent.REAUTHENTICATE: End.UNAUTHENTICATED,
    NotSent.WINDOW_CLOSED: End.WINDOW_CLOSED,
    NotSent.BLOCKED: End.BLOCKED,
    NotSent.TOO_LONG: End.TOO_LONG,
    NotSent.REJECTED: End.REJECTED,
    NotSent.UNKNOWN: End.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a delivery. ``sent`` names the messages that certainly arrived, in order."""

    end: End
    sent: tuple[SentId | None, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all of it was sent, or will be."""
        return self.end in {End.SENT, End.KEPT}


@dataclass(slots=True)
class _Job:
    """A delivery on its way."""

    target: ReplyTarget
    messages: Sequence[tuple[str, ...]]
    """One segment each, or all of them for a channel that sends whole replies."""
    report: asyncio.Future[Report]
    aside: bool = False
    sent: list[SentId | None] = field(default_factory=list)
    in_flight: bool = False

    def end(self, end: End) -> None:
        """Report to whoever still waits; further ends say nothing new."""
        if not self.report.done():
            self.report.set_result(Report(end, tuple(self.sent)))


class _Chat:
    """The queue of one chat, and the task that empties it."""

    __slots__ = ("jobs", "next_send", "task")

    def __init__(self) -> None:
        self.jobs: deque[_Job] = deque()
        self.next_send = 0.0
        self.task: asyncio.Task[None] | None = None


class Delivery:
    """Sends for one bot. A chat costs memory only while it has something to send, or must wait before it may."""

    def __init__(
        self,
        channel: Channel,
        split: Splitter,
        *,
        clock: Clock = SYSTEM_CLOCK,
        observe: Observer | None = None,
        rest_waits: RestWaits | None = None,
    ) -> None:
        """Where replies are counted the last one says ``rest_waits`` if more than one message is still to be sent."""
        self._channel = channel
        self._split = split
        self._rest_waits = rest_waits
        self._clock = clock
        self._observe = observe
        self._chats: dict[ChatKey, _Chat] = {}
        self._closed = False

    async def deliver(self, target: ReplyTarget, segments: Sequence[str], *, aside: bool = False) -> Report:
        """Send ``segments`` in order, behind what already waits in this chat; blank ones are left out.

        ``aside``: the answer is still to come, see :class:`bridges.message.RationsReplies`.
        A caller that is cancelled stops the delivery before its next segment.
        """
        messages = self._messages([segment for segment in segments if segment.strip()])
        if self._closed:
            return Report(End.CLOSED)
        chat = self._chats.setdefault(target.chat, _Chat())
        if len(chat.jobs) >= MAX_WAITING:
            return Report(End.OVERLOADED)
        job = _Job(target, messages, asyncio.get_running_loop().create_future(), aside)
        chat.jobs.append(job)
        if chat.task is None:
            chat.task = asyncio.create_task(self._serve(target.chat, chat), name=f"delivery {target.chat.channel}")
        return await job.report

    async def reply(self, target: ReplyTarget, segments: tuple[str, ...], *, aside: bool = False) -> bool:
        """Deliver, and say whether all of it was sent, or will be."""
        return (await self.deliver(target, segments, aside=aside)).complete

    @property
    def waiting(self) -> int:
        """Return how many deliveries are under way or wait."""
        return sum(len(chat.jobs) for chat in self._chats.values())

    async def close(self, seconds: float) -> None:
        """Take nothing more, give what waits at most ``seconds``, then give it up. Again is no error."""
        self._closed = True
        tasks = {chat.task for chat in self._chats.values() if chat.task is not None}
        if not tasks:
            return
        try:
            async with self._clock.timeout(seconds):
                await asyncio.wait(tasks)
        except TimeoutError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _serve(self, key: ChatKey, chat: _Chat) -> None:
        try:
            while chat.jobs:
                job = chat.jobs[0]
                job.end(await self._send_all(chat, job))
                chat.jobs.popleft()
                if not chat.jobs and not self._closed:
                    await self._pause(chat)  # the next delivery to this chat must find the pace kept
        finally:
            del self._chats[key]
            for job in chat.jobs:
                job.end(End.UNKNOWN if job.in_flight else End.CLOSED)

    async def _send_all(self, chat: _Chat, job: _Job) -> End:
        end = End.SENT
        for position, message in enumerate(job.messages, 1):
            if position < len(job.messages) and (notice := await self._notice(job)) is not None:
                await self._send(chat, job, (notice,))
            match await self._send(chat, job, message):
                case Sent(name):
                    job.sent.append(name)
                case Kept():
                    end = End.KEPT
                case failed:
                    return failed
        return end

    async def _notice(self, job: _Job) -> str | None:
        """Return what to say with the last reply there is; None while there are others, and when it is unknown."""
        if self._rest_waits is None or job.aside or not isinstance(self._channel, RationsReplies):
            return None
        try:
            left = await self._channel.replies_left(job.target)
            return await self._rest_waits(job.target.chat) if left == 1 else None
        except OSError:
            return None

    async def _send(self, chat: _Chat, job: _Job, message: tuple[str, ...]) -> Sent | Kept | End:
        """Send one message; again only where the platform has said that the first one did not arrive."""
        patience, logins = RETRY_SECONDS, 1
        for _ in range(RETRIES + 1):
            await self._pause(chat)
            if job.report.cancelled():
                return End.CLOSED
            outcome = await self._send_once(chat, job, message)
            match outcome:
                case Sent() | Kept():
                    return outcome
                case RetryAfter(seconds) if seconds <= patience:
                    patience -= max(0.0, seconds)
                    chat.next_send = max(chat.next_send, self._clock.monotonic() + seconds)
                case RetryAfter():
                    return End.RATE_LIMITED
                case NotSent.REAUTHENTICATE if logins:
                    logins -= 1
                case _:
                    return _ENDS[outcome]
        return End.RATE_LIMITED

    async def _send_once(self, chat: _Chat, job: _Job, message: tuple[str, ...]) -> SendOutcome:
        began = self._clock.monotonic()
        outcome: SendOutcome = NotSent.UNKNOWN
        job.in_flight = True
        try:
            async with self._clock.timeout(SEND_SECONDS):
                outcome = await self._put(job, message)
        except Exception as error:  # noqa: BLE001 - a channel that raises leaves open whether the message went out
            structlog.get_logger(__name__).error(
                "send raised", channel=job.target.chat.channel, error=type(error).__name__
            )
        finally:
            chat.next_send = self._clock.monotonic() + self._channel.limits.gap
        job.in_flight = False
        if self._observe is not None:
            self._observe(_label(outcome), self._clock.monotonic() - began)
        return outcome

    def _messages(self, segments: list[str]) -> list[tuple[str, ...]]:
        if isinstance(self._channel, SendsReplies):
            return [tuple(segments)] if segments else []
        limits = self._channel.limits
        return [(text,) for segment in segments for text in self._split(segment, limits) if text.strip()]

    async def _put(self, job: _Job, message: tuple[str, ...]) -> SendOutcome:
        if isinstance(self._channel, SendsReplies):
            return await self._channel.send_reply(job.target, message)
        if job.aside and isinstance(self._channel, RationsReplies):
            return await self._channel.send_aside(job.target, message[0])
        return await self._channel.send(job.target, message[0])

    async def _pause(self, chat: _Chat) -> None:
        if (wait := chat.next_send - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)


def _label(outcome: SendOutcome) -> str:
    match outcome:
        case Sent():
            return "sent"
        case Kept():
            return "kept"
        case RetryAfter():
            return "retry-after"
        case _:
            return outcome.value

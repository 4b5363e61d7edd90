"""Watching one prompt until its turn has ended, whatever happens to the link.

The stream of a host has no resume (facts HARNESS 3.4, 4.5): after each break the tail of the log is read again, pages
are read backwards until the gap is closed, and the watch goes on. Nothing here sends anything to the model but the
one prompt it is handed, one time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from harness_client.client import FollowItem, HarnessClient, Page, Snapshot
from harness_client.clock import Clock
from harness_client.errors import HarnessError, HostFault, SessionNotFound, TimedOut, Unreachable, Unsupported
from harness_client.events import Event, UserMessage
from harness_client.turn import TurnReader
from harness_client.types import SessionId

GAP_PAGES = 20
"""Pages of 50 messages read at most to close one gap: a turn longer than that is read from where the pages end."""

UNSEEN_SECONDS = 3.0
"""How long a prompt may be nowhere to be seen before the host is asked whether it has it at all; asked twice."""

FIRST_DELAY, LONGEST_DELAY = 0.25, 10.0


class PromptLost(Exception):
    """The host has no trace of the prompt: not in the log, not in its queue, and nothing runs."""


class PromptParked(Exception):
    """The prompt waits in the queue of a host where nothing runs: somebody's stop parked it (facts HARNESS 6)."""


class _Place(Enum):
    """Where a prompt is that has not come up in the log."""

    UNDER_WAY = auto()
    """Begun, or about to, or nobody knows."""
    PARKED = auto()
    NOWHERE = auto()


@dataclass(frozen=True, slots=True)
class Watch:
    """One watched prompt. ``changed`` is called after every change of ``reader``; keep it quick."""

    harness: HarnessClient
    session: SessionId
    reader: TurnReader
    clock: Clock
    changed: Callable[[], None]
    sent: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the sending is over, however it went, or was before the watch began."""

    async def until_ended(self, send: Callable[[], Awaitable[None]] | None = None, *, patience: float) -> None:
        """Return once the turn has ended.

        ``send`` is called once, when the stream stands and nothing of the answer can be missed; it hands the prompt
        over. A broken link is mended with growing delays; one that stays broken for ``patience`` seconds raises
        Unreachable, TimedOut or HostFault. Before ``send`` was called every failure is raised at once: nothing was
        mended because nothing was at stake. Every other HarnessError is raised as it comes.
        """
        if send is None:
            self.sent.set()
        delay, broken_since = FIRST_DELAY, self.clock.monotonic()
        while not self._ended():
            try:
                async with self.harness.follow(self.session) as items:
                    async for item in items:
                        if send is not None and isinstance(item, Snapshot):
                            self.reader.skip_to(item.cursor)
                            sending, send = send, None
                            await self._send(sending)
                        else:
                            await self._take(item)
                        delay, broken_since = FIRST_DELAY, self.clock.monotonic()
                        if self._ended():
                            return
            except (Unreachable, TimedOut, HostFault):
                if send is not None or self.clock.monotonic() - broken_since > patience:
                    raise
            await self.clock.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)

    async def _send(self, sending: Callable[[], Awaitable[None]]) -> None:
        try:
            await sending()
        finally:
            self.sent.set()

    def _ended(self) -> bool:
        return self.reader.ending is not None

    async def until_lost(self) -> None:
        """Raise PromptLost or PromptParked when the host turns out not to run the prompt; otherwise never return."""
        await self.sent.wait()
        before = _Place.UNDER_WAY
        while True:
            await self.clock.sleep(UNSEEN_SECONDS)
            place = await self._place()
            if place is before and place is not _Place.UNDER_WAY:
                raise PromptParked if place is _Place.PARKED else PromptLost
            before = place

    async def _place(self) -> _Place:
        if self.reader.begun:
            return _Place.UNDER_WAY
        try:
            waits = await self._waits()
            idle = not await self.harness.running(self.session) and not self.reader.begun
        except SessionNotFound:
            raise
        except HarnessError:
            return _Place.UNDER_WAY  # no answer is no proof of absence
        if not idle:
            return _Place.UNDER_WAY
        return _Place.PARKED if waits else _Place.NOWHERE

    async def _waits(self) -> bool:
        try:
            queue = (await self.harness.projections(self.session)).queue or ()
        except Unsupported:
            return False
        return any(item.request == self.reader.request for item in queue)

    async def _take(self, item: FollowItem) -> None:
        if isinstance(item, Snapshot):
            for event in await self._tail(item.page):
                self.reader.take(event)
            self.reader.resume(item.partial)
            self.changed()
        elif self.reader.take(item):
            self.changed()

    async def _tail(self, page: Page) -> list[Event]:
        """Return the log's tail from where the reader stands, or from the prompt, whichever is later."""
        pages = [page]
        while not self._joins(pages[-1]) and pages[-1].has_more and pages[-1].sources and len(pages) < GAP_PAGES:
            oldest = pages[-1]
            pages.append(await self.harness.page(self.session, before=oldest.oldest, through=page.through))
        return [event for older in reversed(pages) for event in older.events]

    def _joins(self, page: Page) -> bool:
        return (page.oldest is not None and page.oldest <= self.reader.last + 1) or any(
            isinstance(event, UserMessage) and event.source is not None and event.source.request == self.reader.request
            for event in page.events
        )

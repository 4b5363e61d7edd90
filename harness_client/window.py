"""The newest messages of a session, by bounded backward reading (spec HISTORY 3).

At most three pages and ten seconds. Pages are merged first and filtered then, for a turn's end may lie on a newer page
than its answer. The newest event of the first page is the snapshot: what is newer on a later page does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from harness_client.clock import Clock
from harness_client.errors import HarnessError, Malformed, TimedOut
from harness_client.events import Event
from harness_client.offload import offload
from harness_client.pages import check_repeat
from harness_client.streams import Page
from harness_client.transcript import CommandTest, MarkRemover, Message, is_open, visible
from harness_client.types import SessionId

PAGE_MESSAGES: Final = 50
"""Messages the host is asked for at a time; it counts injected ones too."""
MAX_PAGES: Final = 3
SECONDS: Final = 10.0
"""For everything: detection, login, cursor, pages, parsing, the running check."""
RUNNING_SECONDS: Final = 2.0
"""Of those, what the running check may take."""
_MANY: Final = 2_000
_LONG: Final = 512 * 1024
"""Events, and characters of their sources, from which on a page is merged off the event loop."""


class PageSource(Protocol):
    """The two reads of :class:`harness_client.client.HarnessClient` that a window needs."""

    async def page(
        self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
    ) -> Page:
        """Read one page; never wakes the session."""

    async def running(self, session: SessionId) -> bool:
        """Whether the host says that the session runs a turn."""


@dataclass(frozen=True, slots=True)
class Window:
    """The newest messages, oldest first."""

    messages: tuple[Message, ...]
    more: bool
    """The host has older events that were not read."""
    running: bool
    """The log ends inside a turn, and the host confirms that it runs."""


async def read_window(
    source: PageSource,
    session: SessionId,
    count: int,
    *,
    clock: Clock,
    is_command: CommandTest,
    without_marks: MarkRemover,
) -> Window:
    """Read the newest ``count`` messages that a person may see, or as many as three pages hold.

    Raises HarnessError: TimedOut after ten seconds, Malformed for pages that break the protocol or contradict each
    other, and whatever ``source`` raises. A failed running check is no error: then ``running`` is False.
    """
    deadline = clock.monotonic() + SECONDS
    log = _Log(partial(visible, is_command=is_command, without_marks=without_marks, newest=count))
    try:
        async with _until(deadline, clock):
            while log.more and len(log.messages) < count and log.pages < MAX_PAGES:
                await log.read(await source.page(session, before=log.oldest, through=log.through, limit=PAGE_MESSAGES))
                if clock.monotonic() > deadline:
                    raise TimedOut("history: the deadline passed while a page was read")
        running = log.open and await _confirmed(source, session, deadline, clock)
        return Window(log.messages, log.more, running)
    finally:
        log.discard()


class _Log:
    """The pages read so far, merged, and what they show."""

    def __init__(self, show: Callable[[Sequence[Event]], tuple[Message, ...]]) -> None:
        self.pages = 0
        self.more = True
        self.oldest: int | None = None
        self.through: int | None = None
        self.messages: tuple[Message, ...] = ()
        self.open = False
        self._show = show
        self._snapshot: int | None = None
        self._events: list[Event] = []
        self._sources: dict[int, str] = {}

    async def read(self, page: Page) -> None:
        """Take the next older page, off the event loop when it is large. Raises Malformed."""
        take = partial(self._take, page)
        await (offload(take) if _is_large(page) else _at_once(take))

    def discard(self) -> None:
        """Let go of the events; of many, one at a time in a thread, for freeing them at once would hold the loop."""
        if len(self._sources) > _MANY:
            asyncio.get_running_loop().run_in_executor(None, _empty, self._events, self._sources)

    def _take(self, page: Page) -> None:
        self._merge(page)
        self.messages = self._show(self._events)
        self.open = is_open(self._events)

    def _merge(self, page: Page) -> None:
        for seq in page.sources.keys() & self._sources.keys():
            check_repeat(self._sources[seq], page.sources[seq])
        if self.pages == 0:
            self._snapshot, self.through = page.newest, page.through
        self.pages += 1
        self.more = page.has_more
        self._advance(page)
        self._events += (
            event
            for event in page.events
            if event.seq not in self._sources and self._snapshot is not None and event.seq <= self._snapshot
        )
        self._events.sort(key=lambda event: event.seq)
        self._sources.update(page.sources)

    def _advance(self, page: Page) -> None:
        """Move the cursor; with more to come it must move strictly back, or reading would never end."""
        if page.has_more and (page.oldest is None or (self.oldest is not None and page.oldest >= self.oldest)):
            raise Malformed("history: the cursor does not move")
        if page.oldest is not None:
            self.oldest = page.oldest if self.oldest is None else min(page.oldest, self.oldest)


def _is_large(page: Page) -> bool:
    return len(page.sources) > _MANY or sum(map(len, page.sources.values())) > _LONG


async def _at_once(work: Callable[[], None]) -> None:
    work()


def _empty(events: list[Event], sources: dict[int, str]) -> None:
    while events:
        events.pop()
    while sources:
        sources.popitem()


@asynccontextmanager
async def _until(deadline: float, clock: Clock) -> AsyncIterator[None]:
    try:
        async with clock.timeout(deadline - clock.monotonic()):
            yield
    except TimeoutError:
        raise TimedOut("history: the deadline passed") from None


async def _confirmed(source: PageSource, session: SessionId, deadline: float, clock: Clock) -> bool:
    try:
        async with clock.timeout(min(RUNNING_SECONDS, deadline - clock.monotonic())):
            return await source.running(session)
    except (HarnessError, TimeoutError):
        return False

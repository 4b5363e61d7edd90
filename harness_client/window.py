"""The newest messages of a session, by bounded backward reading (spec HISTORY 3).

At most three pages and ten seconds. Pages are merged first and filtered then, for a turn's end may lie on a newer page
than its answer. The newest event of the first page is the snapshot: what is newer on a later page does not exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

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
_LARGE: Final = 2_000
"""Events from which on a page is merged off the event loop."""

T = TypeVar("T")


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
    log = _Log()
    async with _until(deadline, clock):
        while True:
            page = await source.page(session, before=log.oldest, through=log.through, limit=PAGE_MESSAGES)
            read = partial(log.read, page, is_command=is_command, without_marks=without_marks)
            messages = await (offload(read) if len(page.sources) > _LARGE else _at_once(read))
            if clock.monotonic() > deadline:
                raise TimedOut("history: the deadline passed while a page was read")
            if len(messages) >= count or not page.has_more or log.pages == MAX_PAGES:
                break
    running = log.open and await _confirmed(source, session, deadline, clock)
    return Window(messages[-count:], page.has_more, running)


class _Log:
    """The pages read so far, merged."""

    def __init__(self) -> None:
        self.pages = 0
        self.oldest: int | None = None
        self.through: int | None = None
        self.open = False
        self._snapshot: int | None = None
        self._events: list[Event] = []
        self._sources: dict[int, str] = {}

    def read(self, page: Page, *, is_command: CommandTest, without_marks: MarkRemover) -> tuple[Message, ...]:
        """Merge the next older page; return all that is visible by now. Raises Malformed."""
        self._merge(page)
        self.open = is_open(self._events)
        return visible(self._events, is_command=is_command, without_marks=without_marks)

    def _merge(self, page: Page) -> None:
        for seq in page.sources.keys() & self._sources.keys():
            check_repeat(self._sources[seq], page.sources[seq])
        if self.pages == 0:
            self._snapshot, self.through = page.newest, page.through
        self.pages += 1
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


async def _at_once(work: Callable[[], T]) -> T:
    return work()


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

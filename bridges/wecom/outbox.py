"""The way out: a reply to the request that is answered, else a message of the bot's own accord.

Every reply is a bubble with an id of its own that ends with exactly one ``finish``. A message goes out finished; an
answer that grows is :class:`Growing`, and is written down first, so that the next process ends what a crash left open.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
from typing import Final

import msgspec
import structlog

from bridges.message import NotSent, RetryAfter, SendOutcome, Sent, SentId
from bridges.pace import Pace, Window
from bridges.unended import Unended
from bridges.wecom.connection import Line, NotConnected, Refused, Unacknowledged
from bridges.wecom.inbound import Route
from harness_client.clock import Clock

MAX_BYTES: Final = 20_480
"""UTF-8 bytes of one text; a longer one loses its ``finish``."""

WINDOWS: Final = (Window(30, 60.0), Window(1_000, 3_600.0))
"""Frames to one chat: replies, what grows, and messages of the bot's own accord together."""

UPDATE_SECONDS: Final = 2.0
"""Between two states of one bubble."""

SPARED: Final = 10
"""Frames of a window that no update uses: ends and messages come first."""

LIFE_SECONDS: Final = 600.0
"""What the platform gives a bubble; then it hangs for ever."""

OPEN_SECONDS: Final = 540.0
"""Ours end before that."""

FINISH_TRIES: Final = 4
LONGEST_WAIT: Final = 30.0
"""Seconds before the next try of a ``finish``."""

UNREACHED_SECONDS: Final = 2.0
SLOWER_SECONDS: Final = 10.0
"""Before the next try where the platform says "slower" and not how much."""

_NO_REPLY: Final = frozenset({846605, 846608, 600039})
"""This request takes no reply (any more): not known, too late, or none in this kind of group."""

_REFUSALS: Final[dict[int, SendOutcome]] = {
    -1: RetryAfter(SLOWER_SECONDS),
    45009: RetryAfter(SLOWER_SECONDS),
    45033: RetryAfter(SLOWER_SECONDS),
    45002: NotSent.TOO_LONG,
    93006: NotSent.BLOCKED,
}

LEFT_OVER: Final = "…"
"""The last state of a bubble whose text is lost; what became of the answer follows as a message."""

_MENTION: Final = re.compile("<(?=@)")


class Bubble(msgspec.Struct, frozen=True):
    """What it takes to end a bubble. ``until``, since the epoch: the platform takes no end after that."""

    id: str
    route: Route
    until: float

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class Outbox:
    """Sends for one bot."""

    def __init__(self, line: Line, unended: Unended, clock: Clock) -> None:
        self.pace = Pace(clock, *WINDOWS)
        self.clock = clock
        self.unended = unended
        self.growing: set[asyncio.Task[None]] = set()
        self._line = line
        self._log = structlog.get_logger(__name__)

    async def send(self, route: Route, text: str) -> SendOutcome:
        """Send one message."""
        outcome = await self.reply(route, f"stream_{uuid.uuid4().hex}", text, finish=True)
        if outcome is not None:
            return outcome
        body = {"chatid": route.chat, "msgtype": "markdown", "markdown": {"content": harmless(text)}}
        outcome = await self._put(route.chat, "aibot_send_msg", body, None)
        return NotSent.WINDOW_CLOSED if outcome is None else outcome

    async def reply(self, route: Route, bubble: str, text: str, *, finish: bool) -> SendOutcome | None:
        """Show ``text`` in a bubble; None when the request takes no reply."""
        content = harmless(text)
        body = {"msgtype": "stream", "stream": {"id": bubble, "finish": finish, "content": content}}
        outcome = await self._put(route.chat, "aibot_respond_msg", body, route.request)
        return Sent(SentId(bubble)) if isinstance(outcome, Sent) else outcome

    async def end(self, bubble: Bubble, text: str) -> SendOutcome:
        """Send the one ``finish``; what was surely not taken is sent again."""
        outcome: SendOutcome | None = None
        for _ in range(FINISH_TRIES):
            outcome = await self.reply(bubble.route, bubble.id, text, finish=True)
            if not isinstance(outcome, RetryAfter):
                break
            await self.clock.sleep(min(outcome.seconds, LONGEST_WAIT))
        await self.unended.end(str(bubble))
        return NotSent.WINDOW_CLOSED if outcome is None else outcome

    async def end_left_over(self) -> None:
        """End what an earlier process left growing, where the platform still takes it; once. Raises OSError."""

        async def end(name: str) -> None:
            with contextlib.suppress(msgspec.DecodeError):  # damaged
                bubble = msgspec.json.decode(name, type=Bubble)
                if self.clock.time() < bubble.until:
                    await self.end(bubble, LEFT_OVER)

        await self.unended.end_left_over(end)

    async def close(self) -> None:
        """Let no bubble grow any more."""
        growing = set(self.growing)
        for task in growing:
            task.cancel()
        await asyncio.gather(*growing, return_exceptions=True)

    async def _put(self, chat: str, command: str, body: object, request: str | None) -> SendOutcome | None:
        wait = self.pace.wait(chat)
        if wait > 0:
            return RetryAfter(wait)
        self.pace.count(chat)
        try:
            await self._line.request(command, body, request)
        except NotConnected:
            return RetryAfter(UNREACHED_SECONDS)
        except Unacknowledged:
            self._log.warning("not acknowledged", command=command)
            return NotSent.UNKNOWN
        except Refused as error:
            self._log.warning("not sent", error=str(error))
            return None if error.code in _NO_REPLY else _REFUSALS.get(error.code, NotSent.REJECTED)
        return Sent(None)


class Growing:
    """One answer in one bubble; see :class:`bridges.message.AnswerStream`."""

    def __init__(self, outbox: Outbox, route: Route) -> None:
        self._outbox = outbox
        self._bubble = Bubble(f"stream_{uuid.uuid4().hex}", route, outbox.clock.time() + LIFE_SECONDS)
        self._text = ""
        self._changed = asyncio.Event()
        self._sending = asyncio.Lock()
        self._over = False
        self._showing: asyncio.Task[None] | None = None

    async def update(self, text: str) -> None:
        """Show the answer so far, or as much of its end as fits, as soon as the pace allows."""
        self._text = harmless(text).encode()[-MAX_BYTES:].decode(errors="ignore")
        self._changed.set()
        if self._showing is None:
            await self._outbox.unended.begin(str(self._bubble))
            self._showing = asyncio.create_task(self._show())
            self._outbox.growing.add(self._showing)
            self._showing.add_done_callback(self._outbox.growing.discard)

    async def finish(self, text: str) -> SendOutcome:
        """See :meth:`bridges.message.AnswerStream.finish`."""
        if self._showing is None:
            await self._outbox.unended.end(str(self._bubble))
            return NotSent.WINDOW_CLOSED
        async with self._sending:  # what is in flight is acknowledged first
            self._showing.cancel()
        await asyncio.wait({self._showing})
        return NotSent.WINDOW_CLOSED if self._over else await self._end(text)

    async def _show(self) -> None:
        """Show every change, and end the bubble while the platform still takes its end."""
        clock, bubble = self._outbox.clock, self._bubble
        until = clock.monotonic() + OPEN_SECONDS
        while True:
            self._changed.clear()
            async with self._sending:
                outcome = await self._outbox.reply(bubble.route, bubble.id, self._text, finish=False)
            if outcome is None:
                self._over = True
                await self._outbox.unended.end(str(bubble))
                return
            if not isinstance(outcome, Sent | RetryAfter) and outcome is not NotSent.UNKNOWN:
                return  # it shows no more of it, and takes its end all the same
            wait = self._outbox.pace.wait(bubble.route.chat, spare=SPARED)
            await clock.sleep(max(UPDATE_SECONDS, wait))
            with contextlib.suppress(TimeoutError):
                async with clock.timeout(until - clock.monotonic()):
                    await self._changed.wait()
            if clock.monotonic() >= until:
                async with self._sending:
                    await self._end(self._text)
                return

    async def _end(self, text: str) -> SendOutcome:
        self._over = True
        return await self._outbox.end(self._bubble, text)


def harmless(text: str) -> str:
    """Return ``text`` with its mentions disarmed and every character one that can be sent."""
    return _MENTION.sub("＜", text.encode("utf-8", "replace").decode())

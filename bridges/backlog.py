"""Messages that wait until their person writes again, for platforms that count or time the replies to a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from bridges.message import Kept, NotSent, SendOutcome, Sent
from bridges.records import R, Records

LONGEST: Final = 24
"""Messages that may wait in one chat."""

MAX_BYTES: Final = 40 * 1024
"""Bytes of JSON they may take together; with what else is kept for a chat they fit one cursor."""


class Waiting(msgspec.Struct):
    """One of them. ``tried`` is set by a first failure; a second one is the last."""

    text: str
    tried: bool = False


class Backlog(msgspec.Struct):
    """What waits in one chat, oldest first; part of the chat's record, which is written down with every change."""

    messages: list[Waiting] = msgspec.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.messages)

    async def keep(self, text: str, records: Records[R], record: R) -> SendOutcome:
        """Let ``text`` wait behind the others, durably; WINDOW_CLOSED when too much waits already."""
        before, self.messages = self.messages, [*self.messages, Waiting(text)]
        try:
            if len(self.messages) <= LONGEST and len(msgspec.json.encode(self.messages)) <= MAX_BYTES:
                await records.save(record)
                return Kept()
        except OSError as error:
            structlog.get_logger(__name__).warning("nothing can be kept", error=type(error).__name__)
        self.messages = before
        return NotSent.WINDOW_CLOSED

    async def send(
        self,
        send: Callable[[str], Awaitable[SendOutcome | None]],
        room: Callable[[], bool],
        save: Callable[[], Awaitable[None]],
    ) -> None:
        """Send what waits while there is ``room`` and until one fails; one that cannot be sent now (None) waits again.

        ``send`` writes the record down before it sends, and the message is out of it by then: a crash loses it rather
        than sending it twice.
        """
        log = structlog.get_logger(__name__)
        while self.messages and room():
            waiting = self.messages.pop(0)
            outcome = await send(waiting.text)
            if isinstance(outcome, Sent):
                continue
            if outcome is None and not waiting.tried:
                self.messages.insert(0, Waiting(waiting.text, tried=True))
                await save()
            else:
                log.warning("a message that waited was not sent", outcome=outcome)
            return

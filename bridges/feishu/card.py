"""An answer that grows in a card: created, sent as a message, filled again and again, ended.

Every change of a card has a number, and the platform drops what comes behind a higher one: the order on the way does
not matter, and the same change may be sent twice. Cards that a crash leaves open are ended by the next process.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Final

import msgspec
import structlog

from bridges.feishu.inbound import Route
from bridges.feishu.outbox import LONGEST_WAIT, LOST_SECONDS, TRIES, Outbox, harmless, outcome_of
from bridges.feishu.rest import Answer, BadSecret, NewCard, Refused, Rest
from bridges.http import CallFailed
from bridges.message import Cursors, NotSent, RetryAfter, SendOutcome, Sent, SentId
from bridges.unended import Unended
from harness_client.clock import Clock

UPDATE_SECONDS: Final = 1.0
"""The least time between two states of a card. Each is a call, and a tenant that pays nothing has 10,000 a month."""

MOST_TEXT: Final = 4_000
"""Characters of one message and of a card (UTF-16 units). However they are escaped they stay below the 30 kB of a card,
and clients are known to cut an element off without a word where it has more than about 10,000."""

OPEN_CARDS: Final = 64
"""Cards of one bot that grow at the same time; further answers come whole."""

LAST: Final = 1_000_000
"""Higher than any number of a change that an earlier process made."""

_OPEN: Final = "open-cards"
_ELEMENT: Final = "answer"
_NO_SCOPE: Final = 99991672


class Cards:
    """The cards of one bot."""

    def __init__(self, rest: Rest, outbox: Outbox, cursors: Cursors, clock: Clock) -> None:
        self.outbox = outbox
        self.clock = clock
        self._rest = rest
        self._unended = Unended(cursors, _OPEN)
        self._offered = True
        self._log = structlog.get_logger(__name__)

    async def begin(self, route: Route) -> Card | None:
        """Send a new card; None when there is none to be had, and none any more once the app lacks the right to it."""
        if not self._offered or len(self._unended) >= OPEN_CARDS:
            return None
        try:
            created = await self._rest.call("POST", "/cardkit/v1/cards", NewCard, body=_entity("", growing=True))
        except (CallFailed, Refused, BadSecret) as error:
            self._offered = not (isinstance(error, Refused) and error.code == _NO_SCOPE)
            self._log.warning("no card: the answer comes whole", error=str(error), again=self._offered)
            return None
        if created.data is None:
            return None
        name = created.data.card_id
        await self._unended.begin(name)
        outcome = await self.outbox.post(route, "interactive", {"type": "card", "data": {"card_id": name}})
        if isinstance(outcome, Sent) and outcome.id is not None:
            return Card(self, name, outcome.id)
        await self.change(name, 1, "PATCH", "/settings", _SETTLED)  # it may have been sent all the same
        await self.ended(name)
        return None

    async def change(self, name: str, number: int, method: str, path: str, body: dict[str, object]) -> SendOutcome:
        """Change a card; lost answers and short waits are gone through. Sent: it shows the change."""
        change = {**body, "sequence": number, "uuid": uuid.uuid4().hex}
        outcome: SendOutcome = NotSent.UNKNOWN
        for left in reversed(range(TRIES)):
            outcome = await self.try_change(name, method, path, change)
            if not left or not (isinstance(outcome, RetryAfter) or outcome is NotSent.UNKNOWN):
                break
            wait = outcome.seconds if isinstance(outcome, RetryAfter) else LOST_SECONDS
            await self.clock.sleep(min(wait, LONGEST_WAIT))
        return outcome

    async def try_change(self, name: str, method: str, path: str, change: dict[str, object]) -> SendOutcome:
        """Change a card, once."""
        try:
            await self._rest.call(method, f"/cardkit/v1/cards/{{}}{path}", Answer, name, body=change)
        except (CallFailed, Refused, BadSecret) as error:
            self._log.warning("card not changed", error=str(error))
            return outcome_of(error)
        return Sent(None)

    async def ended(self, name: str) -> None:
        """Forget a card that grows no more."""
        await self._unended.end(name)

    async def end_left_over(self) -> None:
        """End what an earlier process left open. Raises OSError."""
        await self._unended.end_left_over(lambda name: self.change(name, LAST, "PATCH", "/settings", _SETTLED))


class Card:
    """One answer; see :class:`bridges.message.AnswerStream`."""

    def __init__(self, cards: Cards, name: str, message: SentId) -> None:
        self._cards = cards
        self._name = name
        self._message = message
        self._number = 0
        self._text = ""
        self._shown = ""
        self._refused = False
        self._changed = asyncio.Event()
        self._showing: asyncio.Task[None] | None = None

    async def update(self, text: str) -> None:
        """Show the answer so far, or as much of it as a card holds, as soon as the pace allows."""
        self._text = harmless(text).encode("utf-16-le")[: 2 * MOST_TEXT].decode("utf-16-le", "ignore")
        self._changed.set()
        if self._showing is None:
            self._showing = asyncio.create_task(self._show())

    async def finish(self, text: str) -> SendOutcome:
        """See :meth:`bridges.message.AnswerStream.finish`."""
        if self._showing is not None:
            self._showing.cancel()
            await asyncio.wait({self._showing})
        outcome = await self._end(harmless(text))
        if not isinstance(outcome, Sent) and outcome is not NotSent.UNKNOWN:
            await self._take_away()
        await self._cards.ended(self._name)
        return outcome

    async def _show(self) -> None:
        """Show every change until one is refused, as all are once a card is ten minutes old, or idle for some."""
        while not self._refused:
            await self._changed.wait()
            self._changed.clear()
            if self._text == self._shown:
                continue
            text, wait = self._text, UPDATE_SECONDS
            change = {"content": text, "sequence": self._next(), "uuid": uuid.uuid4().hex}
            outcome = await self._cards.try_change(self._name, "PUT", _CONTENT, change)
            if isinstance(outcome, Sent):
                self._shown = text
            elif isinstance(outcome, RetryAfter):
                self._changed.set()
                wait = max(wait, outcome.seconds)
            else:
                self._refused = outcome is not NotSent.UNKNOWN
            await self._cards.clock.sleep(wait)

    async def _end(self, text: str) -> SendOutcome:
        """Fill the card for the last time and end its growing; where it takes nothing in, replace it as a whole."""
        outcome: SendOutcome = NotSent.REJECTED if self._refused else Sent(None)
        if text != self._shown and not self._refused:
            outcome = await self._change("PUT", _CONTENT, {"content": text})
        if isinstance(outcome, Sent) or outcome is NotSent.UNKNOWN:
            await self._change("PATCH", "/settings", _SETTLED)
        else:
            outcome = await self._change("PUT", "", {"card": _entity(text, growing=False)})
        return Sent(self._message) if isinstance(outcome, Sent) else outcome

    async def _take_away(self) -> None:
        """Leave no half answer beside the whole one that is sent instead."""
        if not await self._cards.outbox.withdraw(self._message):
            await self._change("PATCH", "/settings", _SETTLED)

    async def _change(self, method: str, path: str, body: dict[str, object]) -> SendOutcome:
        return await self._cards.change(self._name, self._next(), method, path, body)

    def _next(self) -> int:
        self._number += 1
        return self._number


_CONTENT: Final = f"/elements/{_ELEMENT}/content"
_SETTLED: Final[dict[str, object]] = {"settings": '{"config":{"streaming_mode":false}}'}


def _entity(text: str, *, growing: bool) -> dict[str, object]:
    """Return a card with nothing in it but an answer."""
    card = {
        "schema": "2.0",
        "config": {"streaming_mode": growing, "update_multi": True},
        "body": {"elements": [{"tag": "markdown", "content": text, "element_id": _ELEMENT}]},
    }
    return {"type": "card_json", "data": msgspec.json.encode(card).decode()}

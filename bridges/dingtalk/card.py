"""An answer that grows in an AI card: made, put into the chat, filled again and again, ended.

Each change says the whole text, so that it may be repeated when its answer was lost. Cards that a crash leaves open are
ended by the next process.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import Final

import structlog

from bridges.dingtalk.inbound import Route
from bridges.dingtalk.outbox import outcome_of, sendable
from bridges.dingtalk.rest import Answer, BadSecret, Delivered, Refused, Rest
from bridges.http import CallFailed, Unreached
from bridges.message import Cursors, NotSent, RetryAfter, SendOutcome, Sent, SentId
from bridges.unended import Unended
from harness_client.clock import Clock

UPDATE_SECONDS: Final = 1.0
"""The least time between two states of a card."""

MOST_TEXT: Final = 3_500
"""Characters of one message and of a card (UTF-16 units); the rest of an answer follows as messages."""

TRIES: Final = 3
"""Of the last change."""

LOST_SECONDS: Final = 1.0
LONGEST_WAIT: Final = 10.0
"""Seconds before the next of them."""

VARIABLE: Final = "content"
"""Of the template: where the answer stands."""

_OPEN: Final = "open-cards"


class Cards:
    """The cards of one bot, made from one template."""

    def __init__(self, rest: Rest, template: str, cursors: Cursors, clock: Clock) -> None:
        self.clock = clock
        self._rest = rest
        self._template = template
        self._unended = Unended(cursors, _OPEN)
        self._offered = True
        self._log = structlog.get_logger(__name__)

    async def begin(self, route: Route) -> Card | None:
        """Put a new card into the chat; None where there is none, and none any more once the app may not make any."""
        if not self._offered or route.user == "":
            return None
        card = Card(self, f"harness-im-{uuid.uuid4().hex}")
        await self._unended.begin(card.name)
        try:
            await self._rest.call("POST", "/v1.0/card/instances", Answer, _instance(card.name, self._template))
            await self._deliver(card.name, route)
        except (CallFailed, Refused, BadSecret) as error:
            self._offered = not isinstance(error, Refused) or error.status != 403 or error.too_fast
            self._log.warning("no card: the answer comes whole", error=str(error), again=self._offered)
            if isinstance(error, CallFailed) and not isinstance(error, Unreached):
                await self.change(card.name, "", failed=True)  # it may stand there all the same
            await self.ended(card.name)
            return None
        return card

    async def change(self, name: str, text: str, *, last: bool = False, failed: bool = False) -> SendOutcome:
        """Let a card show ``text``; ``last``: it grows no more, ``failed``: neither, and keeps what it shows."""
        body = {
            "outTrackId": name,
            "guid": uuid.uuid4().hex,
            "key": VARIABLE,
            "content": text,
            "isFull": not failed,
            "isFinalize": last or failed,
            "isError": failed,
        }
        outcome: SendOutcome = NotSent.UNKNOWN
        for left in reversed(range(TRIES if last or failed else 1)):
            outcome = await self._try(body)
            if not left or not (isinstance(outcome, RetryAfter) or outcome is NotSent.UNKNOWN):
                break
            wait = outcome.seconds if isinstance(outcome, RetryAfter) else LOST_SECONDS
            await self.clock.sleep(min(wait, LONGEST_WAIT))
        return Sent(SentId(name)) if isinstance(outcome, Sent) else outcome

    async def ended(self, name: str) -> None:
        """Forget a card that grows no more."""
        await self._unended.end(name)

    async def end_left_over(self) -> None:
        """End what an earlier process left open. Raises OSError."""
        await self._unended.end_left_over(partial(self.change, text="", failed=True))

    async def _deliver(self, name: str, route: Route) -> None:
        path = "/v1.0/card/instances/deliver"
        delivered = await self._rest.call("POST", path, Delivered, _delivery(name, route))
        if not delivered.everywhere:
            raise Refused(path, 200, "notDelivered")

    async def _try(self, body: dict[str, object]) -> SendOutcome:
        try:
            await self._rest.call("PUT", "/v1.0/card/streaming", Answer, body)
        except (CallFailed, Refused, BadSecret) as error:
            self._log.warning("card not changed", error=str(error))
            return outcome_of(error)
        return Sent(None)


class Card:
    """One answer; see :class:`bridges.message.AnswerStream`."""

    def __init__(self, cards: Cards, name: str) -> None:
        self.name = name
        self._cards = cards
        self._text = ""
        self._shown = ""
        self._changed = asyncio.Event()
        self._sending = asyncio.Lock()
        self._showing: asyncio.Task[None] | None = None

    async def update(self, text: str) -> None:
        """Show the answer so far, or as much of it as a card holds, as soon as the pace allows."""
        self._text = sendable(text).encode("utf-16-le")[: 2 * MOST_TEXT].decode("utf-16-le", "ignore")
        self._changed.set()
        if self._showing is None:
            self._showing = asyncio.create_task(self._show())

    async def finish(self, text: str) -> SendOutcome:
        """See :meth:`bridges.message.AnswerStream.finish`."""
        if self._showing is not None:
            try:
                await self._sending.acquire()  # a state on its way must not overtake the last one
            finally:
                self._showing.cancel()
            await asyncio.wait({self._showing})
        outcome = await self._cards.change(self.name, sendable(text), last=True)
        if not isinstance(outcome, Sent) and outcome is not NotSent.UNKNOWN:
            await self._cards.change(self.name, "", failed=True)  # the answer is sent as messages instead
        await self._cards.ended(self.name)
        return outcome

    async def _show(self) -> None:
        """Show every change until one is refused."""
        outcome: SendOutcome = Sent(None)
        while isinstance(outcome, Sent | RetryAfter) or outcome is NotSent.UNKNOWN:
            await self._changed.wait()
            self._changed.clear()
            if self._text == self._shown:
                continue
            async with self._sending:
                outcome = await self._cards.change(self.name, self._text)
            self._shown = self._text if isinstance(outcome, Sent) else self._shown
            wait = outcome.seconds if isinstance(outcome, RetryAfter) else 0.0
            await self._cards.clock.sleep(max(UPDATE_SECONDS, wait))


def _instance(name: str, template: str) -> dict[str, object]:
    return {
        "cardTemplateId": template,
        "outTrackId": name,
        "cardData": {"cardParamMap": {VARIABLE: ""}},
        "callbackType": "STREAM",
        "imGroupOpenSpaceModel": {"supportForward": True},
        "imRobotOpenSpaceModel": {"supportForward": True},
    }


def _delivery(name: str, route: Route) -> dict[str, object]:
    delivery: dict[str, object] = {"outTrackId": name, "userIdType": 1}
    if route.user is None:
        space = {"openSpaceId": f"dtv1.card//IM_GROUP.{route.chat}"}
        return delivery | space | {"imGroupOpenDeliverModel": {"robotCode": route.robot}}
    space = {"openSpaceId": f"dtv1.card//IM_ROBOT.{route.user}"}
    return delivery | space | {"imRobotOpenDeliverModel": {"spaceType": "IM_ROBOT", "robotCode": route.robot}}

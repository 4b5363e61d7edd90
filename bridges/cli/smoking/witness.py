"""Sees what comes in and goes out at one bot's channel. Only in memory, and only while the smoke test runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bridges.message import Acceptance, Channel, InboundMessage, Inbox, ReplyTarget, SendOutcome
from commands.model import ChatKey
from harness_client.clock import Clock

MOST: Final = 1_000
"""Messages of either kind that are remembered."""


@dataclass(slots=True)
class Arrival:
    """A message that came in, ``at`` on the monotonic clock; ``acceptance`` once it was decided."""

    message: InboundMessage
    at: float
    acceptance: Acceptance | None = None


@dataclass(frozen=True, slots=True)
class Sending:
    """A send that is over, ``at`` on the monotonic clock."""

    chat: ChatKey
    text: str
    outcome: SendOutcome
    at: float


class Witness:
    """A channel around the real one. It has no capabilities: commands are answered without any."""

    def __init__(self, channel: Channel, clock: Clock, changed: Callable[[], None]) -> None:
        """Watch ``channel``; ``changed`` is told of everything that is seen."""
        self.limits = channel.limits
        self._channel = channel
        self._clock = clock
        self._changed = changed
        self.arrivals: deque[Arrival] = deque(maxlen=MOST)
        self.sendings: deque[Sending] = deque(maxlen=MOST)

    async def run(self, inbox: Inbox) -> None:
        """See :meth:`bridges.message.Channel.run`."""
        await self._channel.run(_Watched(inbox, self))

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """See :meth:`bridges.message.Channel.send`."""
        outcome = await self._channel.send(target, text)
        self.sendings.append(Sending(target.chat, text, outcome, self._clock.monotonic()))
        self._changed()
        return outcome

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        await self._channel.close()

    async def accept(self, inbox: Inbox, message: InboundMessage) -> Acceptance:
        """Hand a message on, and note when it came and what became of it."""
        arrival = Arrival(message, self._clock.monotonic())
        self.arrivals.append(arrival)
        arrival.acceptance = await inbox.accept(message)
        self._changed()
        return arrival.acceptance


class _Watched:
    """The inbox the channel sees."""

    def __init__(self, inbox: Inbox, witness: Witness) -> None:
        self._inbox = inbox
        self._witness = witness

    async def accept(self, message: InboundMessage) -> Acceptance:
        return await self._witness.accept(self._inbox, message)

    def connected(self) -> None:
        self._inbox.connected()

"""Walks one bot through the steps: says what to send, lets in only that, and judges what came of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from bridges.cli.smoking.lines import PASSED, Result, Verdict, Why, failed, not_done
from bridges.cli.smoking.steps import STRANGER, Ask, Heard
from bridges.cli.smoking.witness import Arrival, Sending, Witness
from bridges.message import Acceptance, Channel, EventId, InboundMessage, NotSent, Sent
from commands.catalog import KNOWN
from commands.model import ChatKey, Outcome
from commands.recognise import recognise
from harness_client.clock import Clock
from harness_client.types import SessionId
from i18n import Key, Language, Words

QUIET_SECONDS: Final = 2.0
"""How long silence must last to count, and how long an echo may take."""
PAIRING_SECONDS: Final = 10.0
"""How long a stranger may wait for the code."""

T = TypeVar("T")

NOTICES: Final = frozenset(Words(language)(Key.SMOKE_NOT_ASKED) for language in Language)
"""What is said to every message that was not asked for."""


@dataclass(slots=True)
class Flow:
    """What the operator wants beside the steps; ``changed`` is set at every change of anything."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False
    skipped: bool = False
    """The present message is given up."""

    def stop(self) -> None:
        """End the run."""
        self.stopped = True
        self.changed.set()

    async def until_stopped(self) -> None:
        """Wait for the end of the run."""
        while not self.stopped:
            self.changed.clear()
            await self.changed.wait()

    def skip(self) -> None:
        """Give up the present message."""
        self.skipped = True
        self.changed.set()


class Walk:
    """One bot. Hand :meth:`turns_down`, :meth:`settled` and :attr:`channel` to the bot, then call :meth:`step`."""

    def __init__(
        self,
        channel: Channel,
        flow: Flow,
        clock: Clock,
        *,
        language: Language,
        session: Callable[[ChatKey], Awaitable[SessionId | None]],
        tell: Callable[[Key, str], None],
        patience: float,
    ) -> None:
        """``patience``: seconds that each message is waited for; ``tell`` shows the operator a phrase with a text."""
        self.channel = Witness(channel, clock, flow.changed.set)
        self._flow = flow
        self._clock = clock
        self._language = language
        self._session = session
        self._tell = tell
        self._patience = patience
        self._ask: Ask | None = None
        self._taken: EventId | None = None
        self._settled: set[EventId] = set()
        self._calls: Counter[str] = Counter()
        self._began = 0.0

    # -- what the bot is handed --------------------------------------------------------------------------------------

    @property
    def language(self) -> Language:
        """Return the language of the present reply."""
        return (self._ask.language if self._ask else None) or self._language

    @property
    def pairs(self) -> bool:
        """Whether a stranger is awaited."""
        return self._ask is STRANGER

    def turns_down(self, message: InboundMessage) -> Key | None:
        """Let in the one message that is asked for, and its repetitions; anything else gets a notice."""
        if self._ask is None or self.pairs or not self._fits(message) or self._taken not in {None, message.id}:
            return Key.SMOKE_NOT_ASKED
        self._taken = message.id
        return None

    def settled(self, event: EventId, outcome: Outcome) -> None:
        """Note that the reply to a message is out."""
        del outcome
        if event == self._taken:
            self._settled.add(event)
        self._flow.changed.set()

    def requested(self, method: str, end: str, seconds: float) -> None:
        """Note a call of the Harness."""
        del end, seconds
        self._calls[method] += 1

    def _fits(self, message: InboundMessage) -> bool:
        ask = self._ask
        return (
            ask is not None
            and message.kind is ask.kind
            and bool(message.attachments) is ask.attached
            and recognise(message.text, KNOWN) == recognise(ask.text, KNOWN)
        )

    # -- the steps ---------------------------------------------------------------------------------------------------

    async def step(self, asks: Sequence[Ask]) -> Result:
        """Ask for one message after the other; the first that does not pass ends it. Seconds are the slowest's."""
        slowest = 0.0
        for ask in asks:
            result = await self._one(ask)
            if result.verdict is not Verdict.PASS:
                return result
            slowest = max(slowest, result.seconds or 0.0)
        return replace(PASSED, seconds=slowest)

    async def _one(self, ask: Ask) -> Result:
        self._begin(ask)
        try:
            arrival = await self._found(self._over_or_turned_away(ask), self._patience)
            return await self._judged(ask, arrival) if arrival else self._unfinished()
        finally:
            self._ask = None

    async def stranger(self, *, pairs: bool) -> Result:
        """Ask for the message of somebody who is not let in; ``pairs``: such people are given a code."""
        self._begin(STRANGER)
        try:
            arrival = await self._found(self._denied, self._patience)
            if arrival is None:
                return self._unfinished()
            sent = partial(self._sent_to, arrival)
            if pairs:
                await self._found(sent, PAIRING_SECONDS)
                return await self._judged(STRANGER, arrival)
            if await self._found(sent, QUIET_SECONDS):
                return failed(Why.WRONG_REPLY)
            return failed(Why.HOST_CALLED) if self._calls else PASSED
        finally:
            self._ask = None

    async def echo(self) -> Result:
        """Judge, at the end, whether the bot ever took its own message for a person's."""
        self._flow.skipped = False
        await self._found(lambda: None, QUIET_SECONDS)
        own = {sending.text for sending in self.channel.sendings}
        taken = (arrival for arrival in self.channel.arrivals if arrival.acceptance is Acceptance.ACCEPTED)
        if any(arrival.message.text in own for arrival in taken):
            return failed(Why.CAME_BACK)
        return PASSED if own else not_done(Why.NOTHING_SENT)

    async def duplicates(self) -> Result:
        """Judge whether the platform delivered a message twice; it had one reply, or its step failed."""
        by_end: dict[Acceptance | None, set[EventId]] = {}
        for arrival in self.channel.arrivals:
            by_end.setdefault(arrival.acceptance, set()).add(arrival.message.id)
        ours, again = (by_end.get(each, set()) for each in (Acceptance.ACCEPTED, Acceptance.DUPLICATE))
        return PASSED if ours & again else not_done(Why.NOBODY)

    def _begin(self, ask: Ask) -> None:
        self._ask = ask
        self._taken = None
        self._flow.skipped = False
        self._calls.clear()
        self._began = self._clock.monotonic()
        self._tell(ask.how, ask.text)

    def _over(self) -> Arrival | None:
        """Return the message that was asked for, once it was taken and its reply is out."""
        for arrival in self._arrived():
            if arrival.message.id != self._taken:
                continue
            if arrival.acceptance is Acceptance.ACCEPTED:
                return arrival if self._taken in self._settled else None
            if arrival.acceptance is Acceptance.DUPLICATE:  # somebody took it before us: this one is not it
                self._taken = None
        return None

    def _over_or_turned_away(self, ask: Ask) -> Callable[[], Arrival | None]:
        """Look as :meth:`_over`, and tell once when somebody without access sends it: who waits would not know why."""
        told = False

        def look() -> Arrival | None:
            nonlocal told
            if not told and self._denied():
                told = True
                self._tell(Key.SMOKE_TURNED_AWAY, ask.text)
            return self._over()

        return look

    def _denied(self) -> Arrival | None:
        """Return the message that fits, but came from somebody who may not send it."""
        fitting = (arrival for arrival in self._arrived() if self._fits(arrival.message))
        return next((arrival for arrival in fitting if arrival.acceptance is Acceptance.DENIED), None)

    def _arrived(self) -> list[Arrival]:
        return [arrival for arrival in self.channel.arrivals if arrival.at >= self._began]

    def _unfinished(self) -> Result:
        """Return why there is nothing to judge."""
        if self._flow.stopped:
            return not_done(Why.NOT_REACHED)
        if self._flow.skipped:
            return not_done(Why.SKIPPED)
        if self._taken is not None:
            return failed(Why.NO_REPLY)
        denied = self._ask is not STRANGER and self._denied() is not None
        return not_done(Why.NOT_ALLOWED if denied else Why.TIMED_OUT)

    async def _judged(self, ask: Ask, arrival: Arrival) -> Result:
        sendings = self._sent_to(arrival)
        refused = [each.outcome for each in sendings if not isinstance(each.outcome, Sent)]
        if refused and not isinstance(sendings[-1].outcome, Sent):
            outcome = refused[-1]
            return failed(
                Why.NOT_SENT, outcome.value if isinstance(outcome, NotSent) else type(outcome).__name__.lower()
            )
        if not sendings:
            return failed(Why.NO_REPLY)
        if self._calls and not ask.reads:
            return failed(Why.HOST_CALLED)
        text = "".join(each.text for each in sendings if isinstance(each.outcome, Sent))
        words = Words(self.language)
        result = ask.judge(Heard(text, words, await self._session(arrival.message.chat)))
        return replace(result, seconds=sendings[-1].at - arrival.at)

    def _sent_to(self, arrival: Arrival) -> list[Sending]:
        chat = arrival.message.chat
        return [
            each
            for each in self.channel.sendings
            if each.chat == chat and each.at >= arrival.at and each.text not in NOTICES
        ]

    async def _found(self, look: Callable[[], T | None], seconds: float) -> T | None:
        """Wait for what ``look`` finds; None when the time is up, or the operator has had enough of it."""
        try:
            async with self._clock.timeout(seconds):
                while not (found := look()):
                    if self._flow.stopped or self._flow.skipped:
                        return None
                    self._flow.changed.clear()
                    await self._flow.changed.wait()
                return found
        except TimeoutError:
            return None

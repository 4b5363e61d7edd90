"""One prompt on the host: watched to its end, stopped, steered. It outlives the wait of its chat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from bridges.bot import RunningBot
from bridges.interactions import Dialogue
from bridges.race import first_of
from commands.marks import wrap
from commands.model import SteerOutcome, StopOutcome
from harness_client.errors import HarnessError, Refused, Unsupported
from harness_client.turn import TurnEnding, TurnReader
from harness_client.types import PromptMode, QueueAction, RequestId, SessionId, TextPart
from harness_client.watch import Watch

_BEGIN_LOOKS: Final = 5
_BEGIN_SECONDS: Final = 0.2
"""How often ``/stop`` looks for a prompt that is neither begun nor queued, and the pause between: it is on its way."""


class Withdrawn(Exception):
    """The prompt was taken back before the host began it."""


class HostTurn:
    """``changed`` is called whenever ``reader`` knows more; keep it quick."""

    def __init__(
        self,
        bot: RunningBot,
        session: SessionId,
        reader: TurnReader,
        dialogue: Dialogue,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._bot = bot
        self._session = session
        self._dialogue = dialogue
        self._steering = asyncio.Lock()
        self._withdrawn = asyncio.Event()
        self._changed = changed
        self.reader = reader

    async def over(self, send: Callable[[], Awaitable[None]] | None = None, *, patience: float, limit: float) -> None:
        """Hand the prompt over with ``send``, if it is not out yet; return at the end of its turn or after ``limit``.

        Raises Withdrawn, what ``send`` raises, and what :class:`harness_client.watch.Watch` does.
        """
        watch = Watch(self._bot.harness, self._session, self.reader, self._bot.clock, self._tell)
        self._bot.activity.began(self._session)
        try:
            await first_of(
                watch.until_ended(send, patience=patience),
                watch.until_lost(),
                self._bot.clock.sleep(limit),
                self._until_withdrawn(),
            )
        finally:
            self._bot.activity.ended(self._session, normally=self.reader.ending is TurnEnding.COMPLETED)

    def _tell(self) -> None:
        self._changed()
        self._dialogue.changed()

    async def _until_withdrawn(self) -> None:
        await self._withdrawn.wait()
        raise Withdrawn

    async def stop(self) -> StopOutcome:
        """Stop this turn and no other; a prompt that has not begun on the host is taken back. Raises HarnessError."""
        for _ in range(_BEGIN_LOOKS):
            if self.reader.ending is not None:
                return StopOutcome.IDLE
            if self.reader.begun:
                return await self._cancel()
            if await self.take_back([self.reader.request]):
                self._withdrawn.set()
                return StopOutcome.WITHDRAWN
            await self._bot.clock.sleep(_BEGIN_SECONDS)
        return StopOutcome.NOT_BEGUN

    async def _cancel(self) -> StopOutcome:
        # What a stop parks on the host would run by itself at the next prompt, long after anybody meant it.
        await self.take_back(self.reader.on_their_way)
        self._dialogue.stopping = True
        try:
            await self._bot.harness.cancel(self._session)
        except HarnessError:
            self._dialogue.stopping = False
            raise
        return StopOutcome.STOPPED

    async def take_back(self, requests: Collection[RequestId]) -> bool:
        """Take prompts of ours out of the host's queue; return whether any was there. Raises HarnessError."""
        found = False
        if not requests:
            return found
        try:
            queue = (await self._bot.harness.projections(self._session)).queue or ()
        except Unsupported:
            return found
        for item in queue:
            if item.request is not None and item.request in requests:
                try:
                    await self._bot.harness.update_queue(self._session, item.id, QueueAction.REMOVE)
                except Refused:
                    continue  # begun a moment ago
                self.reader.dropped(item.request)
                found = True
        return found

    async def steer(self, text: str) -> SteerOutcome:
        """Add an instruction to this turn. Raises HarnessError; then it may or may not have been taken."""
        async with self._steering:
            if not self.reader.begun or self.reader.ending is not None:
                return SteerOutcome.IDLE
            if self._dialogue.waits:
                return SteerOutcome.ASKED
            request = RequestId(self._bot.mint())
            self.reader.steered(request)
            try:
                await self._bot.harness.prompt(
                    self._session, [TextPart(wrap([text]))], request=request, mode=PromptMode.STEER
                )
            except HarnessError:
                self.reader.dropped(request)
                raise
            return SteerOutcome.TAKEN

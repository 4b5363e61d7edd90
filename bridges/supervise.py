"""Keeps one bot's link alive: run, back off, run again; and says how it is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import structlog

from bridges.message import Acceptance, Channel, ChannelStopped, InboundMessage, Inbox, Stop
from bridges.shown import described
from bridges.state.model import BotKey, Health, Link
from commands.cleaning import one_line
from harness_client.clock import SYSTEM_CLOCK, Clock

__all__ = ["Health", "Link", "Supervisor"]

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 60.0
HEALTHY_SECONDS: Final = 60.0
"""A link that held this long was a good one: the next back-off starts small again."""

STOP_SECONDS: Final = 2.5
"""How long a channel may take to end when it is told to; then it is left behind."""

ERROR_LENGTH: Final = 300


class Supervisor:
    """Runs one bot's channel. Give each its own task: nothing but cancellation ever leaves :meth:`run`."""

    def __init__(
        self,
        bot: BotKey,
        channel: Channel,
        inbox: Inbox,
        *,
        redact: Callable[[str], str],
        clock: Clock = SYSTEM_CLOCK,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._channel = channel
        self._inbox = _Watched(inbox, self)
        self._redact = redact
        self._clock = clock
        self._chance = chance
        self._log = structlog.get_logger(__name__).bind(bot=str(bot))
        self._health = Health(bot, Link.CLOSED, clock.time())
        self._up_at: float | None = None

    @property
    def health(self) -> Health:
        """Return the present snapshot."""
        return self._health

    async def run(self) -> None:
        """Keep the channel running until it stops for good or this task is cancelled; then close it.

        Cancellation ends within twice STOP_SECONDS.
        """
        try:
            await self.keep_running()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the channel, which can send until then; within STOP_SECONDS."""
        await self._bounded(self._channel.close())
        if self._health.link is not Link.STOPPED:
            self._turn_to(Link.CLOSED)

    async def keep_running(self) -> None:
        """Keep the channel running until it stops for good or this task is cancelled, and leave it open.

        A run begins only when the one before has ended. Cancellation ends within STOP_SECONDS.
        """
        failures = 0
        while True:
            self._turn_to(Link.CONNECTING)
            self._up_at = None
            try:
                await self._run_once()
                error = "ended"
            except asyncio.CancelledError:
                raise
            except Exception as failure:  # noqa: BLE001 - the supervisor of a channel: one bot's failure stays its own
                if stop := _stop_in(failure, self._health.bot.channel):
                    self._turn_to(Link.STOPPED, error=self._shown(str(stop)), why=stop.why)
                    self._log.error("stopped", why=stop.why, error=self._health.error)
                    return
                error = self._describe(failure)
            failures = 1 if self._was_healthy() else failures + 1
            delay = self._chance() * min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 16))
            self._turn_to(Link.WAITING, error=error)
            self._log.warning("link lost", error=error, failures=failures, retry_in=round(delay, 1))
            await self._clock.sleep(delay)

    async def _run_once(self) -> None:
        task = asyncio.ensure_future(self._channel.run(self._inbox))
        task.add_done_callback(_hear_out)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await self._bounded(asyncio.wait({task}))
            raise
        if task.cancelled():
            raise RuntimeError("the channel cancelled itself")
        task.result()

    async def _bounded(self, ending: Awaitable[object]) -> None:
        try:
            async with self._clock.timeout(STOP_SECONDS):
                await ending
        except TimeoutError:
            self._log.error("left behind: did not end in time", seconds=STOP_SECONDS)
        except Exception as failure:  # noqa: BLE001 - what a channel says at its end changes nothing any more
            self._log.warning("ended badly", error=self._describe(failure))

    def connected(self) -> None:
        """Note that the link is up; called by the channel through its inbox."""
        if self._health.link is Link.CONNECTING:
            self._turn_to(Link.UP)
            self._up_at = self._clock.monotonic()
            self._log.info("connected")

    def received(self) -> None:
        """Note that the platform delivered something."""
        self._health = replace(self._health, last_event=self._clock.time())

    def _was_healthy(self) -> bool:
        return self._up_at is not None and self._clock.monotonic() - self._up_at >= HEALTHY_SECONDS

    def _turn_to(self, link: Link, *, error: str | None = None, why: Stop | None = None) -> None:
        self._health = replace(
            self._health, link=link, since=self._clock.time(), error=error or self._health.error, why=why
        )

    def _describe(self, failure: Exception) -> str:
        return self._shown(described(failure))

    def _shown(self, text: str) -> str:
        return self._redact(one_line(text))[:ERROR_LENGTH]


class _Watched:
    """The bot's inbox, with an eye on what the channel does to it."""

    def __init__(self, inbox: Inbox, supervisor: Supervisor) -> None:
        self._inbox = inbox
        self._supervisor = supervisor

    async def accept(self, message: InboundMessage) -> Acceptance:
        self._supervisor.received()
        return await self._inbox.accept(message)

    def connected(self) -> None:
        self._supervisor.connected()
        self._inbox.connected()


def _hear_out(task: asyncio.Task[None]) -> None:
    """Take the outcome of a run that was left behind, or the loop complains that nobody did."""
    if not task.cancelled():
        task.exception()


def _stop_in(failure: BaseException, channel: str) -> ChannelStopped | None:
    """Find why the channel must not be run again, also inside the group that its own tasks raise."""
    if isinstance(failure, ChannelStopped):
        return failure
    if isinstance(failure, ModuleNotFoundError):
        return ChannelStopped(Stop.NOT_INSTALLED, f"{failure}: run pip install 'harness-im[{channel}]'")
    if isinstance(failure, BaseExceptionGroup):
        return next((stop for inner in failure.exceptions if (stop := _stop_in(inner, channel))), None)
    return None

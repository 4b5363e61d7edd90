"""``/metrics``, ``/healthz`` and ``/readyz`` for whoever watches the program, on this machine only.

``/healthz`` answers as long as the event loop turns. ``/readyz`` is 200 when the Harness answers and a bot is
connected, else 503; its JSON says which bots are and which are not, by their names in the configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
from aiohttp import web

from bridges.doors import served
from bridges.listen import Listen
from bridges.metrics import Metrics, Watched
from bridges.supervise import Link
from harness_client.client import HarnessClient
from harness_client.clock import SYSTEM_CLOCK, Clock
from harness_client.errors import HarnessError

PROBE_SECONDS: Final = 15.0
"""Between two questions to the Harness whether it is there."""
ANSWER_SECONDS: Final = 5.0
TICK_SECONDS: Final = 0.25
"""How often the event loop is asked how late it is."""
TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


class Monitor:
    """Watches host, event loop and bots, and answers for them."""

    def __init__(
        self, metrics: Metrics, harness: HarnessClient, bots: Sequence[Watched], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._metrics = metrics
        self._harness = harness
        self._bots = bots
        self._clock = clock
        self._harness_up = False
        metrics.watch(bots)

    def application(self) -> web.Application:
        """Return the three pages."""
        application = web.Application()
        application.router.add_get("/metrics", self._figures)
        application.router.add_get("/healthz", self._alive)
        application.router.add_get("/readyz", self._ready)
        return application

    async def probe(self) -> None:
        """Ask the Harness, again and again, whether it is there."""
        while True:
            try:
                async with self._clock.timeout(ANSWER_SECONDS):
                    await self._harness.health()
                self._harness_up = True
            except (HarnessError, TimeoutError) as error:
                if self._harness_up:
                    structlog.get_logger(__name__).warning("harness does not answer", error=type(error).__name__)
                self._harness_up = False
            self._metrics.harness_answers(self._harness_up)
            await self._clock.sleep(PROBE_SECONDS)

    async def tick(self) -> None:
        """Measure how much later than asked the event loop comes back."""
        while True:
            began = self._clock.monotonic()
            await self._clock.sleep(TICK_SECONDS)
            self._metrics.stalled(max(0.0, self._clock.monotonic() - began - TICK_SECONDS))

    async def _figures(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": TEXT_FORMAT})

    async def _alive(self, _: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _ready(self, _: web.Request) -> web.Response:
        links = {str(bot.health.bot): bot.health.link for bot in self._bots}
        ready = self._harness_up and Link.UP in links.values()
        told = {"ready": ready, "harness": self._harness_up, "bots": links}
        return web.json_response(told, status=200 if ready else 503)


@asynccontextmanager
async def monitored(monitor: Monitor, listen: Listen) -> AsyncIterator[str]:
    """Serve while the context lasts; yields the base address. Raises OSError when the port cannot be had."""
    async with served(monitor.application(), listen) as address:
        watching = [asyncio.create_task(monitor.probe()), asyncio.create_task(monitor.tick())]
        try:
            yield address
        finally:
            for task in watching:
                task.cancel()
            await asyncio.wait(watching)

"""The program's figures for Prometheus. The only importer of its client, itself imported where figures are wanted.

Labels come from closed sets and from the configuration: channels, bots' names, commands, outcomes, host methods. The id
of a chat, a person or a session is never among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from archive.model import Host
from archive.service import Work
from bridges.message import Acceptance, InboundMessage
from bridges.observer import Observer
from bridges.supervise import Health, Link
from commands.model import Outcome

SECONDS: Final = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
STALLS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""Around 20 ms, beyond which the event loop must not be held."""


class Watched(Protocol):
    """A served bot, as far as figures go."""

    @property
    def health(self) -> Health:
        """How its link is."""

    @property
    def waiting(self) -> int:
        """Messages and replies that wait."""


class Metrics:
    """One process's figures. Feed it through :attr:`observer`, read it with :meth:`text`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._inbound = self._counter("bridge_inbound", "Messages of people", "channel", "outcome")
        self._commands = self._seconds("bridge_command_seconds", "Commands", "command", "channel", "outcome")
        self._sends = self._seconds("bridge_send_seconds", "Sends to a platform", "channel", "outcome")
        self._requests = self._seconds("harness_request_seconds", "Requests to the Harness", "method", "code")
        self._archive = {
            work: self._seconds(f"archive_{work}_seconds", f"Archive: {work}", "host") for work in ("search", "refresh")
        }
        self._stalls = Histogram(
            "bridge_loop_stall_seconds", "How late the event loop was", buckets=STALLS, registry=self._registry
        )
        self._harness_up = Gauge("harness_up", "Whether the Harness answers", registry=self._registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(name, what, labels, registry=self._registry)

    def _seconds(self, name: str, what: str, *labels: str) -> Histogram:
        return Histogram(name, what, labels, buckets=SECONDS, registry=self._registry)

    @property
    def observer(self) -> Observer:
        """Return what to tell bots, host and archive of."""
        return Observer(
            accepted=self._accepted,
            commanded=self._commanded,
            sent=self._sent,
            requested=self._requested,
            archived=self._archived,
        )

    def watch(self, bots: Sequence[Watched]) -> None:
        """Read links and queues of these bots whenever the figures are asked for."""
        self._registry.register(_Bots(bots))

    def stalled(self, seconds: float) -> None:
        """Note by how much the event loop was late."""
        self._stalls.observe(seconds)

    def harness_answers(self, up: bool) -> None:
        """Note whether the Harness answered."""
        self._harness_up.set(up)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self._registry)

    def _accepted(self, message: InboundMessage, acceptance: Acceptance) -> None:
        self._inbound.labels(message.chat.channel, acceptance.value).inc()

    def _commanded(self, channel: str, command: str, outcome: Outcome, seconds: float) -> None:
        self._commands.labels(command, channel, outcome.value).observe(seconds)

    def _sent(self, channel: str, outcome: str, seconds: float) -> None:
        self._sends.labels(channel, outcome).observe(seconds)

    def _requested(self, method: str, code: str, seconds: float) -> None:
        self._requests.labels(method, code).observe(seconds)

    def _archived(self, work: Work, host: Host, seconds: float) -> None:
        self._archive[work].labels(host.value).observe(seconds)


class _Bots(Collector):
    """What is true at the moment of asking."""

    def __init__(self, bots: Sequence[Watched]) -> None:
        self._bots = bots

    def collect(self) -> Iterable[Metric]:
        """Read every bot."""
        up = GaugeMetricFamily("bridge_channel_up", "Whether the bot is connected", labels=("channel", "bot"))
        waiting: dict[str, int] = {}
        for bot in self._bots:
            key = bot.health.bot
            up.add_metric((key.channel, key.name), bot.health.link is Link.UP)
            waiting[key.channel] = waiting.get(key.channel, 0) + bot.waiting
        depth = GaugeMetricFamily("bridge_queue_depth", "Messages and replies that wait", labels=("channel",))
        for channel, count in waiting.items():
            depth.add_metric((channel,), count)
        return (up, depth)

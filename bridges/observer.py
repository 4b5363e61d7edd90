"""Who is told what happens, for figures and for tests. Nothing told here holds message content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from archive.model import Host
from archive.service import Work
from bridges.message import Acceptance, EventId, InboundMessage
from commands.model import Outcome


@dataclass(frozen=True, slots=True)
class Observer:
    """Told what happens at bots, host and archive. Seconds throughout; must return at once and never raise."""

    accepted: Callable[[InboundMessage, Acceptance], None] = lambda message, acceptance: None
    settled: Callable[[EventId, Outcome], None] = lambda event, outcome: None
    commanded: Callable[[str, str, Outcome, float], None] = lambda channel, command, outcome, seconds: None
    sent: Callable[[str, str, float], None] = lambda channel, outcome, seconds: None
    """A channel's send, with the outcome as :mod:`bridges.delivery` labels it."""
    requested: Callable[[str, str, float], None] = lambda method, code, seconds: None
    """A call of the host, see :data:`harness_client.carrier.Observe`."""
    archived: Callable[[Work, Host, float], None] = lambda work, host, seconds: None


UNOBSERVED = Observer()

"""How much one chat may still be sent: replies, what grows, and the bot's own messages together (facts EAST 3.1)."""

from __future__ import annotations

from collections import deque
from typing import Final

from harness_client.clock import Clock

WINDOWS: Final = ((30, 60.0), (1_000, 3_600.0))
"""Frames and the seconds in which no more of them may be sent."""


class Pace:
    """Counts the frames of every chat that was sent any within an hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[str, deque[float]] = {}

    def wait(self, chat: str, *, spare: int = 0) -> float:
        """Return the seconds until one more may go and ``spare`` others after it; 0 for now."""
        sent = self._sent.get(chat, ())
        now = self._clock.monotonic()
        waits = [sent[-(most - spare)] + seconds - now for most, seconds in WINDOWS if len(sent) >= most - spare]
        return max(0.0, *waits) if waits else 0.0

    def count(self, chat: str) -> None:
        """Note that one goes out now."""
        now = self._clock.monotonic()
        (most, seconds) = WINDOWS[-1]
        self._sent.setdefault(chat, deque(maxlen=most)).append(now)
        for idle in [other for other, sent in self._sent.items() if sent[-1] < now - seconds]:
            del self._sent[idle]

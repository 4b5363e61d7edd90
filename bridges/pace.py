"""How much one chat may still be sent, where a platform counts the messages of some time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from harness_client.clock import Clock


@dataclass(frozen=True, slots=True)
class Window:
    """No more than ``most`` within any ``seconds``."""

    most: int
    seconds: float


class Pace:
    """Counts what goes out to each chat. A chat costs memory only while a window is not over."""

    def __init__(self, clock: Clock, *windows: Window) -> None:
        self._clock = clock
        self._windows = windows
        self._longest = max(window.seconds for window in windows)
        self._most = max(window.most for window in windows)
        self._sent: dict[str, deque[float]] = {}

    def wait(self, chat: str, *, spare: int = 0) -> float:
        """Return the seconds until one more may go out and ``spare`` others after it; 0 for now."""
        sent = self._sent.get(chat, ())
        now = self._clock.monotonic()
        full = [window for window in self._windows if len(sent) >= window.most - spare]
        return max([0.0, *(sent[spare - window.most] + window.seconds - now for window in full)])

    def count(self, chat: str) -> None:
        """Note that one goes out now."""
        now = self._clock.monotonic()
        self._sent.setdefault(chat, deque(maxlen=self._most)).append(now)
        for idle in [other for other, sent in self._sent.items() if sent[-1] < now - self._longest]:
            del self._sent[idle]

"""How often a bot may write to one channel, stated with each answer and enforced."""

from __future__ import annotations

import re
import time


class Limits:
    """Nothing is limited before :meth:`set`."""

    def __init__(self) -> None:
        self.enforced = 0
        """How often a call was one too many."""
        self._rule: tuple[int, float] | None = None
        self._windows: dict[str, tuple[float, int]] = {}

    def set(self, most: int, seconds: float) -> None:
        """Let every channel take so many messages in so many seconds."""
        self._rule = most, seconds

    def stated(self, call: str) -> dict[str, str]:
        """Return the headers that say what is left of the present window."""
        if self._rule is None or call not in self._windows:
            return {}
        (most, seconds), (began, used) = self._rule, self._windows[call]
        wait = max(0.0, began + seconds - time.monotonic()) + 0.01
        stated = {"Limit": most, "Remaining": most - used, "Reset-After": f"{wait:.3f}", "Bucket": "messages"}
        return {f"X-RateLimit-{key}": str(value) for key, value in stated.items()}

    def seconds(self, call: str) -> float | None:
        """Count a call; return how long to wait if it is one too many."""
        if self._rule is None or not re.fullmatch(r"POST /channels/\d+/messages", call):
            return None
        (most, seconds), now = self._rule, time.monotonic()
        began, used = self._windows.get(call, (now, 0))
        if now >= began + seconds:
            began, used = now, 0
        if used < most:
            self._windows[call] = began, used + 1
            return None
        self.enforced += 1
        return seconds

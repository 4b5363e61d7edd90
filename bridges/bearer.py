"""An access token of a platform: fetched when it is needed, anew before its end, and anew when it was refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from harness_client.clock import Clock


@dataclass(frozen=True, slots=True)
class Grant:
    """A token and its life in seconds."""

    token: str = field(repr=False)
    seconds: float


class Bearer:
    """One application's token. Whoever asks while it is fetched waits for the same one."""

    def __init__(
        self, fetch: Callable[[], Awaitable[Grant]], clock: Clock, hide: Callable[[str], None], *, early: float
    ) -> None:
        """Renew ``early`` seconds before the end, or after half of a life that is too short for that.

        ``hide`` keeps tokens out of the log.
        """
        self._fetch = fetch
        self._clock = clock
        self._hide = hide
        self._early = early
        self._token = ""
        self._renew_at = 0.0
        self._fetching = asyncio.Lock()

    async def get(self) -> str:
        """Return a token that is good for some time. Raises what fetching it raises."""
        async with self._fetching:
            if not self._token or self._clock.monotonic() >= self._renew_at:
                asked = self._clock.monotonic()
                grant = await self._fetch()
                self._hide(grant.token)
                self._token = grant.token
                self._renew_at = asked + max(grant.seconds - self._early, grant.seconds / 2)
            return self._token

    def forget(self, token: str) -> None:
        """Say that ``token`` was refused: the next call gets another one, unless somebody has it already."""
        if token == self._token:
            self._token = ""

"""What systemd is told of the program: that it is ready, takes over, ends, lives, and in one line how it is.

Source: sd_notify(3) and sd_watchdog_enabled(3), a protocol that systemd keeps stable for programs without its library.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Mapping
from typing import Final, Self

import structlog

from harness_client.clock import SYSTEM_CLOCK, Clock

SEND_SECONDS: Final = 5.0
"""How long a word may take; systemd reads at once, and whoever does not is not waited for."""

LOOK_SECONDS: Final = 1.0
"""How soon a change of the status is told."""

_SOCKET, _WATCHDOG, _WATCHED = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
_MICRO: Final = 1_000_000


class Systemd:
    """Whoever started the program and wants to hear of it; nobody, when ``address`` is None.

    ``watchdog``: seconds of silence after which the program is taken for stuck; None when it is not watched. A word
    that cannot be delivered is logged and stops nothing.
    """

    def __init__(self, address: str | None, watchdog: float | None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._address = address
        self._watchdog = watchdog
        self._clock = clock

    @classmethod
    def of(cls, environ: Mapping[str, str], pid: int, clock: Clock = SYSTEM_CLOCK) -> Self:
        """Read who listens from the environment of the process ``pid``."""
        micros = environ.get(_WATCHDOG, "")
        mine = environ.get(_WATCHED, str(pid)) == str(pid)
        watchdog = int(micros) / _MICRO if mine and re.fullmatch("0*[1-9][0-9]{0,18}", micros) else None
        address = environ.get(_SOCKET, "")
        return cls(address if address.startswith(("/", "@")) else None, watchdog, clock)

    async def ready(self, status: str) -> None:
        """Say that the program serves, for the first time or again after :meth:`reloading`."""
        await self._tell("READY=1", _status(status))

    async def reloading(self) -> None:
        """Say that the configuration is being taken over; :meth:`ready` says that it was."""
        await self._tell("RELOADING=1", f"MONOTONIC_USEC={int(self._clock.monotonic() * _MICRO)}")

    async def stopping(self) -> None:
        """Say that the program ends."""
        await self._tell("STOPPING=1")

    async def keep_informed(self, status: Callable[[], str]) -> None:
        """Tell the status whenever it has changed, until cancelled."""
        told = status()
        while self._address:
            await self._clock.sleep(LOOK_SECONDS)
            if (present := status()) != told:
                told = present
                await self._tell(_status(present))

    async def keep_alive(self) -> None:
        """Say twice within each time limit of the watchdog that the event loop turns, until cancelled."""
        while self._address and self._watchdog:
            await self._tell("WATCHDOG=1")
            await self._clock.sleep(self._watchdog / 2)

    async def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        # A leading @ stands for the NUL of Linux's abstract addresses.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.connect(address)
                async with self._clock.timeout(SEND_SECONDS):
                    await asyncio.get_running_loop().sock_sendall(sender, "\n".join(lines).encode())
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path; TimeoutError is an OSError
            structlog.get_logger(__name__).warning("systemd not told", word=lines[0], error=type(error).__name__)


def _status(text: str) -> str:
    return f"STATUS={' '.join(text.split())}"

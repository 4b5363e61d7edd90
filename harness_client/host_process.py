"""One run of a host as our child: spawn, ready line, drained output, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness_client.clock import Clock

_READY = re.compile(rb"^dsh web: (\S+)\r?$", re.MULTILINE)
_KEPT = 8 * 1024
"""Bytes of output kept; a host that talks for ever costs no more."""
_TOKEN = re.compile(r"(?i)(token=|bearer\s+)[^\s&\"']+|\bsk-[\w-]+")
_CONTROLS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_LAST_WORDS = 0.5
"""Seconds that output may lag behind the exit."""
_LIFELINE = Path(__file__).with_name("lifeline.py")


class Ended(Exception):
    """The process ended before it printed its address."""


class Output:
    """The newest :data:`_KEPT` bytes a process printed, and the address among them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._kept = bytearray()
        self._secrets = tuple(filter(None, secrets))
        self.printed_url: str | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        self._kept += data
        if self.printed_url is None and (found := _READY.search(self._kept)) and found.end() < len(self._kept):
            self.printed_url = found[1].decode("utf-8", "replace")
        del self._kept[:-_KEPT]

    def tail(self, lines: int = 12) -> str:
        """Return the last lines as plain text: no token, no key, no control characters."""
        text = self._kept.decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = _TOKEN.sub(lambda found: f"{found[1] or ''}***", text)
        return "\n".join(_CONTROLS.sub("", text.expandtabs(1)).strip().splitlines()[-lines:])


class HostProcess(asyncio.SubprocessProtocol):
    """A running host. Ends with us, however we end: see :mod:`harness_client.lifeline`.

    It runs in a session of its own, so that Ctrl-C in our terminal reaches us alone and we end it in order.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._transport: asyncio.SubprocessTransport | None = None
        self._printed = asyncio.Event()
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()

    @classmethod
    async def start(
        cls, command: Sequence[str], *, lock: Path, env: Mapping[str, str], cwd: Path, secrets: Iterable[str] = ()
    ) -> HostProcess:
        """Spawn ``command``. Raises OSError when the system cannot."""
        _, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(Output(secrets)),
            *(sys.executable, "-I", "-S", str(_LIFELINE), str(lock), *command),
            stderr=asyncio.subprocess.STDOUT,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        return process

    @property
    def pid(self) -> int:
        """Id of the process group."""
        return self._running.get_pid()

    def tail(self) -> str:
        """Return the last lines of output, safe to show and to log."""
        return self._output.tail()

    async def printed_url(self) -> str:
        """Wait for the address line and return it, token included. Raises :class:`Ended` when none will come."""
        await self._printed.wait()
        if self._output.printed_url is None:
            raise Ended
        return self._output.printed_url

    async def wait(self) -> int:
        """Wait for the end and for the last words; return the exit code, 128 + signal for a signal."""
        await self._exited.wait()
        with contextlib.suppress(TimeoutError):
            # Bounded: a program left behind may hold the output open for ever.
            async with asyncio.timeout(_LAST_WORDS):
                await self._closed.wait()
        code = self._running.get_returncode()
        assert code is not None  # noqa: S101 -- it has exited
        return code if code >= 0 else 128 - code

    async def stop(self, within: float, clock: Clock) -> None:
        """End it: cut the lifeline, and ``within`` seconds later kill the whole group. A dead one is no error."""
        lifeline = self._running.get_pipe_transport(0)
        if lifeline is not None:
            lifeline.close()
        try:
            async with clock.timeout(within):
                await self._exited.wait()
        except TimeoutError:
            pass
        finally:
            # Also after a tidy end: what the host left behind in its group goes too.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._running.close()
        await self._exited.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take hold of the process."""
        assert isinstance(transport, asyncio.SubprocessTransport)  # noqa: S101 -- the only kind this protocol is for
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Drain the output (both streams arrive as one)."""
        del fd
        self._output.feed(data)
        if self._output.printed_url is not None:
            self._printed.set()

    def process_exited(self) -> None:
        """Note the end; output may still follow."""
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that it has ended and nothing more will be printed."""
        del exc
        self._closed.set()
        self._printed.set()

    @property
    def _running(self) -> asyncio.SubprocessTransport:
        assert self._transport is not None  # noqa: S101 -- made before start() returns
        return self._transport

"""Our side of the process that runs the vendor's SDK: one for all bots, as long as any of them needs it.

It costs no bot anything while it starts, and holds no event loop but its own (:mod:`bridges.feishu.sdk`).
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog

from bridges.environment import environment
from bridges.feishu.pipe import LONGEST_LINE, Answer, Close, Ended, Event, Open, Order, Pong, Report, Up, Why, line
from bridges.feishu.rest import Application

END_SECONDS: Final = 1.5
"""What the process gets to end by itself; a little more than it gives its connections."""

_SDK: Final = "lark_oapi"
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_PASSED_ON: Final = frozenset({
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "LD_LIBRARY_PATH", "NO_PROXY", "PYTHONHOME", "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR", "SSL_CERT_FILE",
})  # fmt: skip
_REPORTS: Final[msgspec.json.Decoder[Report]] = msgspec.json.Decoder(Report)


class LinkEnded(Exception):
    """The connection is over; the text names an error or a code of the platform and nothing else."""

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(f"{why}: {detail}")
        self.why = why


class Deaf(Exception):
    """Nothing is heard any more: of the platform, or of the process itself."""


class Link:
    """One bot's connection as the process tells of it."""

    def __init__(self, process: _Process, number: int) -> None:
        self.reports: asyncio.Queue[Report] = asyncio.Queue()  # the process bounds what waits for an answer
        self._process = process
        self._number = number

    async def next(self) -> Up | Pong | Event:
        """Wait for what happens next. Raises LinkEnded."""
        report = await self.reports.get()
        if isinstance(report, Ended):
            raise LinkEnded(report.why, report.detail)
        return report

    def answer(self, event: Event, *, taken: bool) -> None:
        """Acknowledge an event, or have it delivered again."""
        self._process.tell(Answer(self._number, event.number, taken))


@asynccontextmanager
async def link_of(application: Application) -> AsyncIterator[Link]:
    """Begin to connect a bot; at the end nothing is left of its connection.

    A body that raises Deaf suspects the process: whoever connects next gets another one, and this one ends with the
    last of its links. Raises ModuleNotFoundError without the SDK, OSError when no process can be started.
    """
    if importlib.util.find_spec(_SDK) is None:
        raise ModuleNotFoundError(f"No module named {_SDK!r}")
    loop = asyncio.get_running_loop()
    process = _PROCESSES.get(loop)
    if process is None or process.over:
        process = _PROCESSES[loop] = _Process()
    number = next(_NUMBERS)
    link = process.links[number] = Link(process, number)
    try:
        await process.started()
        process.tell(Open(number, application.id, application.secret, application.domain))
        yield link
    except Deaf:
        _retire(process)
        raise
    finally:
        process.tell(Close(number))
        del process.links[number]
        if not process.links:
            _retire(process)
            await process.end()


def _retire(process: _Process) -> None:
    """Let no further bot join it."""
    for loop in [loop for loop, newest in _PROCESSES.items() if newest is process]:
        del _PROCESSES[loop]


class _Process:
    """The process. Make it inside a running event loop."""

    def __init__(self) -> None:
        self.links: dict[int, Link] = {}
        self._running = asyncio.create_task(self._run(), name="feishu sdk")
        self._ready = asyncio.Event()
        self._child: asyncio.subprocess.Process | None = None

    @property
    def over(self) -> bool:
        """Whether it ended."""
        return self._running.done()

    async def started(self) -> None:
        """Wait until it can be told something. Raises OSError."""
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({ready, self._running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._running.done():
            self._running.result()

    def tell(self, order: Order) -> None:
        """Say something to it; one that ended hears nothing."""
        if self._child is not None and self._child.stdin is not None and not self._child.stdin.is_closing():
            self._child.stdin.write(line(order))

    async def end(self) -> None:
        """End it: by the end of its orders, or by force."""
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
        try:
            await asyncio.wait({self._running}, timeout=END_SECONDS if self._child else 0)
        finally:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        # -P: the folder we were started in may hold anything. A session of its own: Ctrl-C is for us.
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "bridges.feishu.sdk"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LONGEST_LINE,
            env=_environment(),
            start_new_session=True,
        )
        self._child = child
        self._ready.set()
        try:
            await self._hear(child)
        except ValueError as error:  # a line that is too long or none of ours
            structlog.get_logger(__name__).error("the process of the SDK is not understood", error=type(error).__name__)
        finally:
            await _reaped(child)
            for number, link in self.links.items():
                link.reports.put_nowait(Ended(number, Why.LOST, "the process of the SDK ended"))

    async def _hear(self, child: asyncio.subprocess.Process) -> None:
        """Pass on what it says, until it says nothing any more."""
        while child.stdout is not None and (said := await child.stdout.readline()):
            report = _REPORTS.decode(said)
            if report.link in self.links:
                self.links[report.link].reports.put_nowait(report)


def _environment() -> dict[str, str]:
    """Return what the process needs to run and to find its way out, and none of the secrets that are in ours."""
    ours = environment()
    passed = {name: value for name, value in ours.items() if name.upper() in _PASSED_ON}
    return passed | {"PYTHONPATH": os.pathsep.join(filter(None, (_ROOT, ours.get("PYTHONPATH"))))}


async def _reaped(child: asyncio.subprocess.Process) -> None:
    """Wait for the end of a child, and bring it about if need be."""
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), END_SECONDS)
    finally:  # also when nobody waits for its end any more
        if child.returncode is None:
            child.kill()
        await child.wait()


_PROCESSES: Final[dict[asyncio.AbstractEventLoop, _Process]] = {}
_NUMBERS: Final = itertools.count(1)

"""The Harness as a child of this program: started, supervised, ended.

``dsh web`` from the extra ``[embedded]`` runs on loopback with everything it owns inside one data directory:

    data/dsh     its home: sessions, settings, login secret
    data/home    its HOME, so that it reads and writes nothing of the operator's
    data/tmp     its temporary files
    data/*.lock  one program at a time, one host at a time

A host that dies is started again on the same port: sessions and the login cookie are in ``data/dsh`` and bound to the
authority, so a client goes on as if the network had hiccupped. Source: facts HARNESS 2, 4.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import structlog
from filelock import FileLock, Timeout

from harness_client.address import Address
from harness_client.clock import SYSTEM_CLOCK, Clock
from harness_client.host_process import Ended, HostProcess

READY_WITHIN = 60.0
"""Seconds a host may take to print its address; 3 to 4 are usual."""
STOP_WITHIN = 0.7
"""Seconds between asking a host to end and killing it: Ctrl-C ends everything within a second.

Less would cost a session its last words: on a busy machine the host needs half a second to write them down.
"""
FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0
"""Seconds before a dead host is started again: doubled at each failure in a row, less up to half by chance."""
HEALTHY_AFTER = 60.0
"""Seconds of life after which a host's next death counts as the first."""

_PATCH = Path(__file__).with_name("host_patch.yml")
_HOOK = Path(__file__).with_name("workspace_hook.cjs")
_log = structlog.get_logger(__name__)


class EmbeddedError(Exception):
    """Root: this program could not run a host of its own. Messages are for operators and hold no secret."""


class RuntimeMissing(EmbeddedError):
    """The extra ``[embedded]`` is not installed in this environment."""


class HomeInUse(EmbeddedError):
    """Another program holds the data directory."""


class HostNotReady(EmbeddedError):
    """The host ended, or said nothing in time. ``tail`` is the end of its output, tokens and keys removed."""

    def __init__(self, message: str, tail: str) -> None:
        super().__init__(f"{message}\n{tail}" if tail else message)
        self.tail = tail


def bundled_command() -> Path:
    """Find ``dsh`` beside this interpreter; raise RuntimeMissing when the extra is not installed."""
    found = Path(sys.executable).with_name("dsh")
    if not found.is_file():
        raise RuntimeMissing(f"no {found}: install the extra, pip install 'harness-im[embedded]'")
    return found


@dataclass(frozen=True, slots=True)
class EmbeddedSpec:
    """What an embedded host needs to know; paths are absolute.

    ``environment`` is all that it inherits: a PATH for tools, a proxy, a locale.
    """

    data: Path
    workspace: Path
    model_url: str | None = None
    model_key: str | None = field(default=None, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: Path = field(default_factory=bundled_command)

    def __post_init__(self) -> None:
        if not all(path.is_absolute() for path in (self.data, self.workspace, self.command)):
            raise ValueError("the paths of an embedded host must be absolute: it runs in its own folder")

    @property
    def dsh_home(self) -> Path:
        """Where the host keeps its sessions."""
        return self.data / "dsh"

    def variables(self) -> dict[str, str]:
        """Return the child's whole environment."""
        own = {
            "HOME": str(self.data / "home"),
            "TMPDIR": str(self.data / "tmp"),
            "DSH_HOME": str(self.dsh_home),
            "DSH_TELEMETRY_DISABLED": "1",
            "NODE_OPTIONS": f'"--require={_quoted(_HOOK)}"',
        }
        model = {"DEEPSEEK_BASE_URL": self.model_url, "DEEPSEEK_API_KEY": self.model_key}
        return {"LANG": "C.UTF-8", **self.environment, **{k: v for k, v in model.items() if v is not None}, **own}


def _make_folders(data: Path) -> None:
    shutil.rmtree(data / "tmp", ignore_errors=True)  # whatever killed hosts could not remove
    for name in ("dsh", "home", "tmp"):
        (data / name).mkdir(mode=0o700, exist_ok=True)


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


class EmbeddedHost:
    """A supervised host of our own; an async context manager.

    Entering waits until the host is ready, and raises HomeInUse or HostNotReady when it will not be. From then on it
    is kept alive until the context is left, which ends it within :data:`STOP_WITHIN` seconds.
    """

    def __init__(
        self, spec: EmbeddedSpec, *, clock: Clock = SYSTEM_CLOCK, chance: Callable[[], float] = random.random
    ) -> None:
        self._spec = spec
        self._clock = clock
        self._chance = chance
        self._lock = FileLock(spec.data / "program.lock", mode=0o600)
        self._ready = asyncio.Event()
        self._listeners: list[Callable[[Address], None]] = []
        self._exit = contextlib.AsyncExitStack()
        self._process: HostProcess | None = None
        self._address: Address | None = None

    @property
    def dsh_home(self) -> Path:
        """See :attr:`EmbeddedSpec.dsh_home`."""
        return self._spec.dsh_home

    @property
    def pid(self) -> int | None:
        """Process group of the running host; None between two of them."""
        return self._process.pid if self._process is not None else None

    async def address(self) -> Address:
        """Return where the host listens; waits while it is being restarted. The token changes with every start."""
        await self._ready.wait()
        assert self._address is not None  # noqa: S101 -- set before the event
        return self._address

    def on_restart(self, listener: Callable[[Address], None]) -> None:
        """Have ``listener`` called with the new address at every later start."""
        self._listeners.append(listener)

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as entered:
            entered.callback(self._lock.release)
            await self._claim_data()
            entered.push_async_callback(self._end_process)
            supervisor = asyncio.create_task(self._supervise(await self._start()))
            entered.push_async_callback(_cancel, supervisor)
            self._exit = entered.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._exit.aclose()

    async def _claim_data(self) -> None:
        data = self._spec.data
        try:
            data.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            await asyncio.to_thread(_make_folders, data)
        except Timeout:
            raise HomeInUse(f"{data} is in use by another running program") from None
        except OSError as error:
            raise HostNotReady(f"{data} cannot be used: {error.strerror}", "") from error

    async def _start(self) -> HostProcess:
        """Start one host on the port of the last one. Raises HostNotReady, and then the next try takes any port."""
        port = self._address.base.rpartition(":")[2] if self._address is not None else "0"
        self._address = None
        try:
            self._process = process = await HostProcess.start(
                (str(self._spec.command), "web", "--patch", str(_PATCH), "--no-open", "--port", port),
                lock=self._spec.data / "host.lock",
                env=self._spec.variables(),
                cwd=self._spec.workspace,
                secrets=[self._spec.model_key or ""],
            )
        except OSError as error:
            raise HostNotReady(f"the Harness could not be started: {error}", "") from error
        try:
            async with self._clock.timeout(READY_WITHIN):
                self._address = Address.parse(await process.printed_url())
        except (Ended, TimeoutError, ValueError) as error:
            await self._end_process()
            raise HostNotReady(_why(error), process.tail()) from None
        for listener in self._listeners:
            listener(self._address)
        self._ready.set()
        return process

    async def _end_process(self) -> None:
        self._ready.clear()
        process, self._process = self._process, None
        if process is not None:
            await process.stop(STOP_WITHIN, self._clock)

    async def _supervise(self, process: HostProcess) -> None:
        failures = 0
        while True:
            born = self._clock.monotonic()
            code = await process.wait()
            failures = 1 if self._clock.monotonic() - born >= HEALTHY_AFTER else failures + 1
            _log.warning("embedded_host_ended", code=code, output=process.tail())
            await self._end_process()
            process, failures = await self._restart(failures)

    async def _restart(self, failures: int) -> tuple[HostProcess, int]:
        while True:
            await self._clock.sleep(self._delay(failures))
            try:
                return await self._start(), failures
            except HostNotReady as error:
                failures += 1
                _log.warning("embedded_host_not_ready", failures=failures, reason=str(error))

    def _delay(self, failures: int) -> float:
        return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 16)) * (1 - self._chance() / 2)


def _why(error: Exception) -> str:
    match error:
        case Ended():
            return "the Harness ended before it was ready"
        case TimeoutError():
            return f"the Harness was not ready within {READY_WITHIN:.0f} s"
        case _:
            return "the Harness printed an address that is none"


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

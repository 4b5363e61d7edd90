"""The Node program that is a linked WhatsApp device: started, spoken to in JSON lines, ended."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import msgspec

from bridges import private_file
from bridges.message import Clock
from bridges.text.whatsapp_linked_parse import Received

SCRIPT: Final = Path(__file__).with_name("whatsapp_sidecar.mjs")
BAILEYS: Final = "baileys@7.0.0-rc14"
"""Exactly this one: versions before it cannot be installed from packages alone."""

HOME: Final = "whatsapp"
"""The folder of all devices and their program, in the data directory."""

LONGEST_LINE: Final = 1024 * 1024
"""Bytes of one event; WhatsApp's own messages hold 64 KiB of text."""

CALL_SECONDS: Final = 30.0
END_SECONDS: Final = 2.0


def kept(data: Path, bot: str) -> Path:
    """Return the folder that a bot's device keeps its login in, below the data directory."""
    return data / HOME / "devices" / bot


class Qr(msgspec.Struct, frozen=True, tag="qr"):
    """Nobody is logged in; ``text`` is to be scanned, and is replaced by another one every half a minute."""

    text: str


class Opened(msgspec.Struct, frozen=True, tag="open"):
    """The link is up. ``ids`` are our own."""

    ids: tuple[str, ...] = ()


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """The link is lost, and the program ends."""

    code: int = 0


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """The package is not there, or not the one it should be."""


class Heard(msgspec.Struct, frozen=True, tag="message"):
    """A message. It is told again at every start until :meth:`Sidecar.taken` names its ``file``."""

    message: Received
    file: str


class _Done(msgspec.Struct, frozen=True, tag="done"):
    call: int


class _Failed(msgspec.Struct, frozen=True, tag="failed"):
    call: int
    code: object = 0


Event = Qr | Opened | Closed | Broken | Heard
_Line = Event | _Done | _Failed
_lines = msgspec.json.Decoder(_Line)


class _Package(msgspec.Struct):
    version: str = ""


class Lost(Exception):
    """The program ended or said nothing in time: a call may or may not have taken effect."""


class Failed(Exception):
    """WhatsApp or its client refused a call; ``code`` is that of HTTP, 0 where there is none."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Device:
    """Where everything of one linked device lies; ``url`` is another server in place of WhatsApp's."""

    node: str
    packages: Path
    folder: Path
    url: str | None = None

    @classmethod
    def of(cls, data: Path, bot: str, url: str | None = None, path: str | None = None) -> Self | None:
        """Return a bot's device below the data directory; None without Node. ``path`` is where to look for it."""
        node = shutil.which("node", path=path)
        return cls(node, data / HOME / "node_modules", kept(data, bot), url) if node else None

    @property
    def installed(self) -> bool:
        """Whether the package is there, in the version it should be."""
        try:
            package = msgspec.json.decode((self.packages / "baileys" / "package.json").read_bytes(), type=_Package)
        except (OSError, ValueError):
            return False
        return f"baileys@{package.version}" == BAILEYS

    @property
    def has_login(self) -> bool:
        """Whether somebody linked it; WhatsApp may have unlinked it since."""
        return (self.folder / "login" / "creds.json").is_file()


@asynccontextmanager
async def started(device: Device, clock: Clock) -> AsyncIterator[Sidecar]:
    """Run the program meanwhile; no environment and none of our secrets reach it. Raises OSError."""
    private_file.folder(device.folder)
    process = await asyncio.create_subprocess_exec(
        device.node,
        *(str(SCRIPT), str(device.packages), str(device.folder), *filter(None, (device.url,))),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LONGEST_LINE,
        env={},
        start_new_session=True,  # Ctrl-C in our terminal is ours
    )
    requests, lines = process.stdin, process.stdout
    if requests is None or lines is None:
        raise OSError("the program has no pipes")
    try:
        yield Sidecar(requests, lines, clock)
    finally:
        requests.close()  # which ends the program
        ending = asyncio.ensure_future(process.wait())
        await asyncio.wait({ending}, timeout=END_SECONDS)
        if not ending.done():
            process.kill()
        await ending


class Sidecar:
    """The program while it runs."""

    def __init__(self, requests: asyncio.StreamWriter, lines: asyncio.StreamReader, clock: Clock) -> None:
        self._requests = requests
        self._from_it = lines
        self._clock = clock
        self._calls: dict[int, asyncio.Future[None]] = {}
        self._numbers = itertools.count(1)

    async def event(self) -> Event:
        """Return what happens next. Raises Lost when the program ended, or says what is none of its lines."""
        try:
            while line := await self._from_it.readline():
                match _lines.decode(line):
                    case _Done(call):
                        self._settle(call, None)
                    case _Failed(call, code):
                        self._settle(call, Failed(code if isinstance(code, int) else 0))
                    case event:
                        return event
        except ValueError:  # also a line that is too long, or no JSON of ours
            raise Lost("the linked device said what cannot be read") from None
        raise Lost("the linked device ended")

    def lose(self) -> None:
        """End the calls that wait: nobody reads their answers any more."""
        for call in self._calls:
            self._settle(call, Lost("the linked device ended"))

    async def send(self, chat: str, text: str, name: str) -> None:
        """Send a message under an id of ours. Raises Lost, Failed."""
        number = next(self._numbers)
        future = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            self._say({"type": "send", "call": number, "chat": chat, "text": text, "id": name})
            async with self._clock.timeout(CALL_SECONDS):
                await future
        except TimeoutError:
            raise Lost(f"no answer in {CALL_SECONDS:g} s") from None
        finally:
            del self._calls[number]

    def typing(self, chat: str) -> None:
        """Show that we type."""
        self._say({"type": "typing", "chat": chat})

    def taken(self, file: str, *, read: bool) -> None:
        """Say that a message is safe, and whether to mark it as read."""
        self._say({"type": "taken", "file": file, "read": read})

    def _say(self, request: Mapping[str, object]) -> None:
        """Write a request, or nothing to a program that is gone: its end is noticed where events are read."""
        if not self._requests.is_closing():
            self._requests.write(msgspec.json.encode(request) + b"\n")

    def _settle(self, call: int, failure: Exception | None) -> None:
        future = self._calls.get(call)
        if future is None or future.done():
            return
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)

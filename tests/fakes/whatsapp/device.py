"""A stand-in for Node: a program that passes lines between its own input and output and a socket of the test."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.whatsapp.posts import Obj

_PROGRAM = """#!{python} -IS
import socket, sys, threading
sock = socket.create_connection(("127.0.0.1", int(sys.argv[4])))
def out():
    for line in sock.makefile("rb"):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    import os
    os._exit(0)
threading.Thread(target=out, daemon=True).start()
for line in sys.stdin.buffer:
    sock.sendall(line)
sock.close()
"""


class FakeDevice:
    """What the program that a channel started says and hears; one run after the other."""

    def __init__(self) -> None:
        self.runs = 0
        self.ended = 0
        self.requests: list[Obj] = []
        self.answers = True
        """Whether sends are confirmed by themselves."""
        self.failure: int | None = None
        """The code with which they fail instead."""
        self.opening: list[Obj] = [{"type": "open", "ids": ["15550000000:7@s.whatsapp.net", "999:7@lid"]}]
        """What each run says first."""
        self.port = 0
        self._writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.runs += 1
        self._writer = writer
        for event in self.opening:
            self.says(event)
        while line := await reader.readline():
            request = json.loads(line)
            self.requests.append(request)
            if request["type"] == "send" and self.answers:
                failed = {"type": "failed", "call": request["call"], "code": self.failure}
                self.says({"type": "done", "call": request["call"]} if self.failure is None else failed)
        self.ended += 1
        writer.close()

    def says(self, event: Obj | bytes) -> None:
        assert self._writer is not None
        self._writer.write((event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n")

    def message(self, text: str = "hi", *, file: str = "1.json", **fields: object) -> None:
        """Tell of a message in a direct chat, unless ``fields`` say otherwise."""
        found: Obj = {"id": "ABC", "chat": "16505551234@s.whatsapp.net", "text": text, "own": False}
        self.says({"type": "message", "file": file, "message": found | fields})

    def end(self) -> None:
        """Let the program end."""
        assert self._writer is not None
        self._writer.close()

    def of(self, kind: str) -> list[Obj]:
        """Return the requests of one kind."""
        return [request for request in self.requests if request["type"] == kind]


@asynccontextmanager
async def fake_device(folder: Path, version: str = "7.0.0-rc14") -> AsyncIterator[FakeDevice]:
    """Put a ``node`` into ``folder``/bin and the package where the setup puts it below ``folder``."""
    fake = FakeDevice()
    (folder / "bin").mkdir()
    program = folder / "bin" / "node"
    program.write_text(_PROGRAM.format(python=sys.executable))
    program.chmod(0o700)
    package = folder / "whatsapp" / "node_modules" / "baileys"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": version}))
    async with await asyncio.start_server(fake.serve, "127.0.0.1", 0) as server:
        fake.port = server.sockets[0].getsockname()[1]
        yield fake

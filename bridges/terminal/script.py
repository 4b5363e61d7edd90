"""Messages from a script: one, or one a line, each reply printed whole."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO, Final

from bridges.message import Acceptance, EventId, Inbox, ReplyTarget, SendOutcome, Sent
from bridges.terminal.chat import UNLIMITED, spoken
from commands.budget import utf16_length
from commands.cleaning import clean

LONGEST_LINE: Final = 1024 * 1024
"""Bytes of one input line; what is beyond is dropped."""

Printer = Callable[[tuple[str, ...]], bytes]
"""Makes the bytes of one reply from its segments."""


def as_text(segments: tuple[str, ...]) -> bytes:
    """Print a reply for reading: its segments joined as they were cut."""
    return f"{clean(''.join(segments))}\n".encode()


def as_json(segments: tuple[str, ...]) -> bytes:
    """Print a reply as one JSON line; lengths in UTF-16 units."""
    rows = [{"text": text, "length": utf16_length(text)} for text in segments]
    # Half a surrogate pair has no UTF-8 of its own; JSON can still say it.
    return f"{json.dumps({'segments': rows}, ensure_ascii=False)}\n".encode(errors="backslashreplace")


class ScriptChannel:
    """A channel whose messages are ``lines`` and which ends when all of them are settled."""

    limits = UNLIMITED

    def __init__(self, lines: AsyncIterator[str], out: BinaryIO, printer: Printer, mint: Callable[[], str]) -> None:
        self._lines = lines
        self._out = out
        self._printer = printer
        self._mint = mint
        self._outstanding: set[EventId] = set()
        self._settled = asyncio.Event()

    async def run(self, inbox: Inbox) -> None:
        """Take all lines, then wait for the replies that are still to come."""
        inbox.connected()
        async for line in self._lines:
            message = spoken(line, EventId(self._mint()))
            self._outstanding.add(message.id)
            if await inbox.accept(message) is not Acceptance.ACCEPTED:
                self._outstanding.discard(message.id)
        while self._outstanding:
            self._settled.clear()
            await self._settled.wait()

    def settled(self, event: EventId) -> None:
        """Note that a message's reply is out."""
        self._outstanding.discard(event)
        self._settled.set()

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """Print a reply of one segment."""
        return await self.send_reply(target, (text,))

    async def send_reply(self, target: ReplyTarget, segments: tuple[str, ...]) -> SendOutcome:
        """Print a whole reply."""
        del target
        self._out.write(self._printer(segments))
        self._out.flush()
        return Sent(None)

    async def close(self) -> None:
        """Nothing is held."""


async def only(text: str) -> AsyncIterator[str]:
    """Yield one message."""
    yield text


async def lines_of(descriptor: int) -> AsyncIterator[str]:
    """Yield the lines of a file, pipe or terminal as they come, without their ends.

    A daemon thread reads them with plain ``read`` calls: it may block for ever without holding anything the
    interpreter needs to end.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
    room = threading.Semaphore(64)

    def read() -> None:
        while data := os.read(descriptor, 65_536):
            room.acquire()
            if not _tell(loop, arrived, data):
                return
        _tell(loop, arrived, None)

    threading.Thread(target=read, name="input", daemon=True).start()
    rest = b""
    while (data := await arrived.get()) is not None:
        room.release()
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[:LONGEST_LINE]
        for line in lines:
            yield _decode(line)
    if rest:
        yield _decode(rest)


def _tell(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[bytes | None], data: bytes | None) -> bool:
    try:
        loop.call_soon_threadsafe(queue.put_nowait, data)
    except RuntimeError:  # the loop is closed: nobody reads any more
        return False
    return True


def _decode(line: bytes) -> str:
    return line[:LONGEST_LINE].removesuffix(b"\r").decode("utf-8", "replace")

"""Messages from a script: one, or one a line, each reply printed whole."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

from bridges.message import Acceptance, EventId, Inbox, NotSent, ReplyTarget, SendOutcome, Sent
from bridges.race import first_of
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


class OutputLost(OSError):
    """Nobody can read replies any more: the reader of the output is gone, or its disk is full."""


class ScriptChannel:
    """A channel whose messages are ``lines`` and which ends when all of them are settled.

    Replies go to the file descriptor ``out``.
    """

    limits = UNLIMITED

    def __init__(self, lines: AsyncIterator[str], out: int, printer: Printer, mint: Callable[[], str]) -> None:
        self._lines = lines
        self._out = Output(out)
        self._printer = printer
        self._mint = mint
        self._outstanding: set[EventId] = set()
        self._settled = asyncio.Event()
        self._lost: OSError | None = None
        self._losing = asyncio.Event()

    async def run(self, inbox: Inbox) -> None:
        """Take all lines, then wait for the replies that are still to come.

        Raises OutputLost: messages whose replies nobody reads are not run.
        """
        inbox.connected()
        await first_of(self._take(inbox), self._until_lost())
        if self._lost is not None:
            raise OutputLost(self._lost.errno, self._lost.strerror)

    async def _until_lost(self) -> None:
        await self._losing.wait()

    async def _take(self, inbox: Inbox) -> None:
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
        try:
            await self._out.write(self._printer(segments))
        except OSError as error:
            self._lost = error
            self._losing.set()
            return NotSent.BLOCKED
        return Sent(None)

    async def close(self) -> None:
        """See :meth:`bridges.message.Channel.close`."""
        self._out.close()


_Job = tuple[memoryview, asyncio.Future[None]]
"""What to write, and who waits for it."""


class Output:
    """Writes to a file, pipe or terminal without holding the event loop while its reader pauses.

    A daemon thread makes plain ``write`` calls, as that of :func:`lines_of` reads.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def write(self, data: bytes) -> None:
        """Write all of ``data``, behind what waits already. Raises OSError."""
        if self._thread is None:
            self._jobs = queue.SimpleQueue()
            self._thread = threading.Thread(target=self._write_all, args=(self._jobs,), name="output", daemon=True)
            self._thread.start()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._jobs.put((memoryview(data), done))
        await done

    def close(self) -> None:
        """Let the thread end behind what waits already; again is no error, and a later ``write`` starts anew."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread = None

    def _write_all(self, jobs: queue.SimpleQueue[_Job | None]) -> None:
        while (job := jobs.get()) is not None:
            rest, done = job
            failure: OSError | None = None
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                failure = error
            if not _tell(done.get_loop(), partial(_settle, done, failure)):
                return


def _settle(done: asyncio.Future[None], failure: OSError | None) -> None:
    if done.done():  # nobody waits any more
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)


async def only(text: str) -> AsyncIterator[str]:
    """Yield one message."""
    yield text


async def none() -> AsyncIterator[str]:
    """Yield no message: there is no input at all."""
    nothing: tuple[str, ...] = ()
    for line in nothing:
        yield line


async def lines_of(descriptor: int) -> AsyncIterator[str]:
    """Yield the lines of a file, pipe or terminal as they come, without their ends; one that breaks has ended.

    A daemon thread reads them with plain ``read`` calls: it may block for ever without holding anything the
    interpreter needs to end.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
    room = threading.Semaphore(64)

    def read() -> None:
        with contextlib.suppress(OSError):  # a terminal that was hung up
            while data := os.read(descriptor, 65_536):
                room.acquire()
                if not _tell(loop, partial(arrived.put_nowait, data)):
                    return
        _tell(loop, partial(arrived.put_nowait, None))

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


def _tell(loop: asyncio.AbstractEventLoop, news: Callable[[], None]) -> bool:
    try:
        loop.call_soon_threadsafe(news)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return False
    return True


def _decode(line: bytes) -> str:
    return line[:LONGEST_LINE].removesuffix(b"\r").decode("utf-8", "replace")

# ruff: noqa: SLF001 - the SDK has no public way to connect but one that blocks for ever
"""The process that runs the vendor's SDK: ``python -m bridges.feishu.sdk``, one for all bots, never imported by us.

Orders come on standard input, whose end means that we are to end too; reports go to standard output. What is worth a
process: the SDK keeps one event loop in a global and blocks it, its whole import takes seconds and 160 MB, and nothing
but ending a process surely ends it. Here it reconnects nothing: a link that is lost is over, and
whoever asked for it asks again.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from bridges.feishu.pipe import (
    LONGEST_LINE,
    UNANSWERED,
    Answer,
    Close,
    Ended,
    Event,
    Open,
    Order,
    Pong,
    Report,
    Up,
    Why,
    line,
)

DISCOVERY_SECONDS: Final = 15.0
DISCOVERY_BYTES: Final = 64 * 1024
"""Of the answer that says where to connect."""

SHORTEST_PING, LONGEST_PING = 10.0, 60.0
"""Seconds between two pings, whatever the platform asks for: by their answers we know that it still hears us."""

MOST_PARTS: Final = 64
"""Frames of one event."""

FAREWELL_SECONDS: Final = 1.0

_FORBIDDEN: Final = 403
_AUTH_FAILED: Final = 514
"""In a refused handshake: of all its meanings, the one the SDK takes for final is that there are too many links."""

_PACKAGE: Final = "lark_oapi"

Untyped: TypeAlias = Any
"""What is of the SDK, which has no types."""


def load() -> Untyped:
    """Import the SDK's long connection without the thousands of modules that its packages import for other ends.

    Where a version has its parts in other places, the whole of it is imported.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is not None:
        sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
        dispatcher = ModuleType(f"{_PACKAGE}.event.dispatcher_handler")
        setattr(dispatcher, "EventDispatcherHandler", object)  # noqa: B010 - a name of the SDK's, only ever annotated
        sys.modules[dispatcher.__name__] = dispatcher
        with suppress(ImportError, AttributeError):
            return importlib.import_module(f"{_PACKAGE}.ws.client")
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]
    return importlib.import_module(f"{_PACKAGE}.ws.client")


class Link:
    """One bot's connection."""

    def __init__(self, order: Open, report: Callable[[Report], None]) -> None:
        self.order = order
        self._report = report
        self._answers: dict[int, asyncio.Future[bool]] = {}
        self._events = 0
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Set to the name of what ended the connection."""

    async def run(self, sdk: Untyped) -> None:
        """Connect and stay connected until it is lost or cancelled; the end is reported."""
        why, detail = Why.LOST, ""
        client = _client(sdk, self)
        pinging: asyncio.Task[None] | None = None
        try:
            await client.discover()
            await client._connect()
            self._report(Up(self.order.link))
            pinging = asyncio.create_task(client._ping_loop())
            detail = await self.lost
        except sdk.ClientException as error:
            full = error.code == _AUTH_FAILED and client.discovered
            why, detail = (Why.FULL if full else Why.REFUSED), f"code {error.code}"
        except sdk.ServerException as error:
            detail = f"code {error.code}"
        except Exception as error:  # noqa: BLE001 - the supervisor of one link: the others go on
            detail = type(error).__name__
        finally:
            client._cache._cron.cancel()
            if pinging is not None:
                pinging.cancel()
            for number in list(self._answers):
                self.answer(number, taken=False)  # nobody is left to hear it
            await client._disconnect()
        self._report(Ended(self.order.link, why, detail))

    async def taken(self, payload: bytes) -> bool:
        """Hand an event in and wait for its answer."""
        if len(self._answers) >= UNANSWERED:
            return False
        self._events += 1
        number = self._events
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._report(Event(self.order.link, number, payload))
        try:
            return await answer
        finally:
            del self._answers[number]

    def answer(self, number: int, *, taken: bool) -> None:
        """Give the answer to an event."""
        waiting = self._answers.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(taken)

    def heard(self) -> None:
        """Say that the platform answered a ping."""
        self._report(Pong(self.order.link))


def _client(sdk: Untyped, link: Link) -> Untyped:
    """Return a client of the SDK that reports its end, waits for our answers and blocks nothing."""
    order = link.order

    class Client(sdk.Client):  # type: ignore[misc]  # what it inherits from has no type
        discovered = ""
        """Where to connect."""

        async def discover(self) -> None:
            async with asyncio.timeout(DISCOVERY_SECONDS):
                found = await asyncio.to_thread(super()._get_conn_url)
            if order.domain.startswith("https:") and not found.startswith("wss:"):
                raise ConnectionRefusedError  # what is said there would be for everybody to read
            self.discovered = found

        def _get_conn_url(self) -> str:
            return self.discovered

        def _configure(self, conf: Untyped) -> None:
            self._ping_interval = max(SHORTEST_PING, min(conf.PingInterval or LONGEST_PING, LONGEST_PING))

        async def _receive_message_loop(self) -> None:
            try:
                await super()._receive_message_loop()
            except Exception as error:  # noqa: BLE001 - the SDK would lose it in a task nobody looks at
                if not link.lost.done():
                    link.lost.set_result(type(error).__name__)

        async def _handle_control_frame(self, frame: Untyped) -> None:
            link.heard()
            await super()._handle_control_frame(frame)

        async def _handle_data_frame(self, frame: Untyped) -> None:
            payload = _event(self, frame)
            if payload is None:
                return
            began = time.monotonic()
            taken = len(payload) * 2 < LONGEST_LINE and await link.taken(payload)
            frame.payload = b'{"code":200}' if taken else b'{"code":500}'
            frame.headers.add(key="biz_rt", value=f"{(time.monotonic() - began) * 1000:.0f}")
            await self._write_message(frame.SerializeToString())

    return Client(order.app_id, order.app_secret, domain=order.domain, auto_reconnect=False)


def _event(client: Untyped, frame: Untyped) -> bytes | None:
    """Return the event that a frame completes; None for a part of one, and for what is no event."""
    headers = {header.key: header.value for header in frame.headers}
    parts, number = int(headers.get("sum", 1)), int(headers.get("seq", 0))
    if headers.get("type") != "event" or not 0 <= number < parts <= MOST_PARTS:
        return None
    whole: bytes | None = frame.payload
    if parts > 1:
        whole = client._combine(headers["message_id"], parts, number, frame.payload)
    return whole


def bounded(post: Untyped) -> Callable[..., SimpleNamespace]:
    """Return the SDK's way to ask where to connect with limits; left to itself it waits, and reads, for ever."""

    def ask(url: str, **more: object) -> SimpleNamespace:
        with post(url, timeout=DISCOVERY_SECONDS, allow_redirects=False, stream=True, **more) as answer:
            body = answer.raw.read(DISCOVERY_BYTES + 1, decode_content=True)
            if len(body) > DISCOVERY_BYTES:
                raise OverflowError
            return SimpleNamespace(status_code=answer.status_code, content=body)

    return ask


class Links:
    """All bots of this process."""

    def __init__(self, sdk: Untyped, report: Callable[[Report], None]) -> None:
        self._sdk = sdk
        self._report = report
        self._links: dict[int, tuple[Link, asyncio.Task[None]]] = {}

    def follow(self, order: Order) -> None:
        """Do what we are told; what is said to a link that is over says nothing new."""
        match order:
            case Open():
                link = Link(order, self._report)
                self._links[order.link] = link, asyncio.create_task(link.run(self._sdk))
            case Answer() if order.link in self._links:
                self._links[order.link][0].answer(order.event, taken=order.taken)
            case Close() if order.link in self._links:
                self._links.pop(order.link)[1].cancel()

    async def close(self) -> None:
        """Let every connection go, as far as that is done in time."""
        tasks = {task for _, task in self._links.values()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=FAREWELL_SECONDS)


async def serve(orders: BinaryIO, reports: BinaryIO) -> None:
    """Follow orders until there will be no more."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), orders)
    writer, _ = await loop.connect_write_pipe(asyncio.Protocol, reports)
    sdk = load()
    sdk.loop = loop
    sdk.requests = SimpleNamespace(post=bounded(sdk.requests.post))
    logging.getLogger("Lark").disabled = True  # it writes addresses with tickets, and to standard output
    links = Links(sdk, lambda report: writer.write(line(report)))
    decoder = msgspec.json.Decoder(Order)
    while order := await reader.readline():
        links.follow(decoder.decode(order))
    await links.close()


def main() -> None:
    """Keep standard output for ourselves, whatever else is printed, and end at once in the end."""
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    async def serve_and_end() -> None:
        try:
            await serve(sys.stdin.buffer, reports)
        finally:
            os._exit(0)  # the loop would wait for its threads, of which one may wait for the platform

    asyncio.run(serve_and_end(), debug=False)


if __name__ == "__main__":
    main()

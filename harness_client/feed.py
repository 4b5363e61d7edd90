"""From a socket to its consumers: one shared link, one bounded feed for each consumer.

The reader of a socket never waits for a consumer: pings are answered only while the socket is read, and the host cuts
a peer that misses two of them (facts HARNESS 4.5). A consumer that falls behind loses its own feed, nobody else's.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, Self, TypeVar

import aiohttp

from harness_client.carrier import BODY_LIMIT, CLOSE_SECONDS, Carrier, mapped, parse
from harness_client.errors import HarnessError, Unreachable

ITEM_LIMIT: Final = 4096
"""Items one consumer may leave unread; their bytes are bounded by BODY_LIMIT."""

T = TypeVar("T")


class Feed(Generic[T]):
    """A bounded queue with an end. Iterating yields what was put, then raises the error it was ended with."""

    def __init__(self) -> None:
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._error: HarnessError | None = None
        self._news = asyncio.Event()

    def put(self, item: T, size: int) -> None:
        """Add an item of ``size`` bytes; too many unread ones end the feed, for a gap must not go unseen."""
        if self._error is not None:
            return
        if len(self._items) >= ITEM_LIMIT or self._bytes + size > BODY_LIMIT:
            self._items.clear()
            self.end(Unreachable("the stream was read too slowly"))
            return
        self._items.append((item, size))
        self._bytes += size
        self._news.set()

    def end(self, error: HarnessError) -> None:
        """End the feed; the first end wins."""
        self._error = self._error or error
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._error is not None:
                raise self._error
            self._news.clear()
            await self._news.wait()
        item, size = self._items.popleft()
        self._bytes -= size
        return item


async def _uncut(task: asyncio.Future[T]) -> T:
    """Await ``task``; a cancellation waits for its end, for half an opened socket would belong to nobody.

    It is cut after CLOSE_SECONDS all the same; whoever is cancelled must come to an end.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            await asyncio.wait([task], timeout=CLOSE_SECONDS)
        finally:
            task.cancel()  # also when we are cancelled again meanwhile
        raise


class Link:
    """One WebSocket shared by its holders: opened for the first, closed after the last, opened anew when lost.

    ``receive`` gets every message and its size in bytes, ``lost`` the reason when the link breaks; the reading task
    calls both.
    """

    def __init__(
        self,
        carrier: Carrier,
        path: str,
        *,
        receive: Callable[[object, int], None],
        lost: Callable[[HarnessError], None],
    ) -> None:
        self._carrier = carrier
        self._path = path
        self._receive = receive
        self._lost = lost
        self._holders = 0
        self._change = asyncio.Lock()
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Whether the link stands."""
        return self._reader is not None and not self._reader.done()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the link open; raise HarnessError when it cannot be opened."""
        async with self._change:
            if not self.alive:
                await _uncut(asyncio.ensure_future(self._close()))
                self._socket = await self._connected()
                self._reader = asyncio.create_task(self._read(self._socket), name=f"harness {self._path}")
            self._holders += 1
        try:
            yield
        finally:
            await _uncut(asyncio.ensure_future(self._let_go()))

    async def _connected(self) -> aiohttp.ClientWebSocketResponse:
        connecting = asyncio.ensure_future(self._carrier.connect(self._path))
        try:
            return await _uncut(connecting)
        except asyncio.CancelledError:
            if connecting.done() and not connecting.cancelled() and connecting.exception() is None:
                await connecting.result().close()
            raise

    async def _let_go(self) -> None:
        async with self._change:
            self._holders -= 1
            if not self._holders:
                await self._close()

    async def send(self, frame: object) -> None:
        """Send a text frame; raise Unreachable when the link is gone."""
        if self._socket is None:
            raise Unreachable(f"{self._path}: the link is gone")
        with mapped(self._path):
            await self._socket.send_str(json.dumps(frame))

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        reason: HarnessError = Unreachable(f"{self._path}: the link was cancelled")
        try:
            with mapped(self._path):
                async for message in socket:
                    if message.type is aiohttp.WSMsgType.TEXT:
                        body = message.data.encode("utf-8", "surrogatepass")
                        self._receive(await parse(body), len(body))
            reason = Unreachable(f"{self._path}: the host closed the link ({socket.close_code})")
        except HarnessError as error:
            reason = error
        finally:
            self._lost(reason)

    async def _close(self) -> None:
        reader, socket = self._reader, self._socket
        self._reader = self._socket = None
        if reader is not None:
            reader.cancel()
            await asyncio.wait([reader])
        if socket is not None:
            await socket.close()

"""One connection to DingTalk's gateway: frames in, acknowledgements out. Imports the SDK.

Of the SDK only the frames and the handlers are used: its own loop cannot be cancelled, asks for its address without a
timeout and notices neither a dead connection nor a gateway that stopped pushing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp
import msgspec
import structlog
from dingtalk_stream import (  # type: ignore[import-untyped]  # the SDK has no types
    AckMessage,
    CallbackHandler,
    CallbackMessage,
    SystemHandler,
    SystemMessage,
)

from bridges.message import Clock
from bridges.race import first_of

BEAT_SECONDS: Final = 20.0
"""Between two pings; the answer to one must be there at the next."""

DEAF_SECONDS: Final = 180.0
"""So long without a frame, of which the gateway sends some by itself, and it counts as one that stopped pushing."""

WAITING: Final = 1_000
"""Callbacks that may wait to be taken on; more of them hold up reading."""

Accept = Callable[[object], Awaitable[None]]


class Ended(Exception):
    """The connection is over; another one may be made."""


class _Frame(msgspec.Struct):
    """Enough of a frame to know who reads it."""

    type: str = ""


class _Receiver(CallbackHandler):  # type: ignore[misc]  # the SDK has no types
    """Hands the data of a callback on; the SDK acknowledges it once that returned, and never if it raises."""

    def __init__(self, accept: Accept) -> None:
        super().__init__()
        self._accept = accept

    async def process(self, message: CallbackMessage) -> tuple[int, str]:
        await self._accept(message.data)
        return AckMessage.STATUS_OK, "OK"


class Link:
    """Lives as long as its socket, which must leave pings and pongs to it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, topic: str, clock: Clock) -> None:
        self._socket = socket
        self._topic = topic
        self._clock = clock
        self._callbacks: asyncio.Queue[CallbackMessage] = asyncio.Queue(WAITING)
        self._system = SystemHandler()
        self._heard = clock.monotonic()
        self._answered = True
        self._log = structlog.get_logger(__name__)

    async def run(self, accept: Accept) -> None:
        """Hand the data of callbacks to ``accept``, one after the other.

        Always ends by raising: Ended, or what ``accept`` raised.
        """
        receiver = _Receiver(accept)
        _use_our_log()
        await first_of(self._read(), self._work(receiver), self._watch())

    async def _read(self) -> None:
        while True:
            message = await self._socket.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    self._heard = self._clock.monotonic()
                    await self._take(message.data)
                case aiohttp.WSMsgType.PING:
                    await self._send(self._socket.pong(message.data))
                case aiohttp.WSMsgType.PONG:
                    self._answered = True
                case aiohttp.WSMsgType.BINARY:
                    pass
                case _:
                    raise Ended(f"closed by the gateway: {self._socket.close_code}")

    async def _take(self, data: str) -> None:
        try:
            frame = json.loads(data)
            match msgspec.convert(frame, _Frame).type:
                case SystemMessage.TYPE:
                    await self._obey(SystemMessage.from_dict(frame))
                case CallbackMessage.TYPE if (
                    callback := CallbackMessage.from_dict(frame)
                ).headers.topic == self._topic:
                    await self._callbacks.put(callback)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:  # whatever the SDK makes of it
            self._log.warning("a frame that cannot be read was left out", error=type(error).__name__)

    async def _obey(self, message: SystemMessage) -> None:
        await self._acknowledge(await self._system.raw_process(message))
        if message.headers.topic == SystemMessage.TOPIC_DISCONNECT:
            raise Ended("the gateway asks to connect anew")

    async def _work(self, receiver: _Receiver) -> None:
        while True:
            await self._acknowledge(await receiver.raw_process(await self._callbacks.get()))

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(BEAT_SECONDS)
            if not self._answered:
                raise Ended(f"no answer to a ping in {BEAT_SECONDS:g} s")
            if self._clock.monotonic() - self._heard >= DEAF_SECONDS:
                raise Ended(f"the gateway sent nothing for {DEAF_SECONDS:g} s")
            self._answered = False
            await self._send(self._socket.ping())

    async def _acknowledge(self, message: AckMessage) -> None:
        await self._send(self._socket.send_str(json.dumps(message.to_dict())))

    async def _send(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except (aiohttp.ClientError, OSError):
            raise Ended("the connection was lost") from None


def _use_our_log() -> None:
    """Take away the handlers and levels the SDK gave its loggers when its handlers were made."""
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("dingtalk_stream")]:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)

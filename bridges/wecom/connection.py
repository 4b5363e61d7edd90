"""One WebSocket to WeCom, from subscribing to its end, and the way to send over whichever one there is.

Each frame of ours is acknowledged under its request id and by nothing else, so of one id only one frame is in flight.
An acknowledgement that does not come leaves open what became of the frame.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

import aiohttp
import msgspec

from bridges.message import ChannelStopped, Stop
from bridges.race import first_of
from harness_client.clock import Clock

SUBSCRIBE_SECONDS: Final = 15.0
ACK_SECONDS: Final = 5.0
BEAT_SECONDS: Final = 30.0
MISSED_BEATS: Final = 2
"""So many in a row without an answer, and the link is a dead one."""

PATIENCE_SECONDS: Final = 10.0
"""How long a frame waits for a link to come back."""

MAX_MESSAGE: Final = 8 * 1024 * 1024
"""Bytes of one frame."""

NOT_SUBSCRIBED: Final = 846609
"""The socket is open, and the platform does not know any more whose it is."""

_PING: Final = "ping"
_CALLBACKS: Final = frozenset({"aibot_msg_callback", "aibot_event_callback"})


class Ended(Exception):
    """The connection is over; another one may be made."""


class NotConnected(Exception):
    """There was no link: nothing was sent."""


class Unacknowledged(Exception):
    """No answer: the frame may or may not have taken effect."""


class Refused(Exception):
    """The platform said no."""

    def __init__(self, command: str, code: int) -> None:
        super().__init__(f"{command}: code {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who subscribes."""

    bot_id: str
    secret: str = field(repr=False)


class Callback(msgspec.Struct):
    """What the platform tells; ``request`` is what a reply must name."""

    command: str
    request: str
    body: object


class _Headers(msgspec.Struct):
    req_id: str = ""


class _Frame(msgspec.Struct):
    headers: _Headers = msgspec.field(default_factory=_Headers)
    cmd: str | None = None
    body: object = None
    errcode: int | None = None


class _Event(msgspec.Struct):
    eventtype: str = ""


class _EventBody(msgspec.Struct):
    event: _Event = msgspec.field(default_factory=_Event)


class Connection:
    """Lives as long as its socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, clock: Clock) -> None:
        self._socket = socket
        self._clock = clock
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._acks: dict[str, asyncio.Future[int]] = {}
        self._over = asyncio.Event()
        self._why = ""
        self._missed = 0

    async def run(self, who: Credentials, up: Callable[[], None], hear: Callable[[Callback], None]) -> None:
        """Subscribe, call ``up``, and hand callbacks to ``hear``. Always ends by raising.

        Ended: connect again. Refused: the platform does not take the subscription. ChannelStopped: another program
        subscribed as the same bot; taking the bot back would only start a fight.
        """
        try:
            await first_of(self._read(hear), self._stay(who, up), self._notice())
        finally:
            for acknowledged in self._acks.values():
                if not acknowledged.done():
                    acknowledged.set_exception(Unacknowledged())

    async def request(
        self, command: str, body: object, request: str | None = None, *, seconds: float = ACK_SECONDS
    ) -> None:
        """Send one frame and wait until it is acknowledged. Raises NotConnected, Unacknowledged, Refused."""
        request = request or f"{command}_{uuid.uuid4().hex}"
        async with self._turns.setdefault(request, asyncio.Lock()):
            if self._socket.closed:
                raise NotConnected
            acknowledged = self._acks[request] = asyncio.get_running_loop().create_future()
            sent = False
            try:
                async with self._clock.timeout(seconds):
                    await self._send(command, request, body)
                    sent = True
                    code = await acknowledged
            except (aiohttp.ClientError, OSError):  # also the TimeoutError of the clock
                if not sent:
                    self._give_up("the platform takes nothing in")
                raise Unacknowledged from None
            finally:
                del self._acks[request]
        if code == NOT_SUBSCRIBED:
            self._give_up("the platform forgot the subscription")
            raise NotConnected
        if code:
            raise Refused(command, code)

    async def _stay(self, who: Credentials, up: Callable[[], None]) -> None:
        """Subscribe and keep the link warm."""
        try:
            body = {"bot_id": who.bot_id, "secret": who.secret}
            await self.request("aibot_subscribe", body, seconds=SUBSCRIBE_SECONDS)
        except (NotConnected, Unacknowledged):
            raise Ended("no answer to the subscription") from None
        up()
        while True:
            await self._clock.sleep(BEAT_SECONDS)
            if self._missed == MISSED_BEATS:
                raise Ended(f"no answer to {MISSED_BEATS} heartbeats")
            self._missed += 1
            try:
                async with self._clock.timeout(ACK_SECONDS):  # what reads nothing takes no heartbeat either
                    await self._send(_PING, f"{_PING}_{uuid.uuid4().hex}", None)
            except (aiohttp.ClientError, OSError):
                raise Ended("the connection was lost") from None

    def _give_up(self, why: str) -> None:
        self._why = why
        self._over.set()

    async def _notice(self) -> None:
        await self._over.wait()
        raise Ended(self._why)

    async def _read(self, hear: Callable[[Callback], None]) -> None:
        while True:
            frame = await self._next()
            request = frame.headers.req_id
            if frame.cmd in _CALLBACKS:
                _look_for_the_end(frame)
                hear(Callback(frame.cmd or "", request, frame.body))
            elif request.startswith(_PING):
                self._missed = 0
            elif (acknowledged := self._acks.get(request)) is not None and not acknowledged.done():
                acknowledged.set_result(frame.errcode or 0)

    async def _next(self) -> _Frame:
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                return _decode(message.data)
            if message.type is not aiohttp.WSMsgType.BINARY:
                raise Ended(f"closed by the platform: {self._socket.close_code}")

    async def _send(self, command: str, request: str, body: object) -> None:
        frame: dict[str, object] = {"cmd": command, "headers": {"req_id": request}}
        if body is not None:
            frame["body"] = body
        await self._socket.send_str(msgspec.json.encode(frame).decode())


class Line:
    """The way to send, whichever connection there is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connection: Connection | None = None
        self.up = asyncio.Event()
        """Set while there is one."""

    def use(self, connection: Connection | None) -> None:
        """Send over this one from now on; None: there is none."""
        self._connection = connection
        if connection is None:
            self.up.clear()
        else:
            self.up.set()

    async def request(self, command: str, body: object, request: str | None = None) -> None:
        """As :meth:`Connection.request`, after a link that is just being made anew is up."""
        try:
            async with self._clock.timeout(PATIENCE_SECONDS):
                await self.up.wait()
        except TimeoutError:
            raise NotConnected from None
        if self._connection is None:
            raise NotConnected
        await self._connection.request(command, body, request)


def _look_for_the_end(frame: _Frame) -> None:
    """Stop for good when another connection took the bot; the platform may leave this socket open all the same."""
    try:
        told = msgspec.convert(frame.body, _EventBody)
    except msgspec.ValidationError:
        return
    if told.event.eventtype == "disconnected_event":
        raise ChannelStopped(
            Stop.REPLACED, "another program connected as this WeCom bot; end it, or give this one a bot of its own"
        )


def _decode(data: str) -> _Frame:
    try:
        # Not strict: control characters have been seen inside strings.
        return msgspec.convert(json.loads(data, strict=False), _Frame)
    except (ValueError, RecursionError):
        raise Ended("a frame that is none") from None

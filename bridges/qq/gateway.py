"""One connection to QQ's gateway: Hello, who we are, heartbeats, events; and what each way it ends means.

The sequence number we repeat is that of the last event that was durably accepted: what came after it is delivered
again when the session is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final, TypeVar

import aiohttp
import msgspec

from bridges.race import first_of
from harness_client.clock import Clock

HELLO_SECONDS: Final = 30.0
"""For Hello, and again for the answer to it."""

LONGEST_BEAT: Final = 120.0
WAITING_EVENTS: Final = 1000
MAX_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes of one frame."""

RESUMES: Final = 3
"""Resumes in a row that led to nothing; then the session is given up, or it would go on for ever."""

PRIVATE: Final = 1 << 25
"""Private chats and groups."""

GUILDS: Final = 1 << 30 | 1 << 12
"""Public guild messages that mention the bot, and guild direct messages; not every bot is granted them."""

_HEARTBEAT, _IDENTIFY, _RESUME, _HELLO = 1, 2, 6, 10


class After(Enum):
    """What the end of a connection asks for."""

    RESUME = auto()
    IDENTIFY = auto()
    NEW_TOKEN = auto()
    SLOW_DOWN = auto()
    FEWER_INTENTS = auto()
    STOP = auto()


_AFTER: Final = {
    4001: After.IDENTIFY, 4002: After.IDENTIFY,
    4004: After.NEW_TOKEN,
    4006: After.IDENTIFY, 4007: After.IDENTIFY,
    4008: After.SLOW_DOWN,
    4009: After.RESUME,
    4010: After.STOP, 4011: After.STOP, 4012: After.STOP,
    4013: After.FEWER_INTENTS, 4014: After.FEWER_INTENTS,
    **dict.fromkeys(range(4900, 4914), After.IDENTIFY),
    4914: After.STOP, 4915: After.STOP,
}  # fmt: skip
"""By close code; any other end, and none at all, is a lost connection."""


class Ended(Exception):
    """The connection ended, and ``after`` says what that asks for."""

    def __init__(self, what: str, after: After) -> None:
        super().__init__(what)
        self.after = after

    @classmethod
    def by(cls, code: int | None) -> Ended:
        """Return the end by a close code."""
        return cls(f"closed by the gateway: {code}", _AFTER.get(code or 0, After.RESUME))


class Session(msgspec.Struct):
    """What resumes a connection, also in another process. ``bot`` is the bot's own id, which only READY tells."""

    id: str = ""
    seq: int = 0
    bot: str = ""
    tries: int = 0
    """Resumes of this process since one of them led to something."""

    def encode(self) -> bytes:
        """Return what another process may go on with."""
        return msgspec.json.encode(Session(self.id, self.seq, self.bot))

    def forget(self) -> None:
        """Let the next connection begin a new session."""
        self.id, self.seq, self.tries = "", 0, 0


class Event(msgspec.Struct):
    """An event in its turn."""

    name: str
    data: msgspec.Raw


class _Frame(msgspec.Struct):
    op: int
    s: int | None = None
    t: str | None = None
    d: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class _Hello(msgspec.Struct):
    heartbeat_interval: float


class _User(msgspec.Struct):
    id: str = ""


class _Ready(msgspec.Struct):
    session_id: str
    user: _User = msgspec.field(default_factory=_User)


Accept = Callable[[Event], Awaitable[None]]
Save = Callable[[], Awaitable[None]]


class Connection:
    """One socket from its opening to its end. ``session`` is kept up to date; whoever owns it writes it down."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session: Session, clock: Clock) -> None:
        self._socket = socket
        self._session = session
        self._clock = clock
        self._events: asyncio.Queue[tuple[int, Event]] = asyncio.Queue(WAITING_EVENTS)
        self._welcome = asyncio.Event()
        self._acknowledged = True

    async def run(self, token: str, intents: int, up: Callable[[], None], accept: Accept, save: Save) -> None:
        """Introduce ourselves, call ``up`` once we are welcome, and hand events to ``accept`` one by one.

        ``save`` is awaited when no event is left waiting. Always ends by raising: Ended, or what ``accept`` and
        ``save`` raised.
        """
        try:
            async with self._clock.timeout(HELLO_SECONDS):
                interval = await self._hello()
        except TimeoutError:
            raise Ended("no hello in time", After.RESUME) from None
        await self._introduce(token, intents)
        try:
            await first_of(self._read(up), self._beat(interval), self._work(accept, save))
        except asyncio.CancelledError:  # we end it, and nothing was wrong with it
            self._session.tries = 0
            raise

    async def _hello(self) -> float:
        frame = await self._next()
        if frame.op != _HELLO:
            raise Ended("no hello", After.RESUME)
        return min(max(_decode(frame.d, _Hello).heartbeat_interval / 1000, 1.0), LONGEST_BEAT)

    async def _introduce(self, token: str, intents: int) -> None:
        session = self._session
        if session.tries >= RESUMES:
            session.forget()
        auth = {"token": f"QQBot {token}"}
        if session.id:
            session.tries += 1
            await self._send(_RESUME, auth | {"session_id": session.id, "seq": session.seq})
        else:
            await self._send(_IDENTIFY, auth | {"intents": intents, "shard": [0, 1], "properties": {}})

    async def _read(self, up: Callable[[], None]) -> None:
        while True:
            frame = await self._next()
            match frame.op:
                case 0:
                    if frame.t in {"READY", "RESUMED"}:
                        self._greet(frame)
                        up()
                    await self._events.put((frame.s or 0, Event(frame.t or "", frame.d)))
                case 11:
                    self._acknowledged = True
                    self._session.tries = 0  # the link is a good one
                case 7:
                    raise Ended("the gateway asks to connect anew", After.RESUME)
                case 9:
                    raise Ended("the session is not valid", After.IDENTIFY)

    def _greet(self, frame: _Frame) -> None:
        if frame.t == "READY":
            ready = _decode(frame.d, _Ready)
            self._session.forget()
            self._session.id, self._session.bot = ready.session_id, ready.user.id
        self._welcome.set()

    async def _work(self, accept: Accept, save: Save) -> None:
        """Take events on in order. A thousand that wait hold up reading, then the heartbeat, and are resumed later."""
        while True:
            seq, event = await self._events.get()
            await accept(event)
            self._session.seq = max(self._session.seq, seq)
            if self._events.empty():
                await save()

    async def _beat(self, interval: float) -> None:
        try:
            async with self._clock.timeout(HELLO_SECONDS):
                await self._welcome.wait()
        except TimeoutError:
            raise Ended("no welcome in time", After.RESUME) from None
        while True:
            await self._clock.sleep(interval)
            if not self._acknowledged:
                raise Ended(f"no answer to a heartbeat in {interval:g} s", After.RESUME)
            self._acknowledged = False
            await self._send(_HEARTBEAT, self._session.seq or None)

    async def _send(self, op: int, body: object) -> None:
        try:
            await self._socket.send_str(msgspec.json.encode({"op": op, "d": body}).decode())
        except (aiohttp.ClientError, OSError):
            raise Ended("the connection was lost", After.RESUME) from None

    async def _next(self) -> _Frame:
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                return _decode(message.data, _Frame)
            if message.type is not aiohttp.WSMsgType.BINARY:
                raise Ended.by(self._socket.close_code)


T = TypeVar("T")


def _decode(data: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError):
        raise Ended(f"a frame that is no {kind.__name__.strip('_').lower()}", After.RESUME) from None

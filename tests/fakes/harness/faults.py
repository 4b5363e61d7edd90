"""Faults a test asks for, at one method or at all of them, in the order they were asked for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Literal, TypedDict

from aiohttp import web

from tests.fakes.harness.dialect import Obj

DRIP_BYTES = 4096
DEFAULT_BODIES = {401: b"unauthorized", 403: b"forbidden", 404: b"not found"}


class How(TypedDict, total=False):
    """How an answer goes wrong; anything left out stays as it is."""

    status: int
    body: bytes
    """The whole body as it stands."""
    value: bytes | object
    """The value of a proper envelope: anything JSON has, or JSON made beforehand."""
    error: Obj
    """The error of a proper envelope: code, message, details."""
    content_type: str
    headers: dict[str, str]
    drop: Literal["before", "mid"]
    """Reset the connection without an answer, or in the middle of the body."""
    delay: asyncio.Event | float
    """Answer only after the event or after so many seconds."""
    drip: asyncio.Event | float
    """Send the body in pieces, with so many seconds between them or stuck after the first until the event."""
    drip_bytes: int
    times: int
    """How many calls go wrong; all of them when left out."""
    after: int
    """How many calls go well first."""
    effect: bool
    """Let the call take its effect first: a lost answer instead of a lost request."""


@dataclass(slots=True)
class Fault:
    """A fault at one method (``*`` for all); counts down as calls meet it."""

    method: str
    how: How
    met: int = 0

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return self.how.get("status", 200)

    @property
    def answers(self) -> bool:
        """Whether the fault brings an answer of its own."""
        return self.status != 200 or not self.how.keys().isdisjoint({"body", "value", "error"})

    @property
    def loses_request(self) -> bool:
        """Whether the host never comes to do what was asked."""
        return (self.answers or self.how.get("drop") == "before") and not self.how.get("effect", False)

    @property
    def breaks_socket(self) -> bool:
        """Whether a socket that is being opened is to be refused."""
        return self.status != 200 or self.how.get("drop") == "before"

    def takes(self, method: str) -> bool:
        """Whether this call is to go wrong; counts the call."""
        if self.method not in (method, "*"):
            return False
        self.met += 1
        turn = self.met - self.how.get("after", 0)
        return turn > 0 and ("times" not in self.how or turn <= self.how["times"])

    def content(self, rpc_id: str, encoded: bytes = b"") -> bytes:
        """Return the body: the fault's own, or the good one."""
        if "body" in self.how:
            return self.how["body"]
        if "value" not in self.how and "error" not in self.how:
            return encoded if self.status == 200 else DEFAULT_BODIES.get(self.status, b"handler failure: fake")
        head = b'{"type":"server-response","rpcId":' + json.dumps(rpc_id).encode() + b',"result":'
        if "error" in self.how:
            return head + json.dumps({"ok": False, "error": self.how["error"]}).encode() + b"}"
        value = self.how["value"]
        return (
            head + b'{"ok":true,"value":' + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"}}"
        )

    async def wait(self) -> None:
        """Hold the answer back."""
        if "delay" in self.how:
            await _pause(self.how["delay"])

    async def send(self, request: web.Request, body: bytes, content_type: str) -> web.StreamResponse:
        """Send a body the faulty way."""
        if self.how.get("drop") == "before":
            cut(request)
            return web.Response()
        headers = {"Content-Type": self.how.get("content_type", content_type), **self.how.get("headers", {})}
        response = web.StreamResponse(status=self.status, headers=headers)
        response.enable_chunked_encoding()
        await response.prepare(request)
        if self.how.get("drop") == "mid":
            await response.write(body[: len(body) // 2])
            cut(request)
            return response
        size = self.how.get("drip_bytes", DRIP_BYTES) if "drip" in self.how else max(1, len(body))
        for start in range(0, len(body), size):
            await response.write(body[start : start + size])
            if "drip" in self.how:
                await _pause(self.how["drip"])
        await response.write_eof()
        return response


async def _pause(until: asyncio.Event | float) -> None:
    if isinstance(until, asyncio.Event):
        await until.wait()
    else:
        await asyncio.sleep(until)


def cut(request: web.BaseRequest) -> None:
    """Reset the connection."""
    if request.transport is not None:
        request.transport.abort()

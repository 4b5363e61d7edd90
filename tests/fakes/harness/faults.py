"""Faults a test asks for, at one method or at all of them, in the order they were asked for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from aiohttp import web

from tests.fakes.harness.dialect import Obj

PIECE = 4096


@dataclass(slots=True)
class Fault:
    """One way for an answer to go wrong. ``times`` None means always; the first ``after`` calls go well."""

    method: str
    status: int = 200
    body: bytes | None = None
    """The whole body as it stands."""
    value: bytes | Obj | None = None
    """The value of a proper envelope: an object, or JSON made beforehand."""
    error: Obj | None = None
    """The error of a proper envelope: code, message, details."""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    drop: str | None = None
    """``before``: reset without an answer; ``mid``: reset in the middle of the body."""
    delay: asyncio.Event | float | None = None
    """Answer only after the event or after so many seconds."""
    drip: float | None = None
    """Send the body in pieces of ``drip_bytes`` with so many seconds between them."""
    drip_bytes: int = PIECE
    times: int | None = None
    after: int = 0
    effect: bool = False
    """Whether the call takes its effect before the answer goes wrong: a lost answer instead of a lost request."""

    @property
    def answers(self) -> bool:
        """Whether the fault brings an answer of its own."""
        own = (self.body, self.value, self.error)
        return self.status != 200 or any(part is not None for part in own)

    def takes(self, method: str) -> bool:
        """Whether this call is to go wrong; counts the call."""
        if self.method not in (method, "*"):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is None:
            return True
        self.times -= 1
        return self.times >= 0

    def content(self, rpc_id: str) -> bytes:
        """Return the body."""
        if self.body is not None:
            return self.body
        if isinstance(self.value, bytes):
            head = (
                b'{"type":"server-response","rpcId":' + json.dumps(rpc_id).encode() + b',"result":{"ok":true,"value":'
            )
            return head + self.value + b"}}"
        if self.value is None and self.error is None:
            return {401: b"unauthorized", 403: b"forbidden", 404: b"not found"}.get(
                self.status, b"handler failure: fake"
            )
        result: Obj = {"ok": True, "value": self.value} if self.error is None else {"ok": False, "error": self.error}
        return json.dumps({"type": "server-response", "rpcId": rpc_id, "result": result}).encode()

    async def wait(self) -> None:
        """Hold the answer back."""
        if isinstance(self.delay, asyncio.Event):
            await self.delay.wait()
        elif self.delay is not None:
            await asyncio.sleep(self.delay)


def cut(request: web.BaseRequest) -> None:
    """Reset the connection."""
    if request.transport is not None:
        request.transport.abort()


async def send(request: web.Request, fault: Fault, body: bytes, content_type: str) -> web.StreamResponse:
    """Send a body the faulty way."""
    response = web.StreamResponse(status=fault.status, headers={"Content-Type": content_type, **fault.headers})
    response.enable_chunked_encoding()
    await response.prepare(request)
    if fault.drop == "mid":
        await response.write(body[: len(body) // 2])
        cut(request)
        return response
    if fault.drip is None:
        await response.write(body)
    else:
        for start in range(0, len(body), fault.drip_bytes):
            await response.write(body[start : start + fault.drip_bytes])
            await asyncio.sleep(fault.drip)
    await response.write_eof()
    return response

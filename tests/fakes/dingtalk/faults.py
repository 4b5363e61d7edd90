"""Faults a test scripts for one call."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call in the place of its answer."""

    status: int = 200
    code: str = ""
    errcode: int = 0
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    accepted: bool = False
    """Whether the call takes effect all the same."""
    drop: bool = False
    """Reset the connection."""
    hang: bool = False
    """Never answer."""

    async def response(self, request: web.Request) -> web.Response:
        if self.hang:
            await asyncio.Event().wait()
        if self.drop:
            assert request.transport is not None
            request.transport.abort()
        body = self.body
        if self.errcode:
            body = json.dumps({"errcode": self.errcode, "errmsg": "no"}).encode()
        elif self.code:
            body = json.dumps({"code": self.code, "message": "no", "requestid": "r"}).encode()
        return web.Response(status=self.status, body=body, headers=dict(self.headers))

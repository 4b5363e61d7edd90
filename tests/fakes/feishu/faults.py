"""Faults a test scripts for one call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call in the place of its answer."""

    status: int = 200
    code: int | None = None
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
        if self.code is not None:
            return web.json_response({"code": self.code, "msg": "no"}, status=self.status, headers=dict(self.headers))
        return web.Response(status=self.status, body=self.body, headers=dict(self.headers))

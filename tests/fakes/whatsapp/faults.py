"""Faults a test scripts for one call."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call in the place of its answer."""

    status: int = 400
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
        body = self.body if self.code is None else refusal(self.code)
        return web.Response(status=self.status, body=body, headers=dict(self.headers), content_type="application/json")


def refusal(code: int) -> bytes:
    """Return the body of a refusal."""
    error = {
        "message": f"(#{code}) no",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": "no"},
        "fbtrace_id": "AbC",
    }
    return json.dumps({"error": error}).encode()

"""The address that WhatsApp posts to: who may post, how much, and what it is told."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog
from aiohttp import web

from bridges.doors import served
from bridges.listen import Listen
from bridges.message import Clock

LARGEST_POST: Final = 4 * 1024 * 1024
"""Bytes; WhatsApp's own limit is 3 MB."""

MAX_POSTS: Final = 32
"""Posts that may be open at once; one more is told to come again, as everything WhatsApp does not get a 200 for."""

READ_SECONDS: Final = 10.0
"""How long the body of a post may take to arrive."""

_SIGNATURE: Final = re.compile(r"sha256=[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Door:
    """Where the webhook listens, and the two secrets it knows its visitors by."""

    listen: Listen
    path: str
    app_secret: str = field(repr=False)
    verify_token: str = field(repr=False)


class Webhook:
    """Hands each genuine post to ``receive``, which raises OSError when it must be delivered again."""

    def __init__(self, door: Door, receive: Callable[[bytes], Awaitable[None]], clock: Clock) -> None:
        self._door = door
        self._receive = receive
        self._clock = clock
        self._open = 0
        self._complained: set[str] = set()
        self._log = structlog.get_logger(__name__)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen meanwhile; yields the address. Raises OSError when nobody can listen there.

        Posts on their way in at the end get a moment; WhatsApp delivers the others again.
        """
        app = web.Application(client_max_size=LARGEST_POST)
        app.router.add_get(self._door.path, self._verify, allow_head=False)
        app.router.add_post(self._door.path, self._post)
        async with served(app, self._door.listen) as base:
            yield base + self._door.path

    async def _verify(self, request: web.Request) -> web.Response:
        """Answer the question that WhatsApp asks when the address is entered there."""
        query = request.query
        if query.get("hub.mode") == "subscribe" and _same(query.get("hub.verify_token", ""), self._door.verify_token):
            return web.Response(text=query.get("hub.challenge", ""))
        self._complain("a verification with another verify_token was refused")
        return web.Response(status=403)

    async def _post(self, request: web.Request) -> web.Response:
        if self._open >= MAX_POSTS:
            return web.Response(status=503)
        self._open += 1
        try:
            return web.Response(status=await self._taken(request))
        finally:
            self._open -= 1

    async def _taken(self, request: web.Request) -> int:
        """Return the HTTP status that says what became of a post; what carries no signature is not even read."""
        signature = request.headers.get("X-Hub-Signature-256", "")
        if not _SIGNATURE.fullmatch(signature):
            return self._refuse()
        try:
            async with self._clock.timeout(READ_SECONDS):
                body = await request.read()
        except TimeoutError:
            return 408
        expected = hmac.new(self._door.app_secret.encode(), body, hashlib.sha256).hexdigest()
        if not _same(signature, f"sha256={expected}"):
            return self._refuse()
        try:
            await self._receive(body)
        except OSError as error:
            self._log.error("not acknowledged", error=type(error).__name__)
            return 503
        return 200

    def _refuse(self) -> int:
        self._complain("a post that was not signed with app_secret was refused")
        return 403

    def _complain(self, what: str) -> None:
        """Say once what anybody on the internet can cause as often as they like."""
        if what not in self._complained:
            self._complained.add(what)
            self._log.warning(what)


def _same(given: str, expected: str) -> bool:
    """Compare without telling by the time it takes how much of it was right."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())

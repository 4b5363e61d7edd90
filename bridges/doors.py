"""Pages of ours that others come to: whoever holds connections open cannot have more of them than we can spare."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from bridges.listen import Listen

MAX_CONNECTIONS: Final = 256
"""Connections, of which one may keep as many open as it likes: they are files of the whole program."""

KEEP_SECONDS: Final = 30.0
"""How long a connection may wait for its next request, and for its first."""

FAREWELL_SECONDS: Final = 0.5
"""What requests on their way in get at the end."""


@asynccontextmanager
async def served(pages: web.Application, listen: Listen) -> AsyncIterator[str]:
    """Serve ``pages`` while the context lasts; yields the base address. Raises OSError when the port cannot be had.

    No access log: addresses may carry tokens.
    """
    runner = web.AppRunner(pages, access_log=None, shutdown_timeout=FAREWELL_SECONDS, keepalive_timeout=KEEP_SECONDS)
    await runner.setup()
    try:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_admitting(runner), listen.host, listen.port)
        try:
            host, port = server.sockets[0].getsockname()[:2]
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
        finally:
            server.close()  # and no wait: from Python 3.12 on it is for connections that only cleanup() ends
    finally:
        await runner.cleanup()


class _TurnedAway(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :meth:`asyncio.BaseProtocol.connection_made`."""
        if isinstance(transport, asyncio.Transport):
            transport.abort()


def _admitting(runner: web.AppRunner) -> Callable[[], asyncio.BaseProtocol]:
    """Return what takes connections, MAX_CONNECTIONS of them at a time."""

    def admit() -> asyncio.BaseProtocol:
        server = runner.server
        return server() if server is not None and len(server.connections) < MAX_CONNECTIONS else _TurnedAway()

    return admit

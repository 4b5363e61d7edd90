"""The fake host on a real loopback socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self, Unpack

from aiohttp import web

from harness_client.types import Generation
from tests.fakes.harness.carrier import Untyped, fenced, plain
from tests.fakes.harness.dialect import DIALECTS, Flavour, Obj
from tests.fakes.harness.downlink import Downlink
from tests.fakes.harness.faults import Fault, How
from tests.fakes.harness.legacy import Legacy
from tests.fakes.harness.login import Login
from tests.fakes.harness.model import Model
from tests.fakes.harness.modern import Modern
from tests.fakes.harness.mux import Mux
from tests.fakes.harness.notices import Notice
from tests.fakes.harness.session import Session
from tests.fakes.harness.world import World

MIB = 2**20
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
READS = frozenset({
    "login", "host.describe", "session.list", "session.history", "session.models", "session.attachment",
    "session.search", "llm.models", "workspace.list", "agentPreset.list", "events.mux", "events.host",
    "session/list", "session/page", "session/projections", "session/modelCatalog", "session/attachment",
    "session/search", "agentPresets/list", "llm/listProviders", "permissionPresets/catalog", "remote.mux", "$events",
    "workspace/follow", "session/control",
})  # fmt: skip
WAKES = frozenset({"session/follow", "commands/list", "skills/list", "skill.list"})
"""Methods that read, but wake a cold session and so are writes there."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it arrived; ``write`` when it changed the host or could have."""

    name: str
    payload: object
    write: bool


class FakeHarness:
    """A host of either generation: ``async with FakeHarness(Generation.MODERN, flavour="0.2") as host``.

    :attr:`url` is the address as the host prints it. Build a past with :meth:`session`, say what the model answers
    with :attr:`model`, break things with :meth:`fail`, and look at :attr:`calls` and :attr:`writes` afterwards.
    """

    def __init__(self, generation: Generation = Generation.MODERN, *, flavour: Flavour | None = None) -> None:
        default: Flavour = "0.1.0" if generation is Generation.LEGACY else "0.2"
        self.dialect = DIALECTS[flavour or default]
        assert self.dialect.generation is generation
        self.world = World(self.dialect)
        self.model: Model = self.world.model
        self.calls: list[Call] = []
        self._called = asyncio.Event()
        self.rpc_id = ""
        self.recorded_frames: list[Obj] = []
        self.gzips = generation is Generation.MODERN
        self.port = 0
        self._faults: list[Fault] = []
        self._runner: web.AppRunner | None = None
        self._links: set[asyncio.Transport] = set()
        self.login = Login(self.world.mint)
        self.heartbeat = 8.0 if generation is Generation.MODERN else None
        """Seconds between pings; a peer has half of them to answer: the four seconds a real host has patience."""
        self.modern = Modern(self)
        self.legacy = Legacy(self)

    # -- what tests use ---------------------------------------------------------------------------------------------

    @property
    def base(self) -> str:
        """The address without a token."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address as the host prints it."""
        return f"{self.base}/?token={self.login.token}" if self._is_modern else self.base

    @property
    def writes(self) -> list[Call]:
        """The calls that are not reads."""
        return [call for call in self.calls if call.write]

    def session(
        self, id_: str | None = None, *, cwd: str | None = None, parent: str | None = None, origin: str | None = None
    ) -> Session:
        """Return the session of this id; make it when there is none."""
        if id_ is not None and id_ in self.world.sessions:
            return self.world.sessions[id_]
        return self.world.create(id_, cwd, parent=parent, origin=origin)

    def fail(self, method: str, **how: Unpack[How]) -> Fault:
        """Let a method go wrong, ``*`` for all, ``login`` for the login; see :class:`How`.

        Earlier faults of a method come first until they are used up.
        """
        fault = Fault(method, how)
        self._faults.append(fault)
        return fault

    def heal(self) -> None:
        """Take back every fault."""
        self._faults.clear()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that the host itself does has come true."""
        await self.world.until(condition)

    async def until_called(self, name: str, times: int = 1) -> None:
        """Wait until a method has been called so many times since the host began."""
        while sum(call.name == name for call in self.calls) < times:
            self._called.clear()
            await self._called.wait()

    async def settle(self) -> None:
        """Wait until no session runs a turn."""
        for session in list(self.world.sessions.values()):
            await session.settle()

    def cut(self) -> None:
        """Reset every socket without a word."""
        for link in tuple(self._links):
            link.abort()

    async def stop(self, *, kill: bool = True) -> None:
        """Stop serving; sessions turn cold where they are, in the middle of a turn too when killed."""
        if not kill:
            await self.settle()
        self.cut()
        for session in list(self.world.sessions.values()):
            await session.kill()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def restart(self, *, kill: bool = True) -> None:
        """Come back on the same port: a new token, cookies stay valid, sessions are cold."""
        await self.stop(kill=kill)
        self.login.new_token()
        await self._serve()

    # -- life -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._serve()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.stop()
        if kind is None and self.world.failures:
            raise BaseExceptionGroup("the fake host failed", self.world.failures)

    @property
    def _is_modern(self) -> bool:
        return self.dialect.generation is Generation.MODERN

    async def _serve(self) -> None:
        size = (300 if self._is_modern else 160) * MIB
        app = web.Application(client_max_size=size, middlewares=[self._fence])
        router = app.router
        if self._is_modern:
            router.add_get("/", self._index)
            router.add_get("/api/remote.mux", Mux(self).serve)
            router.add_post("/api/{method:.+}", self.modern.post)
            router.add_route("*", "/{rest:.*}", _not_found)
        else:
            downlink = Downlink(self)
            router.add_get("/api/events.mux", downlink.mux)
            router.add_get("/api/events.host", downlink.hosts)
            router.add_post("/api/respond", downlink.respond)
            router.add_post("/api/{method:.+}", self.legacy.post)
            router.add_route("*", "/api{rest:.*}", _not_found)
            router.add_get("/{path:.*}", _single_page)
        app.on_response_prepare.append(self._headers)
        self._runner = web.AppRunner(
            app, keepalive_timeout=5, handler_cancellation=True, shutdown_timeout=0.2, access_log=None
        )
        await self._runner.setup()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        await web.SockSite(self._runner, listener, backlog=2048).start()

    async def _headers(self, _: web.Request, response: web.StreamResponse) -> None:
        """Say what a Node host says of its connections: they live five idle seconds."""
        response.headers["Server"] = "fake"
        if isinstance(response, Untyped):
            del response.headers["Content-Type"]
        if "Connection" not in response.headers and response.status != 101:
            response.headers.update({"Connection": "keep-alive", "Keep-Alive": "timeout=5"})

    @web.middleware
    async def _fence(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let through what comes from this machine and, on a modern host, is logged in."""
        if fenced(request):
            return plain(403, "forbidden", None)
        if self._is_modern and request.path.startswith("/api") and not self.login.valid(request):
            return plain(401, "unauthorized", None)
        try:
            return await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever broke in the fake must fail the test, not only the call
            self.world.failures.append(error)
            return plain(500, f"handler failure: {error!r}")

    async def _index(self, request: web.Request) -> web.StreamResponse:
        """Answer ``GET /`` of a modern host: the login."""
        self.record("login", dict(request.query))
        fault = self.fault("login")
        if fault is not None:
            await fault.wait()
            if fault.loses_request:
                return await fault.send(request, fault.content(""), "text/plain")
        return self.login.index(request)

    # -- what the faces use -----------------------------------------------------------------------------------------

    def record(self, name: str, payload: object, session: str | None = None) -> None:
        """Note a call."""
        known = self.world.sessions.get(session or "")
        cold = known is not None and not known.attached
        write = name not in READS and (cold or name not in WAKES)
        self.calls.append(Call(name, payload, write))
        self._called.set()

    def fault(self, name: str) -> Fault | None:
        """Return the fault of this call, if one is asked for."""
        return next((fault for fault in self._faults if fault.takes(name)), None)

    @contextmanager
    def listening(self, request: web.Request, hear: Callable[[Notice], None]) -> Iterator[None]:
        """Keep a socket among those that a restart or a cut closes, and tell it what happens."""
        link = request.transport
        assert link is not None
        self._links.add(link)
        self.world.listeners.add(hear)
        try:
            yield
        finally:
            self.world.listeners.discard(hear)
            self._links.discard(link)


async def _not_found(_: web.Request) -> web.StreamResponse:
    return plain(404, "not found")


async def _single_page(_: web.Request) -> web.StreamResponse:
    return web.Response(text='<!doctype html>\n<html lang="en"></html>', content_type="text/html")

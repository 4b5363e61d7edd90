"""The modern socket ``remote.mux`` and its streams. Source: facts HARNESS 4.5."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import WSMsgType, web

from tests.fakes.harness import projections
from tests.fakes.harness.carrier import PLAIN, plain, session_of
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.events import is_human
from tests.fakes.harness.fields import Fields, Malformed
from tests.fakes.harness.live import LiveSession
from tests.fakes.harness.modern import arguments, matching
from tests.fakes.harness.notices import (
    Added,
    Appended,
    Asked,
    Notice,
    Pending,
    Projected,
    Refused,
    Running,
    Settled,
    Streamed,
)

if TYPE_CHECKING:
    from tests.fakes.harness.host import FakeHarness

FRAMES = {"open": {"type", "streamId", "endpoint", "payload"}, "cancel": {"type", "streamId"},
          "item": {"type", "streamId", "value"}, "end": {"type", "streamId"}}  # fmt: skip
Items = Callable[[Notice], Iterable[Obj]]


class Mux:
    """Serves the socket; one :class:`Connection` a client."""

    def __init__(self, host: FakeHarness) -> None:
        self.host = host

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one socket until either side ends it."""
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return plain(404, "not found")
        fault = self.host.fault("remote.mux")
        if fault is not None and fault.breaks_socket:
            return await fault.send(request, fault.content(""), PLAIN)
        socket = web.WebSocketResponse(max_msg_size=0, heartbeat=self.host.heartbeat)
        await socket.prepare(request)
        self.host.record("remote.mux", None)
        connection = Connection(self.host)
        with self.host.listening(request, connection.hear):
            sender = asyncio.create_task(connection.send(socket))
            try:
                await self._receive(socket, connection)
            finally:
                connection.close()
                sender.cancel()
                await asyncio.wait([sender])
        return socket

    async def _receive(self, socket: web.WebSocketResponse, connection: Connection) -> None:
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                await socket.close(code=1003, message=b"text frames only")
                return
            frame: object = None
            with suppress(ValueError):
                frame = json.loads(message.data)
            kind = frame.get("type") if isinstance(frame, dict) else None
            if not isinstance(frame, dict) or not isinstance(kind, str) or set(frame) != FRAMES.get(kind):
                await socket.close(code=1008, message=b"invalid frame")
                return
            if kind == "open":
                await connection.open(str(frame["streamId"]), str(frame["endpoint"]), frame["payload"])
            elif kind == "cancel":
                connection.cancel(str(frame["streamId"]))


class Connection:
    """The streams of one socket, told in the order things happen."""

    def __init__(self, host: FakeHarness) -> None:
        self._host, self._world, self._modern = host, host.world, host.modern
        self._streams: dict[LiveSession | None, dict[str, tuple[int, Items]]] = {None: {}}
        """By the session they follow, None for the others: a thousand follows cost no more than one."""
        self._opened = itertools.count()
        self._clients: dict[str, str] = {}
        self._out: asyncio.Queue[Obj] = asyncio.Queue()

    def hear(self, notice: Notice) -> None:
        """Pass a notice on to every stream it concerns, in the order they were opened."""
        session = notice.session if isinstance(notice, Appended | Streamed) else None
        concerned = self._streams[None] if session is None else self._streams[None] | self._streams.get(session, {})
        for id_, (_, items) in sorted(concerned.items(), key=lambda stream: stream[1][0]):
            for value in items(notice):
                self._item(id_, value)

    def _hold(self, id_: str, items: Items, session: LiveSession | None = None) -> None:
        self._streams.setdefault(session, {})[id_] = (next(self._opened), items)

    async def send(self, socket: web.WebSocketResponse) -> None:
        """Send frames as they come."""
        while True:
            frame = await self._out.get()
            await socket.send_str(json.dumps(frame, separators=(",", ":")))

    async def open(self, id_: str, endpoint: str, payload: object) -> None:
        """Open a stream, or tell why not."""
        self._host.record(endpoint, payload, session_of(payload))
        fault = self._host.fault(endpoint)
        if fault is not None:
            await fault.wait()
        if fault is not None and "error" in fault.how:
            self._out.put_nowait({"type": "error", "streamId": id_, "error": fault.how["error"]})
            return
        opener = {
            "session/follow": self._follow, "$events": self._events, "workspace/follow": self._workspaces,
            "session/control": self._control,
        }.get(endpoint)  # fmt: skip
        try:
            if opener is None:
                raise self._no_stream(endpoint)
            parsed = arguments(payload)
            matching(endpoint, parsed, ("request",) if endpoint == "session/follow" else ())
            opener(id_, Fields(parsed))
        except (Refused, Malformed) as error:
            code, message, details = self._modern.refused(endpoint, error)
            wire: Obj = {"code": code, "message": message, "details": details}
            self._out.put_nowait({"type": "error", "streamId": id_, "error": wire})

    def _no_stream(self, endpoint: str) -> Refused:
        if self._modern.method(endpoint) is None:
            return Refused(
                "invocation-unavailable",
                f"typert gateway: {endpoint}: no active Remote method exports this endpoint",
                {"endpoint": endpoint},
            )
        message = f"typert gateway: {endpoint}: unary Remote methods cannot be opened through the stream carrier"
        return Refused("signature-invalid", message, {"endpoint": endpoint})

    def cancel(self, id_: str) -> None:
        """Let a stream fall silent."""
        for session in [session for session, streams in self._streams.items() if id_ in streams]:
            del self._streams[session][id_]
            if session is not None and not self._streams[session]:
                del self._streams[session]
        self._modern.clients.discard(self._clients.pop(id_, ""))

    def close(self) -> None:
        """Forget everything; the socket is gone."""
        for id_ in [id_ for streams in self._streams.values() for id_ in streams]:
            self.cancel(id_)

    def _item(self, id_: str, value: Obj) -> None:
        self._out.put_nowait({"type": "item", "streamId": id_, "value": value})

    # -- the streams ------------------------------------------------------------------------------------------------

    def _follow(self, id_: str, f: Fields) -> None:
        request = f.child("request")
        session = self._modern.addressed(request.child("address"))
        limit = request.whole_or_none("maxMessages")
        streams = request.raw.get("assistantStream") is True
        self._item(id_, self._snapshot(session, 50 if limit is None else limit, streams=streams))
        self._hold(id_, lambda notice: _follow_items(notice, session, streams=streams), session)
        session.wake()

    def _snapshot(self, session: LiveSession, limit: int, *, streams: bool) -> Obj:
        page = session.page(limit=limit)
        value: Obj = {
            "type": "snapshot", "header": projections.header(session), "cursor": session.cursor,
            "records": self._modern.records(page.events), "hasMore": page.has_more,
            "projections": {"asOfSeq": session.cursor, "values": projections.values(session)},
        }  # fmt: skip
        if streams and not self._world.dialect.chunks_in_log:
            value["assistantStream"] = {"revision": session.revision, **_active(session)}
        return value

    def _events(self, id_: str, _: Fields) -> None:
        client = self._world.mint.uuid()
        self._modern.clients.add(client)
        self._clients[id_] = client
        self._item(id_, {"type": "ready", "clientId": client, "host": {"home": "/home/dev"}})
        for pending in self._world.pending.values():
            self._item(id_, _waterfall(pending))
        self._hold(id_, lambda notice: _event_items(notice, client))

    def _workspaces(self, id_: str, _: Fields) -> None:
        value: Obj = {
            "items": [workspace.wire for workspace in self._world.workspaces.values()],
            "archivedSessionIds": list(self._world.archived),
        }
        if self._world.dialect.flavour == "0.2":
            value["pinnedSessionIds"] = list(self._world.pinned)
        self._item(id_, {"type": "baseline", "value": value})
        self._hold(id_, lambda _: ())

    def _control(self, id_: str, _: Fields) -> None:
        sessions = {id_: projections.projections(session) for id_, session in self._world.sessions.items()}
        self._item(id_, {"type": "baseline", "value": {"projections": sessions}})
        self._hold(id_, _control_items)


def _active(session: LiveSession) -> Obj:
    attempt = session.turn.attempt if session.turn is not None else None
    return {} if attempt is None else {"activeAttempt": attempt.snapshot}


def _follow_items(notice: Notice, session: LiveSession, *, streams: bool) -> Iterable[Obj]:
    if isinstance(notice, Appended) and notice.session is session:
        yield {"type": "event", "event": notice.event}
    elif isinstance(notice, Streamed) and notice.session is session and streams:
        yield {"type": "assistant-stream", "frame": notice.frame}


def _event_items(notice: Notice, client: str) -> Iterable[Obj]:
    if isinstance(notice, Running):
        yield _emit("api-session/status", notice.session.id, notice.running)
    elif isinstance(notice, Added):
        for _ in range(2):  # a real host says it twice
            yield _emit("api-session/added", projections.summary(notice.session))
    elif isinstance(notice, Appended) and is_human(notice.event):
        yield _emit("api-session/activity", notice.session.id, notice.session.updated_at)
    elif isinstance(notice, Asked):
        yield _waterfall(notice.pending)
    elif isinstance(notice, Settled) and notice.outcome.by != client:
        yield {"type": "cancel", "eventId": notice.pending.id}


def _emit(event: str, *args: object) -> Obj:
    return {"type": "emit", "event": event, "args": list(args)}


def _waterfall(pending: Pending) -> Obj:
    event = "user-questions/request" if pending.kind == "question" else "approval/request"
    request = dict(pending.request)
    if pending.kind == "approval":
        reason = request["reason"]
        request["displayReason"] = {"en": f"Allow this operation: {reason}", "zh": f"允许本次操作：{reason}"}
    return {
        "type": "waterfall", "event": event, "eventId": pending.id, "agentId": pending.session.id, "request": request
    }  # fmt: skip


def _control_items(notice: Notice) -> Iterable[Obj]:
    if isinstance(notice, Projected):
        yield {
            "type": "projection", "sessionId": notice.session.id, "key": notice.key, "value": notice.value,
            "seq": notice.seq,
        }  # fmt: skip

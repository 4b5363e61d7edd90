"""The two sockets of legacy hosts: ``events.mux`` and ``events.host``, both one way (facts HARNESS 3.4).

They push for all sessions at once and replay nothing but what is still pending when they open, so one link of each
kind serves every consumer, and what a late consumer must know is kept here. Anything sent on them closes them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from harness_client.carrier import Carrier, WireError, decode
from harness_client.errors import HarnessError, Malformed, refusal
from harness_client.feed import Feed, Link
from harness_client.streams import ApprovalAsked, HostEvent, InteractionClosed, QuestionAsked, RunningChanged
from harness_client.types import InteractionId, QueuedPrompt, SessionId
from harness_client.wire import Questions, QueueItem, Wire

K = TypeVar("K")
V = TypeVar("V")

PENDING_LIMIT: Final = 1024
"""Interactions and queues kept for late consumers; past it the oldest is forgotten."""


class _Frame(Wire):
    rpc_id: str
    payload: object


class _Payload(Wire):
    type: str
    session_id: str = ""
    event: object = None
    error: WireError | None = None


class _Approval(Wire):
    approval_id: str
    tool_name: str
    call_id: str
    reason: str = ""


class _QuestionResolved(Wire):
    question_rpc_id: str
    outcome: str | None = None


class _ApprovalResolved(Wire):
    approval_id: str
    outcome: str | None = None


class _Queue(Wire):
    items: tuple[QueueItem, ...]


class _Status(Wire):
    running: bool


class LegacyStreams:
    """What the sockets push, handed to those who listen."""

    def __init__(self, carrier: Carrier) -> None:
        self._mux = Link(carrier, "events.mux", receive=self._from_mux, lost=self._mux_lost)
        self._host = Link(carrier, "events.host", receive=self._from_host, lost=self._host_lost)
        self._followers: dict[SessionId, set[Feed[object]]] = {}
        self._watchers: set[Feed[HostEvent]] = set()
        self._pending: dict[InteractionId, QuestionAsked | ApprovalAsked] = {}
        self._queues: dict[SessionId, tuple[QueuedPrompt, ...]] = {}

    @asynccontextmanager
    async def events(self, session: SessionId) -> AsyncIterator[Feed[object]]:
        """Hand over the session's events from now on; the feed ends when the link breaks."""
        feed: Feed[object] = Feed()
        async with self._mux.held():
            self._followers.setdefault(session, set()).add(feed)
            try:
                yield feed
            finally:
                self._unfollow(session, feed)

    def _unfollow(self, session: SessionId, feed: Feed[object]) -> None:
        feeds = self._followers.get(session, set())
        feeds.discard(feed)
        if not feeds:
            self._followers.pop(session, None)

    @asynccontextmanager
    async def host_events(self) -> AsyncIterator[Feed[HostEvent]]:
        """Hand over what concerns all sessions, pending interactions first."""
        feed: Feed[HostEvent] = Feed()
        async with self._mux.held():
            # Nothing is awaited before the feed is known: a link that breaks meanwhile must end it too.
            for asked in self._pending.values():
                feed.put(asked, 0)
            self._watchers.add(feed)
            try:
                async with self._host.held():
                    yield feed
            finally:
                self._watchers.discard(feed)

    def queue(self, session: SessionId) -> tuple[QueuedPrompt, ...] | None:
        """Return the prompts that wait; None while nobody listens, for then nothing is known."""
        return self._queues.get(session, ()) if self._mux.alive else None

    def _mux_lost(self, reason: HarnessError) -> None:
        for feeds in self._followers.values():
            for feed in feeds:
                feed.end(reason)
        self._followers.clear()
        self._pending.clear()
        self._queues.clear()
        self._host_lost(reason)

    def _host_lost(self, reason: HarnessError) -> None:
        for feed in self._watchers:
            feed.end(reason)
        self._watchers.clear()

    def _from_host(self, message: object, _: int) -> None:
        frame = decode(message, _Frame, "events.host")
        payload = decode(frame.payload, _Payload, "events.host")
        if payload.type == "host/session-status":
            running = decode(frame.payload, _Status, payload.type).running
            self._tell(RunningChanged(SessionId(payload.session_id), running))
        elif payload.type == "stream/error":
            raise _stream_error(payload, "events.host")

    def _from_mux(self, message: object, size: int) -> None:
        frame = decode(message, _Frame, "events.mux")
        payload = decode(frame.payload, _Payload, "events.mux")
        session = SessionId(payload.session_id)
        match payload.type:
            case "session/event":
                for feed in self._followers.get(session, ()):
                    feed.put(payload.event, size)
            case "session/queue":
                items = decode(frame.payload, _Queue, payload.type).items
                _keep(self._queues, session, tuple(item.queued() for item in items))
            case "question/requested" | "approval/requested":
                self._asked(InteractionId(frame.rpc_id), session, payload.type, frame.payload)
            case "question/resolved" | "approval/resolved":
                self._resolved(session, payload.type, frame.payload)
            case "stream/error":
                raise _stream_error(payload, "events.mux")

    def _asked(self, interaction: InteractionId, session: SessionId, kind: str, payload: object) -> None:
        asked: QuestionAsked | ApprovalAsked
        try:
            if kind == "question/requested":
                asked = QuestionAsked(interaction, session, decode(payload, Questions, kind).asked())
            else:
                wire = decode(payload, _Approval, kind)
                asked = ApprovalAsked(interaction, session, wire.tool_name, wire.call_id, wire.reason, wire.approval_id)
        except Malformed:
            return  # replayed at every connect: failing the link for it would fail it for ever
        _keep(self._pending, interaction, asked)
        self._tell(asked)

    def _resolved(self, session: SessionId, kind: str, payload: object) -> None:
        if kind == "question/resolved":
            resolved = decode(payload, _QuestionResolved, kind)
            closed, outcome = InteractionId(resolved.question_rpc_id), resolved.outcome
        else:
            decided = decode(payload, _ApprovalResolved, kind)
            named = (
                asked.id
                for asked in self._pending.values()
                if isinstance(asked, ApprovalAsked) and asked.approval == decided.approval_id
            )
            closed, outcome = next(named, InteractionId(decided.approval_id)), decided.outcome
        self._pending.pop(closed, None)
        self._tell(InteractionClosed(closed, session, outcome))

    def _tell(self, event: HostEvent) -> None:
        for feed in self._watchers:
            feed.put(event, 0)


def _stream_error(payload: _Payload, what: str) -> HarnessError:
    return refusal(payload.error.code if payload.error else "unknown", what)


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    kept.pop(key, None)
    if len(kept) >= PENDING_LIMIT:
        del kept[next(iter(kept))]
    kept[key] = value

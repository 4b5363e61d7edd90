"""The socket of modern hosts: many streams on one ``remote.mux`` (facts HARNESS 4.5)."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final

from harness_client.carrier import Carrier, WireError, decode
from harness_client.catalogs import Workspaces
from harness_client.deltas import AssistantStream, Attempts, Frame, logged, partial
from harness_client.errors import HarnessError, Malformed, Unreachable, refusal
from harness_client.events import parse_event
from harness_client.feed import Feed, Link
from harness_client.pages import read_records
from harness_client.streams import (
    ApprovalAsked,
    FollowItem,
    HostEvent,
    InteractionClosed,
    QuestionAsked,
    RunningChanged,
    Snapshot,
)
from harness_client.types import InteractionId, Receipt, SessionId
from harness_client.wire import Questions, Wire

_TAIL_MESSAGES: Final = 50


class _MuxFrame(Wire):
    type: str
    stream_id: str
    value: object = None
    error: WireError | None = None


class Mux:
    """One socket, many streams, each with a feed of its own."""

    def __init__(self, carrier: Carrier) -> None:
        self._feeds: dict[str, Feed[object]] = {}
        self._ids = itertools.count(1)
        self._link = Link(carrier, "remote.mux", receive=self._receive, lost=self._lost)

    @asynccontextmanager
    async def stream(self, endpoint: str, args: dict[str, object]) -> AsyncIterator[Feed[object]]:
        """Open a stream; its feed ends with the host's refusal or with Unreachable."""
        stream = f"s{next(self._ids)}"
        feed: Feed[object] = Feed()
        async with self._link.held():
            self._feeds[stream] = feed
            try:
                await self._link.send(
                    {"type": "open", "streamId": stream, "endpoint": endpoint, "payload": {"args": args}}
                )
                yield feed
            finally:
                if self._feeds.pop(stream, None) is not None:
                    with suppress(HarnessError):  # the link may be gone already
                        await self._link.send({"type": "cancel", "streamId": stream})

    def _receive(self, message: object, size: int) -> None:
        frame = decode(message, _MuxFrame, "remote.mux")
        feed = self._feeds.get(frame.stream_id)
        if feed is None:
            return  # cancelled by us a moment ago
        match frame.type:
            case "item":
                feed.put(frame.value, size)
            case "error" if frame.error is not None:
                feed.end(refusal(frame.error.code, "stream"))
            case "end":
                feed.end(Unreachable("the host ended the stream"))
            case _:
                raise Malformed("remote.mux: an unknown kind of frame")

    def _lost(self, reason: HarnessError) -> None:
        for feed in self._feeds.values():
            feed.end(reason)
        self._feeds.clear()


class _Snapshot(Wire):
    cursor: int
    records: list[object]
    has_more: bool
    assistant_stream: AssistantStream | None = None


class _FollowValue(Wire):
    type: str
    event: object = None
    frame: Frame | None = None


class _EventsValue(Wire):
    type: str
    client_id: str = ""
    event: str = ""
    event_id: str = ""
    agent_id: str = ""
    args: tuple[object, ...] = ()
    request: object = None


class _Approval(Wire):
    tool_name: str
    call_id: str
    reason: str = ""


class _Baseline(Wire):
    value: Workspaces


class ModernStreams:
    """Follow, host events and what needs them: answers go by the client id of a live ``$events`` stream."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._mux = Mux(carrier)
        self._clients: list[str] = []

    async def workspaces(self) -> Workspaces:
        """Read the list: the first item of a stream, there is no call for it."""
        async with self._mux.stream("workspace/follow", {}) as feed:
            return decode(await anext(feed), _Baseline, "workspace/follow").value

    @asynccontextmanager
    async def follow(self, session: SessionId) -> AsyncIterator[AsyncIterator[FollowItem]]:
        """Follow one session."""
        request = {
            "address": {"kind": "session", "sessionId": session},
            "maxMessages": _TAIL_MESSAGES,
            "assistantStream": True,
        }
        async with self._mux.stream("session/follow", {"request": request}) as feed:
            first = decode(await anext(feed), _Snapshot, "session/follow")
            attempts = Attempts(first.assistant_stream)
            page = await read_records(first.records, "session/follow", first.has_more, through=first.cursor)
            snapshot = Snapshot(page, first.cursor, attempts.partial or await partial(page))
            async with aclosing(_followed(snapshot, attempts, feed)) as items:
                yield items

    @asynccontextmanager
    async def host_events(self) -> AsyncIterator[AsyncIterator[HostEvent]]:
        """Follow the host."""
        async with self._mux.stream("$events", {}) as feed:
            client = decode(await anext(feed), _EventsValue, "$events").client_id
            self._clients.append(client)
            try:
                async with aclosing(self._host_events(client, feed)) as items:
                    yield items
            finally:
                self._clients.remove(client)

    async def _host_events(self, client: str, feed: Feed[object]) -> AsyncGenerator[HostEvent, None]:
        sessions: dict[InteractionId, SessionId] = {}
        async for item in feed:
            value = decode(item, _EventsValue, "$events")
            match value.type, value.event:
                case "emit", "api-session/status":
                    yield _status(value)
                case "waterfall", _:
                    asked = _asked(value)
                    if asked is None:
                        # Nobody else may be there to take it, and the turn waits.
                        await self._result(client, InteractionId(value.event_id), {"kind": "next"})
                        continue
                    sessions[asked.id] = asked.session
                    yield asked
                case "cancel", _:
                    closed = InteractionId(value.event_id)
                    yield InteractionClosed(closed, sessions.pop(closed, None), None)
                case _:
                    continue

    async def settle(self, interaction: InteractionId, outcome: dict[str, object]) -> Receipt:
        """Answer an interaction. The host says nothing of what became of it: the log does."""
        if self._clients:
            await self._result(self._clients[-1], interaction, outcome)
        else:
            async with self.host_events():
                await self._result(self._clients[-1], interaction, outcome)
        return Receipt.UNKNOWN

    async def _result(self, client: str, interaction: InteractionId, outcome: dict[str, object]) -> None:
        args = {"clientId": client, "eventId": interaction, "outcome": outcome}
        await self._carrier.call("$events/result", {"args": args})


async def _followed(snapshot: Snapshot, attempts: Attempts, feed: Feed[object]) -> AsyncGenerator[FollowItem, None]:
    yield snapshot
    last = snapshot.cursor
    async for item in feed:
        value = decode(item, _FollowValue, "session/follow")
        if value.type == "assistant-stream" and value.frame is not None:
            said = attempts.take(value.frame)
            if said is not None:
                yield said
        elif value.type == "event":
            event = parse_event(value.event)
            if event.seq <= last:
                continue
            if event.seq != last + 1:
                raise Unreachable("session/follow: events are missing")
            last = event.seq
            for each in logged(event, value.event):
                yield each


def _status(value: _EventsValue) -> RunningChanged:
    if len(value.args) != 2:
        raise Malformed("$events: a status without its two arguments")
    session, running = value.args
    return RunningChanged(SessionId(decode(session, str, "$events")), decode(running, bool, "$events"))


def _asked(value: _EventsValue) -> QuestionAsked | ApprovalAsked | None:
    interaction, session = InteractionId(value.event_id), SessionId(value.agent_id)
    try:
        match value.event:
            case "user-questions/request":
                return QuestionAsked(interaction, session, decode(value.request, Questions, value.event).asked())
            case "approval/request":
                asked = decode(value.request, _Approval, value.event)
                return ApprovalAsked(interaction, session, asked.tool_name, asked.call_id, asked.reason, None)
            case _:
                return None
    except Malformed:
        return None

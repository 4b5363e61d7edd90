"""Socket Mode: one-time addresses, envelopes that come again until they are acknowledged, links that break."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import WSCloseCode, WSMsgType, web

from tests.fakes.slack.payloads import APP, Obj


@dataclass(slots=True)
class Envelope:
    """One delivery. ``sent`` counts how often it went out, ``answer`` is the payload of its acknowledgement."""

    id: str
    body: Obj
    sent: int = 0
    acknowledged: bool = False
    answer: object = None


class Sockets:
    """The links of one app. Each envelope goes to the newest open one; Slack chooses at random."""

    def __init__(self, tell: Callable[[], Awaitable[None]]) -> None:
        self.links: list[web.WebSocketResponse] = []
        self.envelopes: dict[str, Envelope] = {}
        self.handshakes = 0
        self.refuse = 0
        """So many upgrades are refused from now on."""
        self.deaf = False
        """The other side of a half-open socket: nothing is heard, nothing is answered."""
        self.hang_up = False
        """Every link is closed right after its greeting."""
        self._tell = tell
        self._transports: list[asyncio.WriteTransport] = []
        self.tickets: set[str] = set()
        self._numbers = itertools.count(1)

    def ticket(self) -> str:
        """Return a ticket for one link."""
        ticket = f"ticket-{next(self._numbers)}"
        self.tickets.add(ticket)
        return ticket

    @property
    def open(self) -> list[web.WebSocketResponse]:
        """Return the links that stand."""
        return [link for link in self.links if not link.closed]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve a link until it ends."""
        self.handshakes += 1
        await self._tell()
        ticket = request.query.get("ticket", "")
        known = ticket in self.tickets
        self.tickets.discard(ticket)
        if self.refuse or not known:
            self.refuse = max(0, self.refuse - 1)
            raise web.HTTPRequestTimeout
        link = web.WebSocketResponse(autoping=False)
        await link.prepare(request)
        hello = {"num_connections": len(self.open) + 1, "connection_info": {"app_id": APP}}
        await link.send_json({"type": "hello", **hello, "debug_info": {"host": "fake"}})
        if self.hang_up:
            await link.close(code=WSCloseCode.GOING_AWAY)
            return link
        assert request.transport is not None
        self._transports.append(request.transport)
        self.links.append(link)
        try:
            for envelope in [each for each in self.envelopes.values() if not each.acknowledged]:
                await self._send(envelope)
            await self._listen(link)
        finally:
            self.links.remove(link)
            await self._tell()
        return link

    async def _listen(self, link: web.WebSocketResponse) -> None:
        async for message in link:
            if self.deaf:
                continue
            if message.type is WSMsgType.PING:
                await link.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                said = json.loads(message.data)
                envelope = self.envelopes[said["envelope_id"]]
                envelope.acknowledged = True
                envelope.answer = said.get("payload")
            await self._tell()

    async def deliver(self, payload: Obj, kind: str) -> Envelope:
        """Send a payload down a link, now or as soon as there is one."""
        name = f"envelope-{next(self._numbers)}"
        body: Obj = {"envelope_id": name, "type": kind, "payload": payload}
        envelope = Envelope(name, body | {"accepts_response_payload": kind != "events_api"})
        self.envelopes[name] = envelope
        await self._send(envelope)
        return envelope

    async def _send(self, envelope: Envelope) -> None:
        if not self.open:
            return
        retry: Obj = {"retry_attempt": envelope.sent, "retry_reason": "timeout" if envelope.sent else ""}
        envelope.sent += 1
        await self.open[-1].send_json(envelope.body | (retry if envelope.body["type"] == "events_api" else {}))

    async def resend(self, envelope: Envelope) -> None:
        """Deliver an envelope once more."""
        envelope.acknowledged = False
        await self._send(envelope)

    async def disconnect(self, reason: str) -> None:
        """Ask every link to make way: warning, refresh_requested, too_many_websockets, link_disabled."""
        for link in self.open:
            await link.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})

    async def close(self) -> None:
        """Close every link in good order."""
        async with asyncio.TaskGroup() as tasks:
            for link in self.open:
                tasks.create_task(link.close(code=WSCloseCode.GOING_AWAY))

    def cut(self) -> None:
        """Cut every link without a word."""
        for transport in self._transports:
            transport.abort()
        self._transports.clear()

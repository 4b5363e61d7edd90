"""The legacy sockets ``events.mux`` and ``events.host``, and ``/api/respond``. Source: facts HARNESS 3.4, 3.5."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from aiohttp import WSMsgType, web

from tests.fakes.harness.carrier import PLAIN, plain
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.legacy import view
from tests.fakes.harness.live import NEXT_STEP, NEXT_TURN, LiveSession
from tests.fakes.harness.notices import (
    Added,
    Appended,
    Asked,
    Notice,
    Outcome,
    Pending,
    Projected,
    Running,
    Settled,
)

if TYPE_CHECKING:
    from tests.fakes.harness.host import FakeHarness

Frame = tuple[str, Obj, str | None]
"""Kind, the rest of the payload, and the rpcId where it must be the original one."""


class Downlink:
    """Both sockets of one legacy host."""

    def __init__(self, host: FakeHarness) -> None:
        self.host, self.world = host, host.world

    async def mux(self, request: web.Request) -> web.StreamResponse:
        """Serve ``events.mux``: logs, queues, questions and approvals of all sessions."""
        return await self._serve(request, "events.mux", self._baseline(), _mux_frames)

    async def hosts(self, request: web.Request) -> web.StreamResponse:
        """Serve ``events.host``: sessions that come and go, run and rest."""
        return await self._serve(request, "events.host", iter(()), _host_frames)

    def _baseline(self) -> Iterator[Frame]:
        attached = [session for session in self.world.sessions.values() if session.attached]
        for session in attached:
            yield "session/subscribed", {"sessionId": session.id, "lastSeq": session.cursor}, None
        for session in attached:
            if any(session.queues.values()):
                yield _queue(session)
        for pending in self.world.pending.values():
            yield _asked(pending)

    async def _serve(
        self,
        request: web.Request,
        name: str,
        baseline: Iterator[Frame],
        frames: Callable[[Notice], Iterator[Frame]],
    ) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            response = plain(426, "upgrade required")
            response.headers.update({"Connection": "Upgrade", "Upgrade": "websocket"})
            return response
        fault = self.host.fault(name)
        if fault is not None and fault.breaks_socket:
            return await fault.send(request, fault.content(""), PLAIN)
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        self.host.record(name, None)
        waiting: asyncio.Queue[Frame] = asyncio.Queue()
        for frame in baseline:
            waiting.put_nowait(frame)

        def hear(notice: Notice) -> None:
            for frame in frames(notice):
                waiting.put_nowait(frame)

        with self.host.listening(request, hear):
            if name == "events.mux":
                for recorded in self.host.recorded_frames:
                    await socket.send_str(json.dumps(recorded, ensure_ascii=False))
            sender = asyncio.create_task(self._send(socket, waiting))
            try:
                message = await socket.receive()
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    await socket.close(code=1008, message=b"downlink only")
            finally:
                sender.cancel()
                await asyncio.wait([sender])
        return socket

    async def _send(self, socket: web.WebSocketResponse, waiting: asyncio.Queue[Frame]) -> None:
        while True:
            kind, payload, rpc_id = await waiting.get()
            frame: Obj = {"type": "server-request", "rpcId": rpc_id or self.world.mint.uuid(), "method": kind}
            frame["payload"] = {"type": kind, **payload}
            await socket.send_str(json.dumps(frame))

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Answer ``POST /api/respond``: always 200, with a receipt."""
        try:
            body: object = json.loads(await request.read())
        except ValueError:
            return plain(400, "body is not JSON")
        self.host.record("respond", body)
        fault = self.host.fault("respond")
        if fault is not None:
            await fault.wait()
            if fault.loses_request:
                return await fault.send(request, fault.content(""), "application/json")
        reason = self._answered(body)
        receipt: Obj = {"accepted": True} if reason is None else {"accepted": False, "reason": reason}
        encoded = json.dumps(receipt).encode()
        if fault is not None:
            return await fault.send(request, fault.content("", encoded), "application/json")
        return web.Response(body=encoded, headers={"Content-Type": "application/json"})

    def _answered(self, body: object) -> str | None:
        """Take an answer; return why it is not accepted."""
        if not isinstance(body, dict) or body.get("type") != "client-response":
            return "bad-response"
        result = body.get("result")
        if not isinstance(body.get("rpcId"), str) or not isinstance(result, dict):
            return "bad-response"
        pending = self.world.pending.get(body["rpcId"])
        if pending is None or pending.answer.done():
            return "not-pending"
        outcome = _outcome(pending, result)
        if outcome is None:
            return "bad-response"
        pending.answer.set_result(outcome)
        return None


def _outcome(pending: Pending, result: Obj) -> Outcome | None:
    """Return what a result says, None when it says nothing the host takes."""
    value = result.get("value")
    if pending.kind == "question":
        if result.get("ok") is not True:
            error = result.get("error")
            cancelled = isinstance(error, dict) and error.get("code") == "cancelled"
            return Outcome("cancelled", error="ASK_CANCELLED") if cancelled else None
        answers = value.get("answer") if isinstance(value, dict) else None
        fits = isinstance(answers, dict) and _answers_fit(pending.request["questions"], answers.get("answers"))
        return Outcome("answered", answers) if fits else None
    if result.get("ok") is not True or not isinstance(value, dict):
        return None
    if value.get("approvalId") != pending.approval_id or value.get("outcome") not in ("allowed-once", "rejected"):
        return None
    return Outcome(str(value["outcome"]))


def _answers_fit(questions: object, answers: object) -> bool:
    """Whether there is one entry per question in order, with labels that exist, and one choice at most where asked."""
    if not isinstance(questions, list) or not isinstance(answers, list) or len(questions) != len(answers):
        return False
    for question, answer in zip(questions, answers, strict=True):
        if not isinstance(answer, dict) or answer.get("id") != question["id"]:
            return False
        selected, labels = answer.get("selected"), {option["label"] for option in question.get("options", ())}
        if not isinstance(selected, list) or not set(selected) <= labels:
            return False
        if not question.get("multiSelect") and len(selected) + ("custom" in answer) > 1:
            return False
    return True


def _queue(session: LiveSession) -> Frame:
    placements = ((NEXT_TURN, "queued"), (NEXT_STEP, "steering"))
    items = [
        {"id": queued["id"], "placement": placement, "message": queued}
        for target, placement in placements
        for queued in session.queues[target]
    ]
    return "session/queue", {"sessionId": session.id, "items": items}, None


def _asked(pending: Pending) -> Frame:
    if pending.kind == "question":
        return "question/requested", {"sessionId": pending.session.id, **pending.request}, pending.id
    payload: Obj = {"sessionId": pending.session.id, "approvalId": pending.approval_id, **pending.request}
    return "approval/requested", payload, pending.id


def _mux_frames(notice: Notice) -> Iterator[Frame]:
    if isinstance(notice, Added):
        yield "session/subscribed", {"sessionId": notice.session.id, "lastSeq": notice.session.cursor}, None
    elif isinstance(notice, Appended):
        session = notice.session
        yield "session/event", {"sessionId": session.id, **view(session, notice.event)}, None
    elif isinstance(notice, Projected) and notice.key == "inbox":
        yield _queue(notice.session)
    elif isinstance(notice, Projected):
        where: Obj = {"sessionId": notice.session.id, "key": notice.key, "value": notice.value, "seq": notice.seq}
        yield "session/projection", where, None
    elif isinstance(notice, Asked):
        yield _asked(notice.pending)
    elif isinstance(notice, Settled):
        pending, word = notice.pending, notice.outcome.word
        if pending.kind == "question":
            payload: Obj = {"sessionId": pending.session.id, "questionRpcId": pending.id, "outcome": word}
            yield "question/resolved", payload, None
        else:
            payload = {"sessionId": pending.session.id, "approvalId": pending.approval_id, "outcome": word}
            yield "approval/resolved", payload, None


def _host_frames(notice: Notice) -> Iterator[Frame]:
    if isinstance(notice, Added):
        session = notice.session
        added: Obj = {"sessionId": session.id, "blank": session.blank, "cwd": session.cwd}
        added["agentPreset"] = session.preset
        if session.parent is not None:
            added["parentSessionId"] = session.parent
        if session.origin is not None:
            added["origin"] = session.origin
        yield "host/session-added", added, None
    elif isinstance(notice, Running):
        yield "host/session-status", {"sessionId": notice.session.id, "running": notice.running}, None

"""The HTTP carrier of both generations: fence, content type, envelope, faults. Source: facts HARNESS 3.1, 4.2."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from aiohttp import web

from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.fields import Fields, Malformed, name_of
from tests.fakes.harness.notices import Refused

if TYPE_CHECKING:
    from tests.fakes.harness.host import FakeHarness

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
PLAIN = "text/plain;charset=UTF-8"


class Untyped(web.Response):
    """An answer without any content type."""


class Absent:
    """The value of a call that returns nothing: the key is missing, not null."""


ABSENT: Final = Absent()
Method = Callable[[Fields], Awaitable[object]]


def fenced(request: web.Request) -> bool:
    """Whether Host or Origin say that the request comes from elsewhere."""
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    if host.rsplit(":", 1)[0] not in LOOPBACK or request.headers.get("Sec-Fetch-Site") == "cross-site":
        return True
    return origin is not None and origin != f"http://{host}"


def plain(status: int, words: str, content_type: str | None = PLAIN) -> web.Response:
    """Return a short answer of the carrier itself; some of them have no content type."""
    kind = Untyped if content_type is None else web.Response
    response = kind(status=status, body=words.encode(), headers={"Content-Type": content_type or PLAIN})
    response.enable_chunked_encoding()
    return response


def answer(rpc_id: str, value: object) -> Obj:
    """Return the envelope of a good answer."""
    result: Obj = {"ok": True} if isinstance(value, Absent) else {"ok": True, "value": value}
    return {"type": "server-response", "rpcId": rpc_id, "result": result}


def refusal(rpc_id: str, code: str, message: str, details: Obj) -> Obj:
    """Return the envelope of a business refusal."""
    error: Obj = {"code": code, "message": message, "details": details}
    return {"type": "server-response", "rpcId": rpc_id, "result": {"ok": False, "error": error}}


def envelope_issues(body: object) -> list[Obj]:
    """Return what is wrong with a client-request envelope, as the host's schema tells it."""
    if not isinstance(body, dict):
        message = f"Invalid input: expected object, received {name_of(body)}"
        return [{"expected": "object", "code": "invalid_type", "path": [], "message": message}]
    issues: list[Obj] = []
    if body.get("type") != "client-request":
        message = 'Invalid input: expected "client-request"'
        issues.append({"code": "invalid_value", "values": ["client-request"], "path": ["type"], "message": message})
    for key in ("rpcId", "method"):
        if not isinstance(body.get(key), str):
            received = name_of(body[key]) if key in body else "undefined"
            message = f"Invalid input: expected string, received {received}"
            issues.append({"expected": "string", "code": "invalid_type", "path": [key], "message": message})
    if "payload" not in body:
        message = "Invalid input: expected nonoptional, received undefined"
        issues.append({"code": "invalid_type", "expected": "nonoptional", "path": ["payload"], "message": message})
    return issues


def session_of(payload: object) -> str | None:
    """Return the session that a payload of either generation names."""
    fields = payload
    for key in ("args", "request", "address"):
        if isinstance(fields, dict) and key in fields:
            fields = fields[key]
    if not isinstance(fields, dict):
        return None
    id_ = fields.get("sessionId", fields.get("agentId"))
    return id_ if isinstance(id_, str) else None


class Carrier:
    """Answers ``POST /api/<method>`` of one host; subclasses know the methods and the spelling of codes."""

    bad_request = "bad-request"
    place = "path"

    def __init__(self, host: FakeHarness) -> None:
        self.host, self.world = host, host.world

    def method(self, name: str) -> Method | None:
        """Return the method of this name."""
        raise NotImplementedError

    def payload(self, name: str, payload: object) -> Fields:
        """Return the arguments out of a payload."""
        raise NotImplementedError

    def refused(self, name: str, error: Refused | Malformed) -> tuple[str, str, Obj]:
        """Return code, message and details of a refusal as this generation spells it."""
        raise NotImplementedError

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Answer one call."""
        name = request.match_info["method"]
        method = self.method(name)
        if method is None:
            return plain(404, "not found")
        if request.content_type != "application/json" or "Content-Type" not in request.headers:
            return plain(415, "content type must be application/json")
        try:
            body: object = json.loads(await request.read())
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, headers={"Connection": "close"})
        except ValueError:
            return plain(400, "body is not JSON")
        return await self._called(request, name, method, body)

    async def _called(self, request: web.Request, name: str, method: Method, body: object) -> web.StreamResponse:
        payload = body.get("payload") if isinstance(body, dict) else body
        rpc_id = body.get("rpcId") if isinstance(body, dict) else None
        rpc_id = rpc_id if isinstance(rpc_id, str) else "invalid-request"
        self.host.record(name, payload, session_of(payload))
        fault = self.host.fault(name)
        if fault is not None:
            await fault.wait()
            if fault.loses_request:
                return await fault.send(request, fault.content(rpc_id), "application/json")
        envelope = await self.respond(name, method, body, rpc_id)
        encoded = json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")
        if fault is not None:
            return await fault.send(request, fault.content(rpc_id, encoded), "application/json")
        response = web.Response(body=encoded, headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        if self.host.gzips and "gzip" in request.headers.get("Accept-Encoding", ""):
            response.enable_compression(web.ContentCoding.gzip)
        return response

    async def respond(self, name: str, method: Method, body: object, rpc_id: str) -> Obj:
        """Return the envelope that answers a body."""
        issues = envelope_issues(body)
        if issues or not isinstance(body, dict):
            return refusal(rpc_id, self.bad_request, "invalid client-request message", {"issues": issues})
        if body["method"] != name:
            message = f'method "{body["method"]}" does not match {self.place} "{name}"'
            return refusal(rpc_id, self.bad_request, message, {"issues": []})
        self.host.rpc_id = rpc_id
        try:
            return answer(rpc_id, await method(self.payload(name, body["payload"])))
        except (Refused, Malformed) as error:
            code, message, details = self.refused(name, error)
            return refusal(rpc_id, code, message, details)

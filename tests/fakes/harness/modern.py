"""The modern face: login, slashed endpoints, arguments by exact name. Source: facts HARNESS 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.fakes.harness import projections, records
from tests.fakes.harness.carrier import ABSENT, Carrier, Method
from tests.fakes.harness.commands import listed
from tests.fakes.harness.common import Common
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.fields import Fields, Malformed
from tests.fakes.harness.notices import Outcome, Refused
from tests.fakes.harness.session import Session
from tests.fakes.harness.world import PERMISSIONS

if TYPE_CHECKING:
    from tests.fakes.harness.host import FakeHarness

CODES = {
    "session-not-found": "session/not-found",
    "session-conflict": "session/conflict",
    "session-agent-busy": "session/agent-busy",
    "workspace-not-found": "workspace/not-found",
    "workspace-invalid-path": "workspace/invalid-path",
    "agent-preset-not-found": "agent-preset/not-found",
    "agent-preset-locked": "agent-preset/locked",
    "subagent-not-found": "subagent/not-found",
    "model-unavailable": "session/model-unavailable",
    "invalid-time-zone": "session/invalid-time-zone",
    "title-invalid": "session/title-invalid",
    "fork-unavailable": "session/fork-unavailable",
    "attachment-error": "session/attachment-invalid",
    "queue-item-not-found": "session/queue-item-not-found",
}
STREAMS = ("session/follow", "workspace/follow", "session/control", "$events")
SAFE_INTEGER = 2**53 - 1


class Modern(Carrier):
    """The endpoints of a modern host."""

    bad_request = "gateway/bad-request"
    place = "endpoint"

    def __init__(self, host: FakeHarness) -> None:
        super().__init__(host)
        common = self.common = Common(self.world)
        request, agent = ("request",), ("agentId",)
        self._endpoints: dict[str, tuple[tuple[str, ...], Method]] = {
            "session/list": (("_request",), self.sessions),
            "session/create": (request, common.create),
            "session/page": (request, self.page),
            "session/prompt": (request, self.prompt),
            "session/cancel": (request, common.cancel),
            "session/rename": (request, common.rename),
            "session/fork": (request, common.fork),
            "session/selectModel": (request, common.select_model),
            "session/modelCatalog": ((), self.catalog),
            "session/updateQueue": (request, common.update_queue),
            "session/attachment": (request, common.attachment),
            "session/search": (request, self.search),
            "commands/list": (agent, self.commands),
            "commands/execute": (("agentId", "line", "submittedAttachments"), self.execute),
            "agentPresets/list": ((), self.presets),
            "agentPresets/select": (("agentId", "agentPreset"), self.select_preset),
            "skills/list": (request, common.skills),
            "llm/listProviders": ((), self.providers),
            "workspace/create": (request, common.create_workspace),
            "workspace/rename": (request, common.rename_workspace),
            "workspace/archiveSession": (request, common.archive),
            "$events/result": (("clientId", "eventId", "outcome"), self.result),
        }
        if self.world.dialect.has_projections:
            self._endpoints |= {
                "session/projections": (request, self.projections),
                "permissionPresets/catalog": ((), self.permissions),
                "workspace/unarchiveSession": (request, common.unarchive),
            }
        self.clients: set[str] = set()

    # -- the carrier ------------------------------------------------------------------------------------------------

    def method(self, name: str) -> Method | None:
        """See :meth:`Carrier.method`."""
        if name in STREAMS:
            return self._not_by_http(name)
        endpoint = self._endpoints.get(name)
        return None if endpoint is None else endpoint[1]

    def payload(self, name: str, payload: object) -> Fields:
        """See :meth:`Carrier.payload`."""
        args = arguments(payload)
        if name in STREAMS:
            return Fields(args)
        names = self._endpoints[name][0]
        if name != "$events/result":
            matching(name, args, names)
        # most endpoints take one parameter that is an object: its fields are the request
        return Fields(args[names[0]]) if names in (("request",), ("_request",)) else Fields(args)

    def refused(self, name: str, error: Refused | Malformed) -> tuple[str, str, Obj]:
        """See :meth:`Carrier.refused`."""
        if isinstance(error, Malformed):
            field = "_request" if name == "session/list" else "request"
            message = f'typert gateway: {name}: wire field "{field}" failed boundary validation'
            return "gateway/input-invalid", message, {"endpoint": name, "field": field}
        return CODES.get(error.code, f"gateway/{error.code}"), error.message, error.details

    def _not_by_http(self, name: str) -> Method:
        async def refuse(_: Fields) -> object:
            message = f"typert gateway: {name}: stream Remote methods must be opened through the stream carrier"
            raise Refused("signature-invalid", message, {"endpoint": name})

        return refuse

    # -- sessions ---------------------------------------------------------------------------------------------------

    def addressed(self, address: Fields) -> Session:
        """Return the session of an address; a child must be addressed as one."""
        if address.choice("kind", "session", "subagent") == "session":
            session = self.world.session(address.text("sessionId"))
            if session.origin == "subagent":
                raise Refused("session-agent-busy", f'session "{session.id}" is a subagent')
            return session
        parent, child = address.text("parentSessionId"), self.world.sessions.get(address.text("childSessionId"))
        if child is None or child.parent != parent:
            details: Obj = {"parentSessionId": parent, "childSessionId": address.text("childSessionId")}
            raise Refused("subagent-not-found", "subagent is unavailable", details)
        return child

    async def sessions(self, _: Fields) -> Obj:
        """session/list"""
        return {"items": [projections.summary(session) for session in self.world.listed()]}

    async def page(self, f: Fields) -> Obj:
        """session/page"""
        address = f.child("address")
        through = _safe(f.number("throughSeq"), -1, "throughSeq must be an integer greater than or equal to -1")
        before = _safe(f.number_or_none("beforeSeq"), 0, "beforeSeq must be a non-negative safe integer")
        limit = _safe(f.number_or_none("maxMessages"), 1, "maxMessages must be a positive safe integer")
        assert through is not None
        session = self.addressed(address)
        if through > session.cursor:
            message = f"session page through seq {through} is past cursor {session.cursor}"
            raise Refused("bad-request", message)
        if through == -1:
            return {"records": [], "hasMore": False}
        page = session.page(limit=50 if limit is None else limit, before=before, through=through)
        return {"records": self.records(page.events), "hasMore": page.has_more}

    def records(self, events: Sequence[Obj]) -> list[Obj]:
        """Return events as records."""
        return records.packed(events) if self.world.dialect.chunks_in_log else records.plain(events)

    async def projections(self, f: Fields) -> object:
        """session/projections; null for a session that does not exist"""
        session = self.world.sessions.get(f.text("sessionId"))
        if session is None:
            return None
        return {"kind": "sequenced", "asOfSeq": session.cursor, "values": projections.values(session)}

    async def prompt(self, f: Fields) -> Obj:
        """session/prompt"""
        return await self.common.prompt(f, f.text("requestId"))

    async def search(self, f: Fields) -> Obj:
        """session/search"""
        query = f.text("query")
        if not query:
            raise Refused("bad-request", "session search query must not be empty")
        if len(query.encode("utf-16-le")) > 1000:
            raise Refused("bad-request", "session search query must contain at most 500 UTF-16 code units")
        return await self.common.search(f)

    async def catalog(self, _: Fields) -> Obj:
        """session/modelCatalog"""
        default: Obj = {"provider": "deepseek-official", "model": self.world.default_model}
        routable = ["deepseek-official"]
        return {"default": default, "routableProviders": routable, "groups": self.common.groups(), "failures": []}

    # -- the rest ---------------------------------------------------------------------------------------------------

    async def commands(self, f: Fields) -> object:
        """commands/list"""
        self.world.session(f.text("agentId")).wake()
        return listed(self.world.dialect)

    async def execute(self, f: Fields) -> object:
        """commands/execute"""
        result = await self.common.execute(f)
        return ABSENT if result is None else result

    async def presets(self, _: Fields) -> Obj:
        """agentPresets/list"""
        names = self.world.dialect.presets
        if self.world.dialect.flavour == "0.2":
            presets: list[Obj] = [{"id": id_, "order": i + 1, "isDefault": i == 0} for i, id_ in enumerate(names)]
        else:
            presets = [
                {"id": id_, "trust": "system", "isDefault": i == 0, "name": id_.title(), "description": id_}
                for i, id_ in enumerate(names)
            ]
        return {"presets": presets}

    async def select_preset(self, f: Fields) -> str:
        """agentPresets/select"""
        return await self.common.select_preset(f, "agentId")

    async def providers(self, _: Fields) -> object:
        """llm/listProviders"""
        return [{"id": "deepseek-official", "name": "DeepSeek"}]

    async def permissions(self, _: Fields) -> Obj:
        """permissionPresets/catalog"""
        options = [{"value": name, "name": name} for name in PERMISSIONS]
        return {"options": options, "defaultOptions": options, "defaultPreset": "workspace-write"}

    async def result(self, f: Fields) -> object:
        """$events/result: no receipt, whatever became of it"""
        client, event, said = f.raw.get("clientId"), f.raw.get("eventId"), f.raw.get("outcome")
        kinds = ("result", "rejected", "next")
        if not isinstance(said, dict) or said.get("kind") not in kinds or not isinstance(event, str):
            raise Refused("internal", "api gateway: invalid Remote event result")
        if not isinstance(client, str) or client not in self.clients:
            raise Refused("internal", "typert gateway: Remote event result identifies no active event stream")
        pending = self.world.pending.get(event)
        if pending is None or pending.answer.done():
            return ABSENT
        kind = said["kind"]
        if kind == "next":
            pending.passed_by.add(client)
            if not self.clients <= pending.passed_by:
                return ABSENT
            outcome = Outcome("unavailable", error="NO_PROVIDER" if pending.kind == "question" else None, by=client)
        elif pending.kind == "question":
            outcome = _question_outcome(said, client)
        else:
            value = said.get("value")
            word = str(value) if kind == "result" and value in ("allowed-once", "rejected") else "unavailable"
            outcome = Outcome(word, by=client)
        pending.answer.set_result(outcome)
        return ABSENT


def _safe(value: float | None, least: int, message: str) -> int | None:
    """Return a number that is an integer JavaScript can hold, or refuse."""
    if value is None:
        return None
    if not isinstance(value, int) or not least <= value <= SAFE_INTEGER:
        raise Refused("bad-request", message)
    return value


def _question_outcome(said: Obj, client: str) -> Outcome:
    if said["kind"] == "rejected":
        return Outcome("cancelled", error="ASK_CANCELLED", by=client)
    value = said.get("value")
    return Outcome("answered", value if isinstance(value, dict) else {}, by=client)


def arguments(payload: object) -> Obj:
    """Return the arguments out of a payload that is exactly ``{"args": {…}}``."""
    if not isinstance(payload, dict) or set(payload) != {"args"} or not isinstance(payload["args"], dict):
        raise Refused("internal", "Remote payload must contain exactly one plain-object args field")
    return payload["args"]


def matching(name: str, args: Obj, names: tuple[str, ...]) -> None:
    """Refuse arguments whose names are not exactly these."""
    missing = [f'missing "{key}"' for key in names if key not in args]
    unexpected = [f'unexpected "{key}"' for key in args if key not in names]
    if missing or unexpected:
        message = f"typert gateway: {name}: args fields do not match the descriptor: {', '.join(missing + unexpected)}"
        raise Refused("arguments-invalid", message, {"endpoint": name})

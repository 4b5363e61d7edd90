"""The legacy face: dotted methods, no login, downlink-only sockets. Source: facts HARNESS 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.harness import projections
from tests.fakes.harness.carrier import ABSENT, Carrier, Method
from tests.fakes.harness.commands import listed
from tests.fakes.harness.common import Common
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.events import tool_view
from tests.fakes.harness.fields import Fields, Malformed
from tests.fakes.harness.live import LiveSession
from tests.fakes.harness.notices import Refused

if TYPE_CHECKING:
    from tests.fakes.harness.host import FakeHarness

NAMES = {"standard": "标准模式", "code": "PTC 模式", "minimal": "极简模式", "cordis": "创造模式"}


def view(session: LiveSession, event: Obj) -> Obj:
    """Return an event as legacy pages and frames carry it: with a ``view`` beside it where it is a tool's."""
    data = event.get("data")
    call = data.get("callId") if isinstance(data, dict) else None
    if event.get("type") == "tool/result" and isinstance(data, dict):
        call = data["message"]["source"]["callId"]
    if event.get("type") not in ("tool/call", "tool/result"):
        return {"event": event}
    if session.views is not None:  # a recorded session has its own, where it had any
        recorded = session.views.get(int(str(event["seq"])))
        return {"event": event} if recorded is None else {"event": event, "view": recorded}
    shown = tool_view(event, session.tool_names.get(str(call), "bash"))
    return {"event": event} if shown is None else {"event": event, "view": shown}


class Legacy(Carrier):
    """The methods of a legacy host."""

    def __init__(self, host: FakeHarness) -> None:
        super().__init__(host)
        common = Common(self.world)
        self.common = common
        self._methods: dict[str, Method] = {
            "host.describe": self.describe,
            "session.list": self.sessions,
            "session.create": common.create,
            "session.history": self.history,
            "session.prompt": self.prompt,
            "session.cancel": common.cancel,
            "session.rename": common.rename,
            "session.fork": common.fork,
            "session.models": self.models,
            "session.selectModel": common.select_model,
            "session.updateQueue": common.update_queue,
            "session.attachment": common.attachment,
            "session.search": self.search,
            "llm.models": self.llm_models,
            "workspace.list": self.workspaces,
            "workspace.create": common.create_workspace,
            "workspace.rename": common.rename_workspace,
            "workspace.archiveSession": common.archive,
            "agentPreset.list": self.presets,
            "agentPreset.select": self.select_preset,
            "skill.list": common.skills,
            "commands/list": self.commands,
            "commands/execute": self.execute,
        }

    def method(self, name: str) -> Method | None:
        """See :meth:`Carrier.method`."""
        return self._methods.get(name)

    def payload(self, name: str, payload: object) -> Fields:
        """See :meth:`Carrier.payload`."""
        if "/" not in name:
            return Fields(payload)
        if not isinstance(payload, dict) or set(payload) != {"args"} or not isinstance(payload["args"], dict):
            raise Refused("internal", "Remote payload must contain exactly one plain-object args field")
        return Fields(payload["args"])

    def refused(self, name: str, error: Refused | Malformed) -> tuple[str, str, Obj]:
        """See :meth:`Carrier.refused`."""
        if isinstance(error, Malformed):
            return "bad-request", f"invalid payload for {name}", {"issues": [error.issue]}
        if error.code == "bad-request" and not error.details:
            issue: Obj = {"code": "custom", "path": [], "message": error.message}
            return "bad-request", f"invalid payload for {name}", {"issues": [issue]}
        return error.code, error.message, error.details

    async def describe(self, _: Fields) -> Obj:
        """host.describe; the version is a constant, not that of the release."""
        attached = sum(session.attached for session in self.world.sessions.values())
        return {
            "version": "0.0.1", "cwd": self.world.cwd, "provider": "deepseek-official",
            "model": self.world.default_model, "attachedSessions": attached, "home": "/home/dev", "canOpenPath": False,
        }  # fmt: skip

    async def sessions(self, _: Fields) -> Obj:
        """session.list"""
        return {"items": [projections.summary(session) for session in self.world.listed()]}

    async def history(self, f: Fields) -> Obj:
        """session.history"""
        id_, before, limit = f.text("sessionId"), f.whole_or_none("beforeSeq"), f.whole_or_none("maxMessages")
        _at_least(before, 0, "beforeSeq", inclusive=True)
        _at_least(limit, 0, "maxMessages", inclusive=False)
        session = self.world.session(id_)
        page = session.page(limit=50 if limit is None else limit, before=before)
        value: Obj = {"events": [view(session, event) for event in page.events], "hasMore": page.has_more}
        if before is None:
            value["projections"] = projections.projections(session)
        return value

    async def prompt(self, f: Fields) -> Obj:
        """session.prompt; the rpcId of the request becomes the id of the prompt."""
        return await self.common.prompt(f, self.host.rpc_id)

    async def models(self, f: Fields) -> Obj:
        """session.models"""
        session = self.world.session(f.text("sessionId"))
        current: Obj = {"provider": "deepseek-official", "model": session.model, "reasoningEffort": session.effort}
        return {"current": current, "routable": True, "groups": self.common.groups(), "failures": []}

    async def llm_models(self, _: Fields) -> Obj:
        """llm.models"""
        return {"groups": self.common.groups(), "failures": []}

    async def search(self, f: Fields) -> Obj:
        """session.search"""
        f.text("query", least=1, most=500)
        return await self.common.search(f)

    async def workspaces(self, _: Fields) -> Obj:
        """workspace.list"""
        items = [workspace.wire for workspace in self.world.workspaces.values()]
        return {"items": items, "archivedSessionIds": list(self.world.archived)}

    async def presets(self, _: Fields) -> Obj:
        """agentPreset.list"""
        presets = [
            {"id": id_, "trust": "system", "isDefault": id_ == "standard", "name": NAMES[id_], "description": id_}
            for id_ in self.world.dialect.presets
        ]
        return {"presets": presets, "authorable": True, "hasDocument": False}

    async def select_preset(self, f: Fields) -> Obj:
        """agentPreset.select"""
        return {"agentPreset": await self.common.select_preset(f, "sessionId")}

    async def commands(self, f: Fields) -> object:
        """commands/list"""
        self.world.session(f.text("agentId")).wake()
        return listed(self.world.dialect)

    async def execute(self, f: Fields) -> object:
        """commands/execute"""
        if "images" not in f:
            raise Refused("internal", 'args fields do not match the descriptor: missing "images"')
        result = await self.common.execute(f)
        return ABSENT if result is None else result


def _at_least(value: int | None, least: int, key: str, *, inclusive: bool) -> None:
    if value is None or value > least or (inclusive and value == least):
        return
    sign = ">=" if inclusive else ">"
    message = f"Too small: expected number to be {sign}{least}"
    issue: Obj = {"origin": "number", "code": "too_small", "minimum": least, "inclusive": inclusive}
    raise Malformed({**issue, "path": [key], "message": message})

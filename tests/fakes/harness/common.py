"""Methods that both generations have, apart from their names and wrapping."""

from __future__ import annotations

from tests.fakes.harness.commands import run_command
from tests.fakes.harness.content import check_time_zone, read_content
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.fields import Fields
from tests.fakes.harness.forks import fork
from tests.fakes.harness.notices import Refused, no_such_item
from tests.fakes.harness.world import EFFORTS, World

ACCEPTED: Obj = {"accepted": True}


class Common:
    """The shared methods; each takes the request's fields and returns the value."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def create(self, f: Fields) -> Obj:
        """session.create"""
        if "workspaceId" in f and "cwd" in f:
            raise Refused("bad-request", "session.create accepts workspaceId or cwd, not both")
        session = self.world.create(
            f.text_or_none("sessionId"),
            f.text_or_none("cwd"),
            f.text_or_none("agentPreset"),
            workspace=f.text_or_none("workspaceId"),
        )
        return {"sessionId": session.id, "agentPreset": session.preset}

    async def prompt(self, f: Fields, request: str) -> Obj:
        """session.prompt"""
        mode = f.choice("mode", "queue", "steer")
        parts = list(f.items("content"))
        session = self.world.session(f.text("sessionId"))
        check_time_zone(f.text_or_none("clientTimeZone"))
        session.prompt(read_content(session, iter(parts)), request, mode)
        return ACCEPTED

    async def cancel(self, f: Fields) -> Obj:
        """session.cancel"""
        id_ = f.text("sessionId")
        session = self.world.sessions.get(id_)
        if session is None or not session.attached:
            raise Refused("session-not-found", f'session "{id_}" not found (not attached)', {"sessionId": id_})
        session.cancel()
        return ACCEPTED

    async def rename(self, f: Fields) -> Obj:
        """session.rename"""
        title = f.text("title")
        session = self.world.session(f.text("sessionId"))
        if not title.strip():
            message = "session title must contain visible characters"
            raise Refused("title-invalid", message, {"sessionId": session.id})
        session.wake()
        seq = session.rename(title)
        return {"title": session.title, "seq": seq}

    async def fork(self, f: Fields) -> Obj:
        """session.fork"""
        at = f.whole_or_none("atSeq")
        if at is not None and at < 0:
            raise Refused("bad-request", "atSeq must be a non-negative safe integer")
        return {"sessionId": fork(self.world.session(f.text("sessionId")), at).id}

    async def select_model(self, f: Fields) -> Obj:
        """session.selectModel"""
        provider, model, effort = f.text("provider"), f.text("model"), f.text_or_none("reasoningEffort")
        return {"selected": self.world.select_model(self.world.session(f.text("sessionId")), provider, model, effort)}

    async def update_queue(self, f: Fields) -> Obj:
        """session.updateQueue"""
        item, action = f.text("itemId"), f.child("action")
        kind = action.choice("kind", "edit", "remove", "steer")
        session = self.world.sessions.get(f.text("sessionId"))
        if session is None:
            raise no_such_item(item)
        session.wake()
        content = read_content(session, action.items("content")) if kind == "edit" else ()
        session.update_queue(item, kind, content)
        return ACCEPTED

    async def attachment(self, f: Fields) -> Obj:
        """session.attachment"""
        session, id_ = self.world.session(f.text("sessionId")), f.text("attachmentId")
        if id_ not in session.attachments:
            message = "Image is not referenced by this session."
            raise Refused("attachment-error", message, {"reason": "ATTACHMENT_NOT_REFERENCED"})
        return session.attachments[id_]

    async def search(self, _: Fields) -> Obj:
        """session.search, off as in the default configuration"""
        message = (
            "session search failed: SessionQueryError: session search is disabled: "
            'this deployment configures the session-query index with openAt "never"'
        )
        raise Refused("internal", message)

    async def skills(self, f: Fields) -> Obj:
        """skill.list"""
        self.world.session(f.text("sessionId")).wake()
        return {"skills": []}

    async def select_preset(self, f: Fields, key: str) -> str:
        """agentPreset.select"""
        preset, session = f.text("agentPreset"), self.world.session(f.text(key))
        if not session.blank:
            details: Obj = {"sessionId": session.id, "agentPreset": preset}
            raise Refused("agent-preset-locked", "This session has already started", details)
        session.preset = self.world.preset(preset)
        return session.preset

    async def execute(self, f: Fields) -> Obj | None:
        """commands/execute; None when there is no such command"""
        line = f.text("line")
        session = self.world.session(f.text("agentId"))
        session.wake()
        return run_command(session, line)

    def groups(self) -> list[Obj]:
        """The model catalog."""
        efforts = [{"id": effort, "name": effort.title()} for effort in EFFORTS]
        reasoning: Obj = {"efforts": efforts, "defaultEffort": "high"}
        models = [{"id": id_, "name": name, "reasoning": reasoning} for id_, name in self.world.models.items()]
        return [{"id": "deepseek-official", "name": "DeepSeek", "models": models}]

    # -- workspaces -------------------------------------------------------------------------------------------------

    async def create_workspace(self, f: Fields) -> Obj:
        """workspace.create"""
        workspace, created = self.world.create_workspace(f.text("path"))
        return {"workspace": workspace.wire, "created": created}

    async def rename_workspace(self, f: Fields) -> Obj:
        """workspace.rename"""
        workspace = self.world.workspace(f.text("workspaceId"))
        workspace.title = f.text("title")
        return {"workspace": workspace.wire}

    async def archive(self, f: Fields) -> Obj:
        """workspace.archiveSession"""
        id_ = f.text("sessionId")
        if id_ not in self.world.sessions:
            message = f"cannot archive session '{id_}': live sessions and session persistence hold no such session"
            raise Refused("session-not-found", message, {"sessionId": id_})
        self.world.archived.append(id_)
        return {"archivedSessionIds": list(self.world.archived)}

    async def unarchive(self, f: Fields) -> Obj:
        """workspace.unarchiveSession"""
        id_ = f.text("sessionId")
        self.world.archived = [archived for archived in self.world.archived if archived != id_]
        return {"archivedSessionIds": list(self.world.archived)}

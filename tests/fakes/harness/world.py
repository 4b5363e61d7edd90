"""What one host holds beside its sockets: sessions, workspaces, models, open questions, and who listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from harness_client.types import Generation
from tests.fakes.harness.dialect import Dialect, Mint, Obj
from tests.fakes.harness.events import draft
from tests.fakes.harness.live import LiveSession
from tests.fakes.harness.model import Model
from tests.fakes.harness.notices import Added, Asked, Notice, Outcome, Pending, Refused, Settled
from tests.fakes.harness.session import Session

EFFORTS = ("off", "low", "high", "max")
PERMISSIONS = ("read-only", "workspace-write", "danger-full-access")


@dataclass(slots=True)
class Workspace:
    """A registered folder."""

    id: str
    path: str
    title: str
    sessions: list[str] = field(default_factory=list)

    @property
    def wire(self) -> Obj:
        """The folder as both faces spell it."""
        stamp = "2026-11-30T16:37:39.097Z"
        return {
            "workspaceId": self.id, "path": self.path, "title": self.title, "sessionIds": list(self.sessions),
            "createdAt": stamp, "updatedAt": stamp,
        }  # fmt: skip


class World:
    """The engine of one host, without any wire."""

    def __init__(self, dialect: Dialect, cwd: str = "/home/dev/ws") -> None:
        self.dialect, self.cwd = dialect, cwd
        self.mint, self.model = Mint(), Model()
        self.sessions: dict[str, Session] = {}
        self.workspaces: dict[str, Workspace] = {}
        self.archived: list[str] = []
        self.pinned: list[str] = []
        self.models = {dialect.model: "Flash", "deepseek-v4-pro": "DeepSeek-V4-Pro"}
        self.default_model = dialect.model
        self.image_models = {dialect.model} if dialect.generation is Generation.MODERN else set[str]()
        self.model_selected = False
        self.pending: dict[str, Pending] = {}
        self.listeners: set[Callable[[Notice], None]] = set()
        self.failures: list[BaseException] = []
        """What went wrong inside the fake itself, told when the test is over."""
        self._calls = 0
        self._commands = 0

    def publish(self, notice: Notice) -> None:
        """Tell everybody who listens."""
        for listener in tuple(self.listeners):
            listener(notice)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this world holds."""
        changed = asyncio.Event()

        def hear(_: Notice) -> None:
            changed.set()

        self.listeners.add(hear)
        try:
            while not condition():
                await changed.wait()
                changed.clear()
        finally:
            self.listeners.discard(hear)

    def next_call(self) -> str:
        """Return the id of a new tool call."""
        self._calls += 1
        return f"call_{self._calls:04}_fake"

    def next_command(self) -> str:
        """Return the id of a new command run."""
        self._commands += 1
        return f"cmd-4f324500-{self._commands}"

    # -- sessions ---------------------------------------------------------------------------------------------------

    def create(
        self,
        id_: str | None = None,
        cwd: str | None = None,
        preset: str | None = None,
        *,
        workspace: str | None = None,
        parent: str | None = None,
        origin: str | None = None,
    ) -> Session:
        """Create a session, or give the same one back for the same id and folder."""
        if workspace is not None:
            cwd = self.workspace(workspace).path
        cwd = self.cwd if cwd is None else cwd
        if not cwd.startswith("/"):
            raise Refused(
                "internal", f'failed to create session: session header cwd must be an absolute path, got "{cwd}"'
            )
        preset = self.preset(preset or "standard")
        id_ = id_ or f"session-{self.mint.uuid()}"
        known = self.sessions.get(id_)
        if known is not None:
            if known.cwd != cwd:
                details: Obj = {"sessionId": id_, "requestedCwd": cwd, "existingCwd": known.cwd}
                raise Refused("session-conflict", f'session "{id_}" belongs to "{known.cwd}", not "{cwd}"', details)
            return known
        session = self.sessions[id_] = Session(self, id_, cwd, preset, parent, origin)
        if workspace is not None:
            self.workspaces[workspace].sessions.insert(0, id_)
        settings = (
            draft("permission/preset", preset="workspace-write"),
            draft("sandbox/mode", mode="workspace-write"),
            draft("approval/policy", policy="ask"),
        )
        if self.dialect.generation is Generation.LEGACY:
            self.publish(Added(session))
        for event in settings:
            session.write(event)
        if self.dialect.generation is Generation.MODERN:
            self.publish(Added(session))
        return session

    def session(self, id_: str) -> Session:
        """Return a session or refuse."""
        if id_ not in self.sessions:
            raise Refused("session-not-found", f'session "{id_}" not found', {"sessionId": id_})
        return self.sessions[id_]

    def listed(self) -> list[Session]:
        """Return all sessions, newest first."""
        return sorted(self.sessions.values(), key=lambda s: s.updated_at, reverse=True)

    def preset(self, name: str) -> str:
        """Return a preset's name or refuse."""
        if name not in self.dialect.presets:
            details: Obj = {"agentPreset": name, "available": list(self.dialect.presets)}
            raise Refused("agent-preset-not-found", f"Unknown agent preset: {name}", details)
        return name

    def select_model(self, session: LiveSession, provider: str, model: str, effort: str | None) -> Obj:
        """Choose a model; as on every host it becomes the default of all future sessions too."""
        details: Obj = {"provider": provider, "model": model}
        if provider != "deepseek-official":
            raise Refused("model-unavailable", f'no adapter registered for provider "{provider}"', details)
        if effort is not None and effort not in EFFORTS:
            raise Refused("model-unavailable", f'model "{model}" does not support reasoning effort "{effort}"', details)
        if self.dialect.flavour == "0.2" and model not in self.models:
            raise Refused("model-unavailable", "Select an available model before sending a message.", details)
        self.default_model, self.model_selected = model, True
        return session.choose_model(model, effort or "high")

    # -- workspaces -------------------------------------------------------------------------------------------------

    def workspace(self, id_: str) -> Workspace:
        """Return a workspace or refuse."""
        if id_ not in self.workspaces:
            raise Refused("workspace-not-found", f'workspace "{id_}" not found', {"workspaceId": id_})
        return self.workspaces[id_]

    def create_workspace(self, path: str) -> tuple[Workspace, bool]:
        """Register a folder once; return it and whether it is new."""
        if not path.startswith("/"):
            raise Refused("workspace-invalid-path", f'cannot create a workspace at "{path}"', {"path": path})
        for known in self.workspaces.values():
            if known.path == path:
                return known, False
        workspace = Workspace(self.mint.uuid(), path, path.rsplit("/", 1)[-1])
        self.workspaces = {workspace.id: workspace, **self.workspaces}
        return workspace, True

    # -- questions and approvals ------------------------------------------------------------------------------------

    async def ask(
        self, session: LiveSession, kind: Literal["question", "approval"], request: Obj, approval: str = ""
    ) -> Outcome:
        """Ask a person and wait, for ever if nobody answers; a stop of the turn settles it as cancelled."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        pending = Pending(self.mint.uuid(), kind, session, request, approval, answer)
        self.pending[pending.id] = pending
        self.publish(Asked(pending))
        try:
            return await answer
        finally:
            del self.pending[pending.id]
            outcome = answer.result() if answer.done() and not answer.cancelled() else Outcome("cancelled")
            self.publish(Settled(pending, outcome))

"""What a host can offer, on the wire: models, presets, workspaces, commands. See :mod:`harness_client.wire`."""

from __future__ import annotations

from harness_client.carrier import decode
from harness_client.types import (
    CommandOutcome,
    Effort,
    HostCommand,
    Model,
    ModelCatalog,
    ModelChoice,
    Preset,
    SessionId,
    Workspace,
    WorkspaceId,
    WorkspaceList,
)
from harness_client.wire import Choice, Wire


class _Effort(Wire):
    id: str
    name: str


class _Reasoning(Wire):
    efforts: tuple[_Effort, ...] = ()
    default_effort: str | None = None


class _Model(Wire):
    id: str
    name: str
    reasoning: _Reasoning | None = None


class _Group(Wire):
    id: str
    name: str
    models: tuple[_Model, ...] = ()


class _Failure(Wire):
    id: str
    name: str | None = None


class Catalog(Wire):
    """``session/modelCatalog``, ``session.models`` (``current``) and ``llm.models`` (neither default)."""

    groups: tuple[_Group, ...]
    failures: tuple[_Failure, ...] = ()
    default: Choice | None = None
    current: Choice | None = None

    def catalog(self, current: ModelChoice | None = None) -> ModelCatalog:
        """Return our type; ``current`` wins over what the answer names."""
        own = self.current or self.default
        return ModelCatalog(
            default=current or (own.choice() if own else None),
            models=tuple(_model(group, model) for group in self.groups for model in group.models),
            failures=tuple(failure.name or failure.id for failure in self.failures),
        )


def _model(group: _Group, model: _Model) -> Model:
    reasoning = model.reasoning or _Reasoning()
    return Model(
        provider=group.id,
        provider_name=group.name,
        id=model.id,
        name=model.name,
        efforts=tuple(Effort(effort.id, effort.name) for effort in reasoning.efforts),
        default_effort=reasoning.default_effort,
    )


class Selected(Wire):
    """``selectModel``."""

    selected: Choice


class _Preset(Wire):
    id: str
    is_default: bool = False
    name: str | None = None
    description: str | None = None


class Presets(Wire):
    """The preset list; 0.2.x tells no name and no description."""

    presets: tuple[_Preset, ...]

    def all(self) -> tuple[Preset, ...]:
        """Return our types."""
        return tuple(Preset(p.id, p.name or p.id, p.description or "", p.is_default) for p in self.presets)


class _Workspace(Wire):
    workspace_id: str
    path: str
    title: str
    session_ids: tuple[str, ...] = ()

    def workspace(self) -> Workspace:
        return Workspace(
            WorkspaceId(self.workspace_id), self.path, self.title, tuple(SessionId(each) for each in self.session_ids)
        )


class WorkspaceCreated(Wire):
    """``workspace.create``."""

    workspace: _Workspace


class Workspaces(Wire):
    """``workspace.list``, and the baseline of ``workspace/follow``."""

    items: tuple[_Workspace, ...]
    archived_session_ids: tuple[str, ...] = ()

    def all(self) -> WorkspaceList:
        """Return our type."""
        return WorkspaceList(
            tuple(each.workspace() for each in self.items),
            frozenset(SessionId(each) for each in self.archived_session_ids),
        )


class Command(Wire):
    """One entry of ``commands/list``."""

    name: str
    description: str = ""

    def command(self) -> HostCommand:
        """Return our type."""
        return HostCommand(self.name, self.description)


class _CommandResult(Wire):
    kind: str
    text: str | None = None


class _CommandDone(Wire):
    result: _CommandResult


def command_outcome(value: object) -> CommandOutcome:
    """Read the answer of ``commands/execute``; it is empty when the host knows no such command."""
    if value is None:
        return CommandOutcome(known=False, ok=False, text="")
    done = decode(value, _CommandDone, "commands/execute")
    return CommandOutcome(known=True, ok=done.result.kind == "success", text=done.result.text or "")

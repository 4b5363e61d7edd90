# ruff: noqa: D102 - the methods' contracts are those of HarnessClient
"""Legacy hosts (0.1.0-rc.6 … 0.1.1): dotted methods, no login, pages without a cursor (facts HARNESS 3)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeVar

from harness_client import catalogs, wire
from harness_client.carrier import Carrier, decode, parse
from harness_client.deltas import logged, partial
from harness_client.errors import Unreachable
from harness_client.events import Event, parse_event
from harness_client.feed import Feed
from harness_client.legacy_streams import LegacyStreams
from harness_client.pages import read_page
from harness_client.streams import ApprovalAsked, FollowItem, HostEvent, Page, QuestionAsked, Snapshot
from harness_client.types import (
    Answer,
    Attachment,
    AttachmentId,
    CommandOutcome,
    Decision,
    Generation,
    Health,
    HostCommand,
    ModelCatalog,
    ModelChoice,
    Preset,
    Projections,
    PromptMode,
    PromptPart,
    QueueAction,
    QueueItemId,
    Receipt,
    RequestId,
    SessionId,
    SessionSummary,
    Workspace,
    WorkspaceId,
    WorkspaceList,
)

_TAIL_MESSAGES: Final = 50
_FILL_PAGES: Final = 3

T = TypeVar("T")


class _Described(wire.Wire):
    provider: str | None = None
    model: str | None = None


class _SelectedPreset(wire.Wire):
    agent_preset: str


class _Receipt(wire.Wire):
    accepted: bool
    reason: str | None = None


class LegacyDialect:
    """See :class:`harness_client.dialect.Dialect`."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._streams = LegacyStreams(carrier)

    async def _ask(self, method: str, payload: Mapping[str, object], into: type[T]) -> T:
        kept = {key: value for key, value in payload.items() if value is not None}
        return decode(await self._carrier.call(method, kept), into, method)

    # -- the host ----------------------------------------------------------------------------------------------------

    async def health(self) -> Health:
        # The version it describes itself with is a constant, not the program's.
        await self._ask("host.describe", {}, _Described)
        return Health(Generation.LEGACY, None)

    async def models(self, session: SessionId | None) -> ModelCatalog:
        if session is not None:
            return (await self._ask("session.models", {"sessionId": session}, catalogs.Catalog)).catalog()
        catalog = await self._ask("llm.models", {}, catalogs.Catalog)
        host = await self._ask("host.describe", {}, _Described)
        return catalog.catalog(ModelChoice(host.provider, host.model) if host.provider and host.model else None)

    async def select_model(self, session: SessionId, choice: ModelChoice) -> ModelChoice:
        payload = {
            "sessionId": session,
            "provider": choice.provider,
            "model": choice.model,
            "reasoningEffort": choice.effort,
        }
        return (await self._ask("session.selectModel", payload, catalogs.Selected)).selected.choice()

    async def presets(self) -> tuple[Preset, ...]:
        return (await self._ask("agentPreset.list", {}, catalogs.Presets)).all()

    async def select_preset(self, session: SessionId, preset: str) -> str:
        payload = {"sessionId": session, "agentPreset": preset}
        return (await self._ask("agentPreset.select", payload, _SelectedPreset)).agent_preset

    async def workspaces(self) -> WorkspaceList:
        return (await self._ask("workspace.list", {}, catalogs.Workspaces)).all()

    async def create_workspace(self, path: str) -> Workspace:
        return (await self._ask("workspace.create", {"path": path}, catalogs.WorkspaceCreated)).workspace.workspace()

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def _rows(self) -> wire.Rows:
        return await self._ask("session.list", {}, wire.Rows)

    async def sessions(self) -> tuple[SessionSummary, ...]:
        return (await self._rows()).summaries()

    async def create_session(
        self, session: SessionId | None, cwd: str | None, workspace: WorkspaceId | None, preset: str | None
    ) -> SessionId:
        payload = {
            "sessionId": session,
            "cwd": cwd,
            "workspaceId": workspace,
            "agentPreset": preset,
        }
        return SessionId((await self._ask("session.create", payload, wire.Created)).session_id)

    async def rename_session(self, session: SessionId, title: str) -> str:
        return (await self._ask("session.rename", {"sessionId": session, "title": title}, wire.Renamed)).title

    async def fork_session(self, session: SessionId, at: int | None) -> SessionId:
        payload = {"sessionId": session, "atSeq": at}
        return SessionId((await self._ask("session.fork", payload, wire.Created)).session_id)

    async def page(
        self, session: SessionId, before: int | None, through: int | None, limit: int, parent: SessionId | None
    ) -> Page:
        del through, parent  # these hosts know no cursor and read a subagent as any other session
        payload: dict[str, object] = {"sessionId": session, "maxMessages": limit}
        if before is not None:
            payload["beforeSeq"] = before
        body = await self._carrier.fetch("session.history", payload)
        return await read_page(body, "session.history", through=None)

    async def projections(self, session: SessionId) -> Projections:
        row = (await self._rows()).find(session)
        summary = row.summary()
        return Projections(
            as_of_seq=summary.as_of_seq,
            title=summary.title,
            running=summary.running,
            model=None,
            queue=self._streams.queue(session),
        )

    async def attachment(self, session: SessionId, attachment: AttachmentId) -> Attachment:
        payload = {"sessionId": session, "attachmentId": attachment}
        return (await self._ask("session.attachment", payload, wire.AttachmentData)).bytes()

    # -- turns -------------------------------------------------------------------------------------------------------

    async def prompt(
        self, session: SessionId, parts: Sequence[PromptPart], request: RequestId, mode: PromptMode
    ) -> None:
        content = [wire.content(part) for part in parts]
        payload = {"sessionId": session, "mode": mode.value, "content": content}
        await self._carrier.call("session.prompt", payload, request=request)

    async def cancel(self, session: SessionId) -> None:
        await self._carrier.call("session.cancel", {"sessionId": session})

    async def update_queue(self, session: SessionId, item: QueueItemId, action: QueueAction) -> None:
        payload = {"sessionId": session, "itemId": item, "action": {"kind": action.value}}
        await self._carrier.call("session.updateQueue", payload)

    async def commands(self, session: SessionId) -> tuple[HostCommand, ...]:
        found = await self._ask("commands/list", {"args": {"agentId": session}}, tuple[catalogs.Command, ...])
        return tuple(command.command() for command in found)

    async def run_command(self, session: SessionId, line: str) -> CommandOutcome:
        args = {"agentId": session, "line": line, "images": []}
        return catalogs.command_outcome(await self._carrier.call("commands/execute", {"args": args}))

    # -- streams -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def follow(self, session: SessionId) -> AsyncIterator[AsyncIterator[FollowItem]]:
        """Subscribe first and read the tail after: what came in between is in both, and dropped by its ``seq``."""
        async with self._streams.events(session) as feed:
            page = await self.page(session, None, None, _TAIL_MESSAGES, None)
            async with aclosing(self._followed(session, page, feed)) as items:
                yield items

    async def _followed(self, session: SessionId, page: Page, feed: Feed[object]) -> AsyncGenerator[FollowItem, None]:
        last = -1 if page.newest is None else page.newest
        yield Snapshot(page, last, await partial(page))
        async for raw in feed:
            event = parse_event(raw)
            if event.seq <= last:
                continue
            if event.seq > last + 1:
                # A cold session that wakes writes a few events before anybody is subscribed to it.
                for missed in await self._missed(session, last, event.seq):
                    yield missed
            last = event.seq
            for each in logged(event, raw):
                yield each

    async def _missed(self, session: SessionId, last: int, before: int) -> list[Event]:
        missed: list[Event] = []
        for _ in range(_FILL_PAGES):
            page = await self.page(session, before, None, _TAIL_MESSAGES, None)
            missed = [event for event in page.events if event.seq > last] + missed
            if page.oldest is None or page.oldest <= last + 1:
                return missed
            before = page.oldest
        raise Unreachable("session.history: too many events were missed")

    @asynccontextmanager
    async def host_events(self) -> AsyncIterator[AsyncIterator[HostEvent]]:
        async with self._streams.host_events() as feed:
            yield feed

    async def answer(self, question: QuestionAsked, answers: Sequence[Answer]) -> Receipt:
        said = {"sessionId": question.session, "answer": {"answers": [wire.answer(each) for each in answers]}}
        return await self._respond(question.id, {"ok": True, "value": said})

    async def decline(self, question: QuestionAsked) -> Receipt:
        error = {"code": "cancelled", "message": "the user declined to answer", "details": {}}
        return await self._respond(question.id, {"ok": False, "error": error})

    async def decide(self, approval: ApprovalAsked, decision: Decision) -> Receipt:
        said = {"sessionId": approval.session, "approvalId": approval.approval, "outcome": decision.value}
        return await self._respond(approval.id, {"ok": True, "value": said})

    async def _respond(self, rpc: str, result: dict[str, object]) -> Receipt:
        body = await self._carrier.post("respond", {"type": "client-response", "rpcId": rpc, "result": result})
        receipt = decode(await parse(body), _Receipt, "respond")
        if receipt.accepted:
            return Receipt.ACCEPTED
        return Receipt.NOT_PENDING if receipt.reason == "not-pending" else Receipt.INVALID

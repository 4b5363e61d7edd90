# ruff: noqa: D102 - the methods' contracts are those of HarnessClient
"""Modern hosts (0.1.2 … 0.2.x): slashed endpoints, arguments by name, cursors for pages (facts HARNESS 4).

What the versions differ in is asked and fallen back from, never looked up by version.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

from harness_client import catalogs, wire
from harness_client.carrier import Carrier, HostRefused, check_status, decode, parse, unwrap
from harness_client.errors import Malformed, Refused, SessionNotFound, Unsupported, refusal
from harness_client.modern_streams import ModernStreams
from harness_client.pages import read_page
from harness_client.streams import ApprovalAsked, FollowItem, HostEvent, Page, QuestionAsked
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

_BEYOND: Final = 2**53 - 1
_PAST_CURSOR = re.compile(r"past cursor (-1|\d{1,16})\b")

_RELEASE = re.compile(r'"release":\{"version":"([0-9A-Za-z.+-]{1,40})"')
"""The program's version in the start page of 0.2.x; older ones do not tell it."""

_MODES: Final = ("unknown", "continuable", "one-shot")
"""How a subagent may run: part of its address. Hosts before 0.2 have no ``unknown`` (facts HARNESS 4.3)."""

Address = Mapping[str, str]
"""Which log a page is cut from, in the host's words."""

T = TypeVar("T")


def _session(session: SessionId) -> Address:
    return {"kind": "session", "sessionId": session}


def _subagent(parent: SessionId, child: SessionId, mode: str) -> Address:
    return {"kind": "subagent", "parentSessionId": parent, "childSessionId": child, "mode": mode}


class ModernDialect:
    """See :class:`harness_client.dialect.Dialect`."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._streams = ModernStreams(carrier)
        self._has_projections = True

    async def _ask(self, endpoint: str, args: Mapping[str, object], into: type[T]) -> T:
        return decode(await self._carrier.call(endpoint, {"args": args}), into, endpoint)

    async def _request(self, endpoint: str, request: Mapping[str, object], into: type[T]) -> T:
        kept = {key: value for key, value in request.items() if value is not None}
        return await self._ask(endpoint, {"request": kept}, into)

    # -- the host ----------------------------------------------------------------------------------------------------

    async def health(self) -> Health:
        status, page = await self._carrier.index({})
        check_status(status, "health")
        told = _RELEASE.search(page)
        return Health(Generation.MODERN, told[1] if told else None)

    async def models(self, session: SessionId | None) -> ModelCatalog:
        catalog = await self._ask("session/modelCatalog", {}, catalogs.Catalog)
        if session is None:
            return catalog.catalog()
        return catalog.catalog((await self.projections(session)).model)

    async def select_model(self, session: SessionId, choice: ModelChoice) -> ModelChoice:
        request = {
            "sessionId": session,
            "provider": choice.provider,
            "model": choice.model,
            "reasoningEffort": choice.effort,
        }
        return (await self._request("session/selectModel", request, catalogs.Selected)).selected.choice()

    async def presets(self) -> tuple[Preset, ...]:
        return (await self._ask("agentPresets/list", {}, catalogs.Presets)).all()

    async def select_preset(self, session: SessionId, preset: str) -> str:
        return await self._ask("agentPresets/select", {"agentId": session, "agentPreset": preset}, str)

    async def workspaces(self) -> WorkspaceList:
        return (await self._streams.workspaces()).all()

    async def create_workspace(self, path: str) -> Workspace:
        return (
            await self._request("workspace/create", {"path": path}, catalogs.WorkspaceCreated)
        ).workspace.workspace()

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def _rows(self) -> wire.Rows:
        return await self._ask("session/list", {"_request": {}}, wire.Rows)

    async def sessions(self) -> tuple[SessionSummary, ...]:
        return (await self._rows()).summaries()

    async def create_session(
        self, session: SessionId | None, cwd: str | None, workspace: WorkspaceId | None, preset: str | None
    ) -> SessionId:
        request = {"sessionId": session, "cwd": cwd, "workspaceId": workspace, "agentPreset": preset}
        return SessionId((await self._request("session/create", request, wire.Created)).session_id)

    async def rename_session(self, session: SessionId, title: str) -> str:
        return (await self._request("session/rename", {"sessionId": session, "title": title}, wire.Renamed)).title

    async def fork_session(self, session: SessionId, at: int | None) -> SessionId:
        request = {"sessionId": session, "atSeq": at}
        return SessionId((await self._request("session/fork", request, wire.Created)).session_id)

    async def page(
        self, session: SessionId, before: int | None, through: int | None, limit: int, parent: SessionId | None
    ) -> Page:
        if parent is None:
            cursor = await self._cursor(session) if through is None else through
            return await self._page(_session(session), before, cursor, limit)
        *modes, last = (_subagent(parent, session, mode) for mode in _MODES)
        for address in modes:
            try:
                return await self._page(address, before, through, limit)
            except SessionNotFound:
                raise
            except Refused:
                continue  # this host does not know the word, or the subagent runs in another mode
        return await self._page(last, before, through, limit)

    async def _page(self, address: Address, before: int | None, through: int | None, limit: int) -> Page:
        cursor = await self._bound(address) if through is None else through
        body = await self._fetch_page(address, before, cursor, limit)
        return await read_page(body, "session/page", through=cursor)

    async def _fetch_page(self, address: Address, before: int | None, through: int, limit: int) -> bytes:
        request: dict[str, object] = {"address": address, "throughSeq": through, "maxMessages": limit}
        if before is not None:
            request["beforeSeq"] = before
        return await self._carrier.fetch("session/page", {"args": {"request": request}})

    async def _cursor(self, session: SessionId) -> int:
        """Find the newest ``seq`` without waking the session.

        The list is no source: its ``asOfSeq`` may be stale for a cold session. Hosts without projections (0.1.x), and
        logs that wait for a migration, name the bound in their refusal of a cursor beyond it.
        """
        projected = await self._projected(session)
        if projected is not None and projected.kind == "sequenced" and projected.as_of_seq is not None:
            return projected.as_of_seq
        return await self._bound(_session(session))

    async def _bound(self, address: Address) -> int:
        try:
            unwrap(await parse(await self._fetch_page(address, None, _BEYOND, 1)), "session/page")
        except HostRefused as refused:
            bound = _PAST_CURSOR.search(refused.error.message)
            if refused.error.code != "gateway/bad-request" or bound is None:
                raise refusal(refused.error.code, "session/page") from None
            return int(bound[1])
        raise Malformed("session/page: a cursor beyond every log was taken")

    async def _projected(self, session: SessionId) -> wire.Projected | None:
        if not self._has_projections:
            return None
        try:
            value = await self._carrier.call("session/projections", {"args": {"request": {"sessionId": session}}})
        except Unsupported:
            self._has_projections = False
            return None
        return None if value is None else decode(value, wire.Projected, "session/projections")

    async def projections(self, session: SessionId) -> Projections:
        row = (await self._rows()).find(session)
        # The row of a cold session is a cache; only the session's own projections are exact.
        projected = None if row.agent_available else await self._projected(session)
        projected = projected or row.projections or wire.Projected()
        state = decode(projected.values or {}, wire.State, "session/projections")
        return Projections(
            as_of_seq=projected.as_of_seq,
            title=state.title,
            running=row.running,
            model=state.model(),
            queue=state.queue(),
        )

    async def attachment(self, session: SessionId, attachment: AttachmentId) -> Attachment:
        request = {"sessionId": session, "attachmentId": attachment}
        return (await self._request("session/attachment", request, wire.AttachmentData)).bytes()

    # -- turns -------------------------------------------------------------------------------------------------------

    async def prompt(
        self, session: SessionId, parts: Sequence[PromptPart], request: RequestId, mode: PromptMode
    ) -> None:
        content = [wire.content(part) for part in parts]
        prompt = {"requestId": request, "sessionId": session, "mode": mode.value, "content": content}
        await self._carrier.call("session/prompt", {"args": {"request": prompt}})

    async def cancel(self, session: SessionId) -> None:
        await self._carrier.call("session/cancel", {"args": {"request": {"sessionId": session}}})

    async def update_queue(self, session: SessionId, item: QueueItemId, action: QueueAction) -> None:
        request = {"sessionId": session, "itemId": item, "action": {"kind": action.value}}
        await self._carrier.call("session/updateQueue", {"args": {"request": request}})

    async def commands(self, session: SessionId) -> tuple[HostCommand, ...]:
        found = await self._ask("commands/list", {"agentId": session}, tuple[catalogs.Command, ...])
        return tuple(command.command() for command in found)

    async def run_command(self, session: SessionId, line: str) -> CommandOutcome:
        args: dict[str, object] = {"agentId": session, "line": line}
        try:
            done = await self._carrier.call("commands/execute", {"args": args | {"submittedAttachments": []}})
        except Refused as error:
            # Arguments are checked before anything runs, so asking in the older words is no second run.
            if error.reason != "gateway/arguments-invalid":
                raise
            done = await self._carrier.call("commands/execute", {"args": args | {"images": []}})
        return catalogs.command_outcome(done)

    # -- streams -----------------------------------------------------------------------------------------------------

    def follow(self, session: SessionId) -> AbstractAsyncContextManager[AsyncIterator[FollowItem]]:
        return self._streams.follow(session)

    def host_events(self) -> AbstractAsyncContextManager[AsyncIterator[HostEvent]]:
        return self._streams.host_events()

    async def answer(self, question: QuestionAsked, answers: Sequence[Answer]) -> Receipt:
        value = {"answers": [wire.answer(each) for each in answers]}
        return await self._streams.settle(question.id, {"kind": "result", "value": value})

    async def decline(self, question: QuestionAsked) -> Receipt:
        error = {
            "name": "UserQuestionError",
            "message": "the user cancelled ask_user_question",
            "code": "ASK_CANCELLED",
        }
        return await self._streams.settle(question.id, {"kind": "rejected", "error": error})

    async def decide(self, approval: ApprovalAsked, decision: Decision) -> Receipt:
        return await self._streams.settle(approval.id, {"kind": "result", "value": decision.value})

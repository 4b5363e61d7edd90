"""The one interface to an agent host: typed calls over whichever generation answers.

A :class:`HarnessClient` detects the generation at its first call (facts HARNESS 1), logs in where the host asks for
it, logs in once more when a login has gone stale, and maps every failure to :mod:`harness_client.errors`.
It retries nothing that could take effect twice: a prompt is sent once, whatever happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Self, TypeVar

from harness_client.address import Address
from harness_client.answers import complete
from harness_client.carrier import Carrier, Observe, unobserved
from harness_client.clock import SYSTEM_CLOCK, Clock
from harness_client.dialect import Dialect
from harness_client.errors import Refused, SessionNotFound, TimedOut, Unauthorized
from harness_client.legacy import LegacyDialect
from harness_client.login import detect, log_in
from harness_client.modern import ModernDialect
from harness_client.streams import (
    ApprovalAsked,
    FollowItem,
    HostEvent,
    InteractionClosed,
    Page,
    QuestionAsked,
    RunningChanged,
    Snapshot,
)
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

__all__ = [
    "Address",
    "ApprovalAsked",
    "FollowItem",
    "HarnessClient",
    "HostEvent",
    "InteractionClosed",
    "Page",
    "QuestionAsked",
    "RunningChanged",
    "Snapshot",
]

CALL_SECONDS: Final = 30.0
"""What one call may take when its caller sets no shorter deadline around it."""
COMMAND_SECONDS: Final = 600.0
"""The same for a host command: ``/compact`` calls the model."""

T = TypeVar("T")


class HarnessClient:
    """Typed calls to one host. Use as an async context manager; safe for concurrent calls in one loop."""

    def __init__(
        self,
        address: Address,
        *,
        clock: Clock = SYSTEM_CLOCK,
        observe: Observe = unobserved,
        only_reads: bool = False,
    ) -> None:
        """``only_reads``: it can do no more than ``/history`` may, see :data:`harness_client.carrier.READS`."""
        self.address = address
        self.clock = clock
        self._observe = observe
        self._only_reads = only_reads
        self._open: Carrier | None = None
        self._dialect: Dialect | None = None
        self._logging_in = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._open = Carrier(self.address, clock=self.clock, observe=self._observe, only_reads=self._only_reads)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._open is not None:
            await self._open.close()
        self._open = self._dialect = None

    def move(self, address: Address) -> None:
        """Go on at ``address``: a host of our own was started again, with a new token and, rarely, on a new port.

        A login that is still good stays; otherwise the next call logs in with the new token.
        """
        self.address = address
        if self._open is not None:
            self._open.address = address

    async def _ready(self, stale: Dialect | None = None) -> Dialect:
        """Return the dialect to speak, detecting and logging in when there is none but ``stale``; once for all."""
        async with self._logging_in:
            if self._dialect is None or self._dialect is stale:
                self._dialect = None
                self._dialect = await _greet(self._carrier)
            return self._dialect

    @property
    def _carrier(self) -> Carrier:
        if self._open is None:
            raise RuntimeError("the client is used outside its async with")
        return self._open

    async def _run(self, call: Callable[[Dialect], Awaitable[T]], seconds: float = CALL_SECONDS) -> T:
        """Run a call within ``seconds``. One that met a stale login runs again after a new one, then never."""
        try:
            async with self.clock.timeout(seconds):
                dialect = await self._ready()
                try:
                    return await call(dialect)
                except Unauthorized:
                    # 401 comes before the host does anything, so that even a prompt may go out again.
                    return await call(await self._ready(stale=dialect))
        except TimeoutError:
            raise TimedOut(f"no complete answer within {seconds:g} s") from None

    # -- the host ----------------------------------------------------------------------------------------------------

    async def health(self) -> Health:
        """Find out the generation and log in. Raises any HarnessError but Refused."""
        return await self._run(lambda host: host.health())

    async def models(self, session: SessionId | None = None) -> ModelCatalog:
        """Read the model catalog; a legacy host needs ``session`` for its current choice."""
        return await self._run(lambda host: host.models(session))

    async def select_model(self, session: SessionId, choice: ModelChoice) -> ModelChoice:
        """Choose the session's model. EVERY host also makes it the default of all its future sessions."""
        return await self._run(lambda host: host.select_model(session, choice))

    async def presets(self) -> tuple[Preset, ...]:
        """Read the agent presets."""
        return await self._run(lambda host: host.presets())

    async def select_preset(self, session: SessionId, preset: str) -> str:
        """Choose the session's preset (only before its first turn); return the one in force."""
        return await self._run(lambda host: host.select_preset(session, preset))

    async def workspaces(self) -> WorkspaceList:
        """Read the registered workspaces. Raises Unsupported where the host has none."""
        return await self._run(lambda host: host.workspaces())

    async def create_workspace(self, path: str) -> Workspace:
        """Register a folder that exists: checked here, for some hosts would make it (facts HARNESS 4.3)."""
        if not await asyncio.to_thread(Path(path).is_dir):
            raise Refused("workspace: no such folder", reason="workspace/invalid-path")
        return await self._run(lambda host: host.create_workspace(path))

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """Read the session list, newest first, subagents included and marked."""
        return await self._run(lambda host: host.sessions())

    async def create_session(
        self,
        *,
        session: SessionId | None = None,
        cwd: str | None = None,
        workspace: WorkspaceId | None = None,
        preset: str | None = None,
    ) -> SessionId:
        """Create a session. The same ``session`` id with the same ``cwd`` again gives the same session back."""
        return await self._run(lambda host: host.create_session(session, cwd, workspace, preset))

    async def rename_session(self, session: SessionId, title: str) -> str:
        """Set the title; return it as the host normalised it."""
        return await self._run(lambda host: host.rename_session(session, title))

    async def fork_session(self, session: SessionId, at: int | None = None) -> SessionId:
        """Fork at the ``seq`` of a ``turn/end`` (None: the last completed turn); return the child's id.

        The three host generations cut differently elsewhere (facts HARNESS 6); only a turn's end means the same
        on all of them, so ``at`` must be one. On 0.1.5 the child also takes over a prompt that was queued right
        behind it, and runs it at its first turn.
        """
        return await self._run(lambda host: host.fork_session(session, at))

    async def page(
        self,
        session: SessionId,
        *,
        before: int | None = None,
        through: int | None = None,
        limit: int = 50,
        parent: SessionId | None = None,
    ) -> Page:
        """Read one page of the log; never wakes a cold session. A subagent is read as a child of its ``parent``.

        ``before`` is exclusive. ``through`` is the cursor of the first page (None: find it, at the price of one more
        read on modern hosts). ``limit`` counts appended messages, injected ones included. Body capped at 32 MiB
        after decoding; parsing never holds the loop over 20 ms.
        """
        return await self._run(lambda host: host.page(session, before, through, limit, parent))

    async def projections(self, session: SessionId) -> Projections:
        """Read title, running flag, model and queue; a read, never wakes a cold session.

        A legacy host tells no model here, and its queue only while a follow or :meth:`host_events` is open; 0.1.2 tells
        no queue at all.
        """
        return await self._run(lambda host: host.projections(session))

    async def running(self, session: SessionId) -> bool:
        """Whether the host says the session runs a turn now; a read. Raises SessionNotFound when not listed."""
        return (await self._find(session)).running

    async def _find(self, session: SessionId) -> SessionSummary:
        for summary in await self.sessions():
            if summary.id == session:
                return summary
        raise SessionNotFound("session list: not listed", reason="not-listed")

    async def attachment(self, session: SessionId, attachment: AttachmentId) -> Attachment:
        """Fetch an attachment's bytes."""
        return await self._run(lambda host: host.attachment(session, attachment))

    # -- turns -------------------------------------------------------------------------------------------------------

    async def prompt(
        self,
        session: SessionId,
        parts: Sequence[PromptPart],
        *,
        request: RequestId,
        mode: PromptMode = PromptMode.QUEUE,
    ) -> None:
        """Hand a prompt to the host; sent once, never again.

        TimedOut, Unreachable and HostFault leave open whether it arrived: look for ``request`` in the log before
        anything else.
        """
        await self._run(lambda host: host.prompt(session, parts, request, mode))

    async def cancel(self, session: SessionId) -> None:
        """Stop the running turn; nothing to do when none runs or the session is cold.

        Queued prompts stay parked and run at the next prompt: remove them first.
        """
        try:
            await self._run(lambda host: host.cancel(session))
        except SessionNotFound:
            # Also the host's word for a session that exists and is cold: nothing runs there.
            await self._find(session)

    async def update_queue(self, session: SessionId, item: QueueItemId, action: QueueAction) -> None:
        """Remove or steer a queued prompt."""
        await self._run(lambda host: host.update_queue(session, item, action))

    async def commands(self, session: SessionId) -> tuple[HostCommand, ...]:
        """Read the host's own slash commands. Wakes a cold session on modern hosts."""
        return await self._run(lambda host: host.commands(session))

    async def run_command(self, session: SessionId, line: str) -> CommandOutcome:
        """Run a host command, such as ``/compact``; as a prompt it would be plain text to the model."""
        return await self._run(lambda host: host.run_command(session, line), COMMAND_SECONDS)

    # -- streams -----------------------------------------------------------------------------------------------------

    def follow(self, session: SessionId) -> AbstractAsyncContextManager[AsyncIterator[FollowItem]]:
        """Follow one session: a Snapshot, then everything later. Activates a cold session on modern hosts.

        Entering raises what reading a page would. The iterator raises Unreachable when the link breaks or its items
        are left unread too long: read the page again and follow anew. All streams share one socket of each kind.
        """
        return self._streaming(lambda host: host.follow(session))

    def host_events(self) -> AbstractAsyncContextManager[AsyncIterator[HostEvent]]:
        """Questions, approvals and run states of all sessions; still pending ones come first.

        The iterator raises Unreachable when the link breaks. What was settled while nobody listened is not told:
        after a break, whatever does not come again is no longer pending.
        """
        return self._streaming(lambda host: host.host_events())

    @asynccontextmanager
    async def _streaming(
        self, opened: Callable[[Dialect], AbstractAsyncContextManager[AsyncIterator[T]]]
    ) -> AsyncIterator[AsyncIterator[T]]:
        async with AsyncExitStack() as stack:
            yield await self._run(lambda host: stack.enter_async_context(opened(host)))

    async def answer(self, question: QuestionAsked, answers: Mapping[str, Answer]) -> Receipt:
        """Answer a whole set; keys are question ids.

        Checked here against the options, for not every host checks: INVALID without a call when it does not fit.
        """
        given = complete(question.questions, answers)
        if given is None:
            return Receipt.INVALID
        return await self._run(lambda host: host.answer(question, given))

    async def decline(self, question: QuestionAsked) -> Receipt:
        """Tell the host that the person will not answer; the turn goes on."""
        return await self._run(lambda host: host.decline(question))

    async def decide(self, approval: ApprovalAsked, decision: Decision) -> Receipt:
        """Allow a tool call once, or reject it."""
        return await self._run(lambda host: host.decide(approval, decision))


async def _greet(carrier: Carrier) -> Dialect:
    carrier.forget_login()
    if await detect(carrier) is Generation.LEGACY:
        return LegacyDialect(carrier)
    await log_in(carrier)
    return ModernDialect(carrier)

"""The one interface to an agent host: typed calls over whichever generation answers.

A :class:`HarnessClient` detects the generation at its first call (facts HARNESS 1), logs in where the host asks for
it, logs in once more when a login has gone stale, and maps every failure to :mod:`harness_client.errors`.
It retries nothing that could take effect twice: a prompt is sent once, whatever happens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Self

from harness_client.clock import SYSTEM_CLOCK, Clock
from harness_client.events import Event, StreamReset, TextDelta
from harness_client.types import (
    Answer,
    Attachment,
    AttachmentId,
    CommandOutcome,
    Decision,
    Health,
    HostCommand,
    InteractionId,
    ModelCatalog,
    ModelChoice,
    Preset,
    Projections,
    PromptMode,
    PromptPart,
    Question,
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


@dataclass(frozen=True, slots=True)
class Address:
    """Where a host listens: the line it prints, split into its parts. ``token`` is a secret."""

    base: str
    token: str | None

    @classmethod
    def parse(cls, printed: str, token: str | None = None) -> Address:
        """Split ``http://127.0.0.1:3080/?token=…``; raise ValueError when it is no http(s) address of a host."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"Address({self.base!r})"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a session's log as the host cut it, oldest first, before merging and checks.

    ``through`` is the cursor the page was cut at (modern hosts) and must be handed to the next, older page.
    """

    events: tuple[Event, ...]
    has_more: bool
    through: int | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The first item of a follow: the tail page, then every later event without a gap."""

    page: Page
    cursor: int
    partial: TextDelta | None
    """Text of the step that is streaming right now, when the host tells it."""


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The host wants a person's answers before the turn goes on."""

    id: InteractionId
    session: SessionId
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The host wants a person's decision on one tool call; ``call`` names the ``tool/call`` in the log."""

    id: InteractionId
    session: SessionId
    tool: str
    call: str
    reason: str
    approval: str | None


@dataclass(frozen=True, slots=True)
class InteractionClosed:
    """A question or approval was settled elsewhere, or its turn ended. ``outcome`` is the host's word, if any."""

    id: InteractionId
    session: SessionId | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class RunningChanged:
    """A session began or stopped running."""

    session: SessionId
    running: bool


HostEvent = QuestionAsked | ApprovalAsked | InteractionClosed | RunningChanged
"""What a host pushes for all its sessions; filter by session."""

FollowItem = Snapshot | Event | TextDelta | StreamReset
"""What :meth:`HarnessClient.follow` yields: one Snapshot, then the rest in order."""


class HarnessClient:
    """Typed calls to one host. Use as an async context manager; safe for concurrent calls in one loop."""

    def __init__(self, address: Address, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.address = address
        self.clock = clock

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, *exc: object) -> None:
        raise NotImplementedError

    # -- the host ---------------------------------------------------------------------------------------------------

    async def health(self) -> Health:
        """Find out the generation and log in. Raises any HarnessError but Refused."""
        raise NotImplementedError

    async def models(self, session: SessionId | None = None) -> ModelCatalog:
        """Read the model catalog; a legacy host needs ``session`` for its current choice."""
        raise NotImplementedError

    async def select_model(self, session: SessionId, choice: ModelChoice) -> ModelChoice:
        """Choose the session's model. EVERY host also makes it the default of all its future sessions."""
        raise NotImplementedError

    async def presets(self) -> tuple[Preset, ...]:
        """Read the agent presets."""
        raise NotImplementedError

    async def select_preset(self, session: SessionId, preset: str) -> str:
        """Choose the session's preset (only before its first turn); return the one in force."""
        raise NotImplementedError

    async def workspaces(self) -> WorkspaceList:
        """Read the registered workspaces. Raises Unsupported where the host has none."""
        raise NotImplementedError

    async def create_workspace(self, path: str) -> Workspace:
        """Register a folder that exists: checked here, for some hosts would make it (facts HARNESS 4.3)."""
        raise NotImplementedError

    # -- sessions ---------------------------------------------------------------------------------------------------

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """Read the session list, newest first, subagents included and marked."""
        raise NotImplementedError

    async def create_session(
        self,
        *,
        session: SessionId | None = None,
        cwd: str | None = None,
        workspace: WorkspaceId | None = None,
        preset: str | None = None,
    ) -> SessionId:
        """Create a session. The same ``session`` id with the same ``cwd`` again gives the same session back."""
        raise NotImplementedError

    async def rename_session(self, session: SessionId, title: str) -> str:
        """Set the title; return it as the host normalised it."""
        raise NotImplementedError

    async def fork_session(self, session: SessionId, at: int | None = None) -> SessionId:
        """Fork at the ``seq`` of a ``turn/end`` (None: the last completed turn); return the child's id.

        The three host generations cut differently elsewhere (facts HARNESS 6); only a turn's end means the same
        on all of them, so ``at`` must be one.
        """
        raise NotImplementedError

    async def page(
        self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
    ) -> Page:
        """Read one page of the log; never wakes a cold session.

        ``before`` is exclusive. ``through`` is the cursor of the first page (None: find it, at the price of one more
        read on modern hosts). ``limit`` counts appended messages, injected ones included. Body capped at 32 MiB
        after decoding; parsing never holds the loop over 20 ms.
        """
        raise NotImplementedError

    async def projections(self, session: SessionId) -> Projections:
        """Read title, running flag, model and queue; a read, never wakes a cold session."""
        raise NotImplementedError

    async def running(self, session: SessionId) -> bool:
        """Whether the host says the session runs a turn now; a read. Raises SessionNotFound when not listed."""
        raise NotImplementedError

    async def attachment(self, session: SessionId, attachment: AttachmentId) -> Attachment:
        """Fetch an attachment's bytes."""
        raise NotImplementedError

    # -- turns ------------------------------------------------------------------------------------------------------

    async def prompt(
        self,
        session: SessionId,
        parts: Sequence[PromptPart],
        *,
        request: RequestId,
        mode: PromptMode = PromptMode.QUEUE,
    ) -> None:
        """Hand a prompt to the host; sent once, never again.

        TimedOut and Unreachable leave open whether it arrived: look for ``request`` in the log before anything else.
        """
        raise NotImplementedError

    async def cancel(self, session: SessionId) -> None:
        """Stop the running turn. Queued prompts stay parked and run at the next prompt: remove them first."""
        raise NotImplementedError

    async def update_queue(self, session: SessionId, item: QueueItemId, action: QueueAction) -> None:
        """Remove or steer a queued prompt."""
        raise NotImplementedError

    async def commands(self, session: SessionId) -> tuple[HostCommand, ...]:
        """Read the host's own slash commands. Wakes a cold session on modern hosts."""
        raise NotImplementedError

    async def run_command(self, session: SessionId, line: str) -> CommandOutcome:
        """Run a host command, such as ``/compact``; as a prompt it would be plain text to the model."""
        raise NotImplementedError

    # -- streams ----------------------------------------------------------------------------------------------------

    def follow(self, session: SessionId) -> AbstractAsyncContextManager[AsyncIterator[FollowItem]]:
        """Follow one session: a Snapshot, then everything later. Activates a cold session on modern hosts.

        The iterator raises Unreachable when the link breaks: read the page again and follow anew.
        """
        raise NotImplementedError

    def host_events(self) -> AbstractAsyncContextManager[AsyncIterator[HostEvent]]:
        """Questions, approvals and run states of all sessions; still pending ones come first.

        The iterator raises Unreachable when the link breaks.
        """
        raise NotImplementedError

    async def answer(self, question: QuestionAsked, answers: Mapping[str, Answer]) -> Receipt:
        """Answer a whole set; keys are question ids. Checked here against the options: not every host checks."""
        raise NotImplementedError

    async def decline(self, question: QuestionAsked) -> Receipt:
        """Tell the host that the person will not answer; the turn goes on."""
        raise NotImplementedError

    async def decide(self, approval: ApprovalAsked, decision: Decision) -> Receipt:
        """Allow a tool call once, or reject it."""
        raise NotImplementedError

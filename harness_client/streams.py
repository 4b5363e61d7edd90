"""What reading a host yields: pages of a log, a followed session, the host's own pushes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness_client.events import Event, StreamReset, TextDelta
from harness_client.types import InteractionId, Question, SessionId


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a session's log as the host sent it, identical repeats dropped.

    ``events`` are in the host's order and leave out what is Unknown to us: a page may hold 100,000 of those.
    ``through`` is the cursor the page was cut at (modern hosts) and must be handed to the next, older page.
    ``sources`` maps the ``seq`` of every event, unknown ones included, to its record's JSON text.
    """

    events: tuple[Event, ...]
    has_more: bool
    through: int | None
    sources: Mapping[int, str]

    @property
    def oldest(self) -> int | None:
        """The smallest ``seq``; None for an empty page."""
        return min(self.sources, default=None)

    @property
    def newest(self) -> int | None:
        """The largest ``seq``; None for an empty page."""
        return max(self.sources, default=None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The first item of a follow: the tail page, then every later event without a gap."""

    page: Page
    cursor: int
    """The newest ``seq`` of the log at that moment; -1 for an empty log."""
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
    """The id the log gives this approval; None where the host does not tell it (modern hosts)."""


@dataclass(frozen=True, slots=True)
class InteractionClosed:
    """A question or approval was settled elsewhere, or its turn ended. ``outcome`` is the host's word, if any.

    A legacy host also tells the one who answered; a modern one does not.
    """

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
"""What a follow yields: one Snapshot, then the rest in order."""

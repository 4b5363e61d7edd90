"""Data that crosses the client's border: ids, summaries, catalogs, interactions. No behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

SessionId = NewType("SessionId", str)
"""A session on the host, such as ``session-970e5e9c-…``. Any string is possible; never parse it."""

RequestId = NewType("RequestId", str)
"""Minted by us for one prompt; the host writes it into the log as ``source.rpcId``. Never reuse one:
a repeated id makes a second prompt (facts: HARNESS 12.16)."""

MessageId = NewType("MessageId", str)
"""Id of one message in a session's log; survives migrations, unlike ``seq``."""

WorkspaceId = NewType("WorkspaceId", str)
QueueItemId = NewType("QueueItemId", str)
InteractionId = NewType("InteractionId", str)
AttachmentId = NewType("AttachmentId", str)


class Generation(StrEnum):
    """Which protocol the host speaks; found out, never configured."""

    LEGACY = "legacy"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class Health:
    """What a host says of itself. ``version`` is None where the host does not tell it over HTTP."""

    generation: Generation
    version: str | None


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One row of the session list, newest first. ``updated_at`` in epoch milliseconds."""

    id: SessionId
    title: str | None
    updated_at: int
    running: bool
    cwd: str | None
    parent: SessionId | None
    subagent: bool
    preset: str | None
    as_of_seq: int | None
    """Newest ``seq`` the row knows; exact for attached sessions only, so never a cursor for cold ones."""


@dataclass(frozen=True, slots=True)
class Projections:
    """The state a host keeps beside the log. None where unknown or not offered by this host."""

    as_of_seq: int | None
    title: str | None
    running: bool | None
    model: ModelChoice | None
    queue: tuple[QueuedPrompt, ...] | None


class PromptMode(StrEnum):
    """What a prompt does while a turn runs: wait its own turn, or join the current one."""

    QUEUE = "queue"
    STEER = "steer"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text of a prompt."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image of a prompt. ``media_type`` is one of image/png, image/jpeg, image/webp, image/gif."""

    media_type: str
    data: bytes
    name: str | None = None


PromptPart = TextPart | ImagePart


@dataclass(frozen=True, slots=True)
class QueuedPrompt:
    """A prompt the host has accepted but not begun. ``request`` is None where the host does not tell it."""

    id: QueueItemId
    placement: str
    request: RequestId | None


class QueueAction(StrEnum):
    """What may be done to a queued prompt."""

    REMOVE = "remove"
    STEER = "steer"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A routable model, with an optional reasoning effort id."""

    provider: str
    model: str
    effort: str | None = None


@dataclass(frozen=True, slots=True)
class Effort:
    """One reasoning effort a model offers."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of the model catalog."""

    provider: str
    provider_name: str
    id: str
    name: str
    efforts: tuple[Effort, ...]
    default_effort: str | None


@dataclass(frozen=True, slots=True)
class ModelCatalog:
    """Models in the host's order; ``failures`` names providers that could not be listed."""

    default: ModelChoice | None
    models: tuple[Model, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """An agent preset for sessions."""

    id: str
    name: str
    description: str
    default: bool


@dataclass(frozen=True, slots=True)
class Workspace:
    """A registered folder."""

    id: WorkspaceId
    path: str
    title: str
    sessions: tuple[SessionId, ...]


@dataclass(frozen=True, slots=True)
class WorkspaceList:
    """Registered workspaces and the ids of archived sessions."""

    workspaces: tuple[Workspace, ...]
    archived: frozenset[SessionId]


@dataclass(frozen=True, slots=True)
class HostCommand:
    """A slash command the host itself runs, such as ``compact``; ``name`` has no slash."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """What a host command answered; ``known`` is False when the host has no such command."""

    known: bool
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes of an attachment in a session."""

    media_type: str
    data: bytes
    name: str | None


@dataclass(frozen=True, slots=True)
class QuestionOption:
    """One choice of a question."""

    label: str
    description: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a set; without options it is answered in free text."""

    id: str
    text: str
    header: str | None
    options: tuple[QuestionOption, ...]
    multiple: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question: labels, or free text, not both for a single choice."""

    question: str
    selected: tuple[str, ...] = ()
    custom: str | None = None


class Receipt(StrEnum):
    """What the host said of an answer. Modern hosts give no receipt: confirm from the log."""

    ACCEPTED = "accepted"
    NOT_PENDING = "not-pending"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Decision(StrEnum):
    """The two outcomes a person may give an approval."""

    ALLOW_ONCE = "allowed-once"
    REJECT = "rejected"

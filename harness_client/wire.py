"""What a host's answers look like on the wire, and how they become our types. Both generations share most shapes.

Unknown keys are ignored, wrong types are Malformed. Nothing here is an enum: a decoding error would quote its value.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from harness_client.carrier import decode
from harness_client.errors import Malformed, SessionNotFound
from harness_client.types import (
    Answer,
    Attachment,
    ImagePart,
    ModelChoice,
    PromptPart,
    Question,
    QuestionOption,
    QueuedPrompt,
    QueueItemId,
    RequestId,
    SessionId,
    SessionSummary,
    TextPart,
)


class Wire(msgspec.Struct, rename="camel"):
    """A shape on the wire: camelCase keys, absent ones take the default."""


# -- sessions --------------------------------------------------------------------------------------------------------


class Choice(Wire):
    """A model, chosen."""

    provider: str
    model: str
    reasoning_effort: str | None = None

    def choice(self) -> ModelChoice:
        """Return our type."""
        return ModelChoice(self.provider, self.model, self.reasoning_effort)


class _Source(Wire):
    kind: str | None = None
    rpc_id: str | None = None


class _Message(Wire):
    id: str
    source: _Source | None = None

    def queued(self, placement: str) -> QueuedPrompt:
        source = self.source or _Source()
        request = RequestId(source.rpc_id) if source.kind == "user" and source.rpc_id else None
        return QueuedPrompt(QueueItemId(self.id), placement, request)


class _Inbox(msgspec.Struct, rename="kebab"):
    next_turn: tuple[_Message, ...] = ()
    next_step: tuple[_Message, ...] = ()


class _ModelSelection(Wire):
    last_used: Choice | None = None
    next: Choice | None = None


class _Named(Wire):
    title: str | None = None
    agent_preset: str | None = None


class State(Wire):
    """The part of ``projections.values`` that only :meth:`HarnessClient.projections` reads."""

    title: str | None = None
    model_selection: _ModelSelection | None = None
    inbox: _Inbox | None = None

    def model(self) -> ModelChoice | None:
        """Return the model of the next turn, else of the last one (facts HARNESS 4.3)."""
        chosen = self.model_selection and (self.model_selection.next or self.model_selection.last_used)
        return chosen.choice() if chosen else None

    def queue(self) -> tuple[QueuedPrompt, ...] | None:
        """Return the prompts that wait, in the words legacy hosts use for their places."""
        if self.inbox is None:
            return None
        steering = [
            message.queued("steering" if message.source and message.source.kind == "user" else "context")
            for message in self.inbox.next_step
        ]
        return (*steering, *(message.queued("queued") for message in self.inbox.next_turn))


class Projected(Wire):
    """``projections`` of a list row, or the answer of ``session/projections``."""

    kind: str | None = None
    as_of_seq: int | None = None
    values: object = None


class Row(Wire):
    """One row of the session list."""

    session_id: str
    updated_at: int
    running: bool
    cwd: str | None = None
    parent_session_id: str | None = None
    origin: str | None = None
    agent_preset: str | None = None
    agent_available: bool = False
    projections: Projected | None = None

    def summary(self) -> SessionSummary:
        """Return our type. The preset moved into the projections with 0.2.x."""
        projected = self.projections or Projected()
        named = decode(projected.values or {}, _Named, "session list")
        return SessionSummary(
            id=SessionId(self.session_id),
            title=named.title,
            updated_at=self.updated_at,
            running=self.running,
            cwd=self.cwd,
            parent=SessionId(self.parent_session_id) if self.parent_session_id else None,
            subagent=self.origin == "subagent",
            preset=self.agent_preset or named.agent_preset,
            as_of_seq=projected.as_of_seq,
        )


class Rows(Wire):
    """``session.list`` and ``session/list``."""

    items: tuple[Row, ...]

    def find(self, session: SessionId) -> Row:
        """Return the row of ``session``; raise SessionNotFound."""
        for row in self.items:
            if row.session_id == session:
                return row
        raise SessionNotFound("session list: not listed", reason="not-listed")

    def summaries(self) -> tuple[SessionSummary, ...]:
        """Return our types, newest first."""
        return tuple(sorted((row.summary() for row in self.items), key=lambda each: -each.updated_at))


class Created(Wire):
    """``create`` and ``fork``."""

    session_id: str


class Renamed(Wire):
    """``rename``."""

    title: str


# -- content ---------------------------------------------------------------------------------------------------------


class _AttachmentInfo(Wire):
    media_type: str
    name: str | None = None


class AttachmentData(Wire):
    """``attachment``: ``data`` is base64."""

    attachment: _AttachmentInfo
    data: str

    def bytes(self) -> Attachment:
        """Return our type; raise Malformed when the data is no base64."""
        try:
            data = base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise Malformed("attachment: the data is no base64") from None
        return Attachment(self.attachment.media_type, data, self.attachment.name)


def content(part: PromptPart) -> dict[str, object]:
    """Return one part of a prompt as the host wants it."""
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart(media_type=media_type, data=data, name=name):
            encoded = base64.b64encode(data).decode("ascii")
            image: dict[str, object] = {"type": "image", "mediaType": media_type, "data": encoded}
            return image if name is None else image | {"name": name}


# -- questions -------------------------------------------------------------------------------------------------------


class _Option(Wire):
    label: str
    description: str | None = None


class _Question(Wire):
    id: str
    question: str
    header: str | None = None
    options: tuple[_Option, ...] = ()
    multi_select: bool = False

    def asked(self) -> Question:
        options = tuple(QuestionOption(option.label, option.description) for option in self.options)
        return Question(self.id, self.question, self.header, options, self.multi_select)


class Questions(Wire):
    """The questions of one interaction."""

    questions: tuple[_Question, ...]

    def asked(self) -> tuple[Question, ...]:
        """Return our types."""
        return tuple(question.asked() for question in self.questions)


class QueueItem(Wire):
    """One entry of a legacy ``session/queue`` frame."""

    id: str
    placement: str
    message: _Message

    def queued(self) -> QueuedPrompt:
        """Return our type."""
        return msgspec.structs.replace(self.message, id=self.id).queued(self.placement)


def answer(given: Answer) -> dict[str, object]:
    """Return one answer as the host wants it."""
    said: dict[str, object] = {"id": given.question, "selected": list(given.selected)}
    return said if given.custom is None else said | {"custom": given.custom}

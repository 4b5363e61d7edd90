"""The event log in typed form. Unknown types are kept as :class:`Unknown`, never guessed at.

``seq`` is dense from 0 in a session. Only message events carry a ``surface``: APPEND is conversation, REPLACE a
model-side copy (compaction), NONE means the field is missing. Source: facts HARNESS 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness_client.types import MessageId, RequestId


class Surface(StrEnum):
    """What a message event does to the visible conversation."""

    APPEND = "append"
    REPLACE = "replace"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Text:
    """A text block."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image block; the bytes stay on the host."""


@dataclass(frozen=True, slots=True)
class File:
    """A file block; the bytes and the name stay on the host."""


@dataclass(frozen=True, slots=True)
class ToolCallBlock:
    """A tool call inside an assistant message."""

    call: str
    name: str


@dataclass(frozen=True, slots=True)
class Other:
    """Reasoning and every block kind a person never sees."""

    kind: str


Block = Text | Image | File | ToolCallBlock | Other


@dataclass(frozen=True, slots=True)
class Source:
    """Who said a user message. ``kind`` is ``user`` for a human; ``request`` is the prompt's id where known."""

    kind: str
    request: RequestId | None = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """``user/message``: a human prompt or injected context, told apart by ``source`` (None: missing)."""

    seq: int
    surface: Surface
    id: MessageId | None
    source: Source | None
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """``assistant/message``: what one model call said. ``finish`` is the persisted finish reason, if any."""

    seq: int
    surface: Surface
    id: MessageId | None
    turn: int
    step: int | None
    blocks: tuple[Block, ...]
    interrupted: bool
    finish: str | None


@dataclass(frozen=True, slots=True)
class TurnStart:
    """``turn/start``."""

    seq: int
    turn: int


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """``turn/end``; ``reason`` is the kind: completed, aborted, error, max-tokens, interrupted, blocked, forked."""

    seq: int
    turn: int
    reason: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of streamed answer text (``assistant/chunk`` on old hosts, the assistant stream on newer ones)."""

    turn: int
    step: int
    text: str


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The text streamed for this step so far is void: the attempt failed and is tried again."""

    turn: int
    step: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """``tool/call``; ``arguments`` is JSON text as the model wrote it."""

    seq: int
    turn: int
    call: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ApprovalDecided:
    """``approval/decided``: the log's own word on an approval."""

    seq: int
    approval: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Title:
    """``session/title``; the last one wins."""

    seq: int
    title: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any other event, or one whose inside is of no use to us."""

    seq: int
    type: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """A message or turn event that is malformed inside. It fails a reader only if the reader needs it."""

    seq: int
    type: str
    surface: Surface
    turn: int | None
    human: bool


Event = UserMessage | AssistantMessage | TurnStart | TurnEnd | ToolCall | ApprovalDecided | Title | Unknown | Damaged
"""Everything that has a place in the log."""

"""The event log in typed form. Unknown types are kept as :class:`Unknown`, never guessed at.

``seq`` is dense from 0 in a session. Only message events carry a ``surface``: APPEND is conversation, REPLACE a
model-side copy (compaction), NONE means that the field is missing or says nothing known. Times are epoch
milliseconds. Source: facts HARNESS 5.

:func:`parse_event` is strict about what places an event in the log (``type``, ``seq``), and keeps a message or turn
event that is broken inside as :class:`Damaged`, so that it fails only a reader that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness_client.errors import Malformed
from harness_client.types import MessageId, RequestId, SessionId

HUMAN: Final = "user"
"""The one ``source.kind`` of a message that a person wrote; everything else is injected (facts HARNESS 5.1)."""
MAX_SEQ: Final = 2**53 - 1
"""The largest ``seq``: hosts count in IEEE doubles."""

Wire = Mapping[str, object]
"""A JSON object as it came."""


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
    """Who said a user message. ``kind`` is ``user`` for a human; ``request`` is the prompt's id where known.

    ``sender`` is the session that spoke, for messages between agents.
    """

    kind: str
    request: RequestId | None = None
    sender: SessionId | None = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """``user/message``: a human prompt or injected context, told apart by ``source`` (None: missing)."""

    seq: int
    surface: Surface
    id: MessageId | None
    source: Source | None
    blocks: tuple[Block, ...]
    time: int | None = None


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
    time: int | None = None


@dataclass(frozen=True, slots=True)
class TurnStart:
    """``turn/start``."""

    seq: int
    turn: int
    time: int | None = None


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """``turn/end``; ``reason`` is the kind: completed, aborted, error, max-tokens, interrupted, blocked, forked."""

    seq: int
    turn: int
    reason: str
    time: int | None = None


@dataclass(frozen=True, slots=True)
class ChunkFinish:
    """The ``assistant/chunk`` that ends a model call on hosts with chunks in the log: its persisted finish reason."""

    seq: int
    turn: int
    step: int
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


Event = (
    UserMessage
    | AssistantMessage
    | TurnStart
    | TurnEnd
    | ChunkFinish
    | ToolCall
    | ApprovalDecided
    | Title
    | Unknown
    | Damaged
)
"""Everything that has a place in the log."""


def parse_event(wire: object) -> Event:
    """Turn one event of the wire into its typed form.

    Raises Malformed when it is no object, ``type`` is no string, or ``seq`` is no integer in 0 … 2^53-1.
    """
    event = _object(wire)
    kind, seq = event.get("type"), _number(event.get("seq"))
    if not isinstance(kind, str) or seq is None or seq > MAX_SEQ:
        raise Malformed("an event without a proper type and seq")
    parser = _PARSERS.get(kind)
    return parser(seq, event) if parser else Unknown(seq, kind)


def _user_message(seq: int, event: Wire) -> Event:
    data = _object(event.get("data"))
    surface, source, blocks = _surface(event), _source(data.get("source")), _blocks(data.get("content"))
    if blocks is None:
        human = source is not None and source.kind == HUMAN
        return Damaged(seq, "user/message", surface, turn=None, human=human)
    return UserMessage(seq, surface, _message_id(data), source, blocks, _number(event.get("time")))


def _assistant_message(seq: int, event: Wire) -> Event:
    data = _object(event.get("data"))
    message = _object(data.get("message"))
    surface, turn, blocks = _surface(event), _number(data.get("turn")), _blocks(message.get("content"))
    interrupted = data.get("interrupted", False)
    if turn is None or blocks is None or not isinstance(interrupted, bool):
        return Damaged(seq, "assistant/message", surface, turn, human=False)
    return AssistantMessage(
        seq=seq,
        surface=surface,
        id=_message_id(message),
        turn=turn,
        step=_number(data.get("step")),
        blocks=blocks,
        interrupted=interrupted,
        finish=_finish_of_stream(data.get("stream")),
        time=_number(event.get("time")),
    )


def _assistant_chunk(seq: int, event: Wire) -> Event:
    data = _object(event.get("data"))
    reason = _finish(data.get("chunk"))
    turn, step = (_number(data.get("turn")), _number(data.get("step"))) if reason else (None, None)
    if turn is None or step is None or reason is None:
        return Unknown(seq, "assistant/chunk")
    return ChunkFinish(seq, turn, step, reason)


def _turn_start(seq: int, event: Wire) -> Event:
    turn = _number(_object(event.get("data")).get("turn"))
    if turn is None:
        return Damaged(seq, "turn/start", Surface.NONE, turn=None, human=False)
    return TurnStart(seq, turn, _number(event.get("time")))


def _turn_end(seq: int, event: Wire) -> Event:
    data = _object(event.get("data"))
    turn, reason = _number(data.get("turn")), _kind_of(data.get("reason"))
    if turn is None or reason is None:
        return Damaged(seq, "turn/end", Surface.NONE, turn, human=False)
    return TurnEnd(seq, turn, reason, _number(event.get("time")))


def _tool_call(seq: int, event: Wire) -> Event:
    data = _object(event.get("data"))
    turn = _number(data.get("turn"))
    match data.get("callId"), data.get("name"), data.get("arguments"):
        case str(call), str(name), str(arguments) if turn is not None:
            return ToolCall(seq, turn, call, name, arguments)
        case _:
            return Unknown(seq, "tool/call")


def _approval_decided(seq: int, event: Wire) -> Event:
    data = _object(event.get("data"))
    match data.get("id"), data.get("outcome"):
        case str(approval), str(outcome):
            return ApprovalDecided(seq, approval, outcome)
        case _:
            return Unknown(seq, "approval/decided")


def _title(seq: int, event: Wire) -> Event:
    title = _object(event.get("data")).get("title")
    return Title(seq, title) if isinstance(title, str) else Unknown(seq, "session/title")


_PARSERS: Final[Mapping[str, Callable[[int, Wire], Event]]] = {
    "user/message": _user_message,
    "assistant/message": _assistant_message,
    "assistant/chunk": _assistant_chunk,
    "turn/start": _turn_start,
    "turn/end": _turn_end,
    "tool/call": _tool_call,
    "approval/decided": _approval_decided,
    "session/title": _title,
}


def _surface(event: Wire) -> Surface:
    match event.get("surfaceOp"):
        case "append":
            return Surface.APPEND
        case "replace" | {"op": "replace"}:
            return Surface.REPLACE
        case _:
            return Surface.NONE


def _source(value: object) -> Source | None:
    source = _object(value)
    kind, request, sender = source.get("kind"), source.get("rpcId"), source.get("senderSessionId")
    if not isinstance(kind, str):
        return None
    return Source(
        kind,
        RequestId(request) if isinstance(request, str) else None,
        SessionId(sender) if isinstance(sender, str) else None,
    )


def _blocks(content: object) -> tuple[Block, ...] | None:
    """Read a message's content; None when any of it is malformed."""
    if not isinstance(content, list):
        return None
    blocks = [_block(_object(wire)) for wire in content]
    return None if None in blocks else tuple(block for block in blocks if block is not None)


def _block(wire: Wire) -> Block | None:
    match wire.get("type"):
        case "text":
            text = wire.get("text")
            return Text(text) if isinstance(text, str) else None
        case "image":
            return Image()
        case "file":
            return File()
        case "tool-call":
            call, name = wire.get("id"), wire.get("name")
            return ToolCallBlock(call, name) if isinstance(call, str) and isinstance(name, str) else None
        case str(kind):
            return Other(kind)
        case _:
            return None


def _finish_of_stream(stream: object) -> str | None:
    """Read the finish reason from the packed deltas that newer hosts keep with a message; the last one counts."""
    items = stream if isinstance(stream, list) else []
    return next(filter(None, (_finish(_object(item).get("chunk")) for item in reversed(items))), None)


def _finish(value: object) -> str | None:
    chunk = _object(value)
    return _kind_of(chunk.get("reason")) if chunk.get("type") == "finish" else None


def _kind_of(reason: object) -> str | None:
    """Read a reason: old hosts write a bare string, newer ones an object with a ``kind``."""
    kind = reason if isinstance(reason, str) else _object(reason).get("kind")
    return kind if isinstance(kind, str) else None


def _message_id(message: Wire) -> MessageId | None:
    value = message.get("id")
    return MessageId(value) if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _object(value: object) -> Wire:
    return value if isinstance(value, dict) else _EMPTY


_EMPTY: Final[Wire] = {}

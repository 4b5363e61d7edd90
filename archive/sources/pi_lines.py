r"""Lines of a Pi session file: JSON objects split on ``\n`` alone, torn and glued ones salvaged.

A write that a crash cut short leaves a line without its end, and Pi appends the next record to that same line. What
is whole inside such a line is taken, the rest is lost (facts SESSIONS 1.4, 1.6).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import msgspec

from archive.model import Code, Notice

_SALVAGEABLE = (
    "session",
    "message",
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "session_info",
    "usage",
    "context_edit",
)
"""Only a known record is taken out of a broken line: content blocks inside it look much the same."""
_RECORD = re.compile(rf'\{{\s*"type"\s*:\s*"(?:{"|".join(_SALVAGEABLE)})"')


class Block(msgspec.Struct, frozen=True):
    """A content block, as far as it matters here."""

    type: str
    text: str = ""
    id: str = ""


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """The message of a ``message`` record. ``timestamp`` in epoch milliseconds."""

    role: str
    content: str | tuple[Block, ...] = ""
    stop_reason: str | None = None
    tool_call_id: str | None = None
    timestamp: float | None = None


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """One record, header included. Fields that a record's type does not have are None."""

    type: str
    id: str | None = None
    parent_id: str | None = None
    timestamp: str | None = None
    message: Message | None = None
    name: str | None = None
    version: int | None = None
    cwd: str | None = None
    parent_session: str | None = None
    branched_from: str | None = None
    target_id: str | None = None


class _Link(msgspec.Struct, frozen=True, rename="camel"):
    """What holds the tree together, when the rest of a record is malformed."""

    type: str
    id: str | None = None
    parent_id: str | None = None


def read_records(lines: Iterable[bytes], subject: str, notices: list[Notice]) -> Iterator[tuple[int, Record]]:
    """Yield every record with its line number (from 1), adding a notice to ``notices`` for each broken line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        record = _parse(line, subject, number, notices)
        if record is not None:
            yield number, record
            continue
        salvaged = [salvaged for text in _salvage(line) if (salvaged := _parse(text, subject, number, notices))]
        notices.append(Notice(Code.LINE_SALVAGED if salvaged else Code.LINE_TORN, subject, number))
        for record in salvaged:
            yield number, record


def _parse(line: bytes, subject: str, number: int, notices: list[Notice]) -> Record | None:
    """Parse a whole line; None when it is no JSON object with a type."""
    try:
        return msgspec.json.decode(line, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:  # the second reader takes lone surrogates and broken UTF-8, which the first rightly refuses
        value: object = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    try:
        return msgspec.convert(value, Record)
    except msgspec.ValidationError:
        pass
    try:
        link = msgspec.convert(value, _Link)
    except msgspec.ValidationError:
        return None
    notices.append(Notice(Code.ENTRY_INVALID, subject, number))
    return Record(type="", id=link.id, parent_id=link.parent_id)


def _salvage(line: bytes) -> Iterator[bytes]:
    """Yield the JSON text of every whole record inside a broken line."""
    text = line.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = 0
    while match := _RECORD.search(text, position):
        position = match.start() + 1
        try:
            value, end = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        except RecursionError:
            return  # no record is nested so deeply; each try further in would cost as much again
        if "timestamp" in value:
            yield text[match.start() : end].encode("utf-8", "surrogatepass")
            position = end

"""A Pi session file as moments of its tree: formats 1, 2 and 3 (facts SESSIONS 1.4 to 1.7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from archive.model import Code, EndReason, Notice
from archive.pairs import Act, Human, Moment, Reply, Step, ToolResult
from archive.sources.pi_lines import Block, Message, Record
from archive.text import IMAGE, clean, join
from archive.times import EPOCH, Instant, from_iso, from_millis
from harness_client.types import SessionId

NEWEST_FORMAT = 3

_ENDS = {
    "aborted": EndReason.ABORTED,
    "error": EndReason.ERROR,
    "length": EndReason.LENGTH,
}
_RETRIED = "error"
"""After this Pi may try again by itself, also behind a compaction. What else it tries again, a context edit names."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first record of a session file; it alone says which session this is and where it ran.

    ``parent`` is the path of the parent's file as Pi wrote it.
    """

    session: SessionId
    version: int
    cwd: str
    created_at: Instant
    parent: str | None


def read_header(record: Record) -> Header | None:
    """Read a header; None when the record is none."""
    if record.type != "session" or not record.id:
        return None
    return Header(
        session=SessionId(clean(record.id)),
        version=record.version or 1,
        cwd=record.cwd or "",
        created_at=from_iso(record.timestamp) or EPOCH,
        parent=record.parent_session or record.branched_from,
    )


@dataclass(slots=True)
class Entries:
    """Everything a session's files hold, gathered record by record. Parents come before their children."""

    header: Header
    moments: list[Moment] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    title: str | None = None
    count: int = 0
    last: str | None = None
    _nearest: dict[str, int | None] = field(default_factory=dict)
    """The conversation moment at or above each entry; records that are no conversation stand between moments."""
    _own: dict[str, int] = field(default_factory=dict)

    def take(self, records: Iterable[tuple[int, Record]]) -> None:
        """Take the records that follow the header of one file."""
        before = 0
        for line, record in records:
            glued, before = line == before, line
            if record.type == "session":
                self._note(Code.DUPLICATE_HEADER, line)
            elif self.header.version == 1:
                self._take_entry(line, record, f"v1-{line - 2:06d}{'+' if glued else ''}", self.last)
            elif record.id:
                self._take_entry(line, record, clean(record.id), record.parent_id and clean(record.parent_id))
            else:
                self._note(Code.ENTRY_INVALID, line)

    def _take_entry(self, line: int, record: Record, entry: str, parent: str | None) -> None:
        act = _act(record.message) if record.type == "message" and record.message else None
        if record.type == "session_info":
            self.title = clean(record.name).strip() or None if record.name else None
        if record.type == "context_edit":
            self._allow_retry(record.target_id or "")
        if entry in self._nearest:
            self._take_again(line, entry, act)
            return
        if parent is not None and parent not in self._nearest:
            self._note(Code.PARENT_MISSING, line)
        above = self._nearest.get(parent) if parent is not None else None
        self.count += 1
        self.last = entry
        if act is None:
            self._nearest[entry] = above
            return
        self._nearest[entry] = self._own[entry] = len(self.moments)
        self.moments.append(Moment(entry, self._time(record), above, act))

    def _take_again(self, line: int, entry: str, act: Act | None) -> None:
        """Let the last writing of an entry win; its place in the tree stays the first one."""
        index = self._own.get(entry)
        known = None if index is None else self.moments[index]
        if act == (known.act if known else None):
            return
        self._note(Code.ENTRY_CONFLICT, line)
        if index is not None and known is not None and act is not None:
            self.moments[index] = replace(known, act=act)

    def _allow_retry(self, target: str) -> None:
        """Mark an attempt that Pi took out of the context to try again."""
        index = self._own.get(clean(target))
        known = None if index is None else self.moments[index]
        if index is not None and known is not None and isinstance(known.act, Reply):
            self.moments[index] = replace(known, act=replace(known.act, retryable=known.act.end is not EndReason.STOP))

    def _time(self, record: Record) -> Instant:
        stamp = record.message.timestamp if record.message else None
        before = self.moments[-1].at if self.moments else self.header.created_at
        return from_iso(record.timestamp) or from_millis(stamp) or before

    def _note(self, code: Code, line: int) -> None:
        self.notices.append(Notice(code, self.header.session, line))


def _act(message: Message) -> Act | None:
    match message.role:
        case "user":
            return Human(_text(message.content))
        case "assistant":
            return _answer(message)
        case "toolResult":
            return ToolResult(message.tool_call_id or "")
        case _:
            return None


def _answer(message: Message) -> Act:
    blocks = () if isinstance(message.content, str) else message.content
    text, stop = _text(message.content), message.stop_reason
    calls = frozenset(block.id for block in blocks if block.type == "toolCall")
    if stop == "toolUse" or (calls and stop not in _ENDS):
        return Step(calls)
    if stop == "stop":
        return Reply(text, EndReason.STOP if text.strip() else EndReason.EMPTY)
    return Reply(text, _ENDS.get(stop or "", EndReason.INTERRUPTED), retryable=stop == _RETRIED)


def _text(content: str | tuple[Block, ...]) -> str:
    if isinstance(content, str):
        return clean(content)
    return join(IMAGE if block.type == "image" else block.text for block in content if block.type in _VISIBLE)


_VISIBLE = frozenset({"text", "image"})

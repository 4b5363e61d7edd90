"""The archive's codes in words: what is wrong with a request, why nothing was found, what to know besides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from archive.answers import Kind, Reason, Warned, Why
from archive.model import Code
from archive.problem import BadRequest, Fault
from archive.times import Instant
from commands.cleaning import one_line
from i18n import Key, Words

_FAULTS: Final = {
    Fault.BAD_JSON: Key.ARCHIVE_BAD_JSON,
    Fault.NOT_AN_OBJECT: Key.ARCHIVE_NOT_AN_OBJECT,
    Fault.MISSING: Key.ARCHIVE_MISSING,
    Fault.UNKNOWN_PARAMETER: Key.ARCHIVE_UNKNOWN_PARAMETER,
    Fault.UNKNOWN_ACTION: Key.ARCHIVE_UNKNOWN_ACTION,
    Fault.WRONG_TYPE: Key.ARCHIVE_WRONG_TYPE,
    Fault.TOO_LONG: Key.ARCHIVE_TOO_LONG,
    Fault.OUT_OF_RANGE: Key.ARCHIVE_OUT_OF_RANGE,
    Fault.UNKNOWN_HOST: Key.ARCHIVE_UNKNOWN_HOST,
    Fault.BAD_TIME: Key.ARCHIVE_BAD_TIME,
    Fault.REVERSED_RANGE: Key.ARCHIVE_REVERSED_RANGE,
    Fault.UNKNOWN_ID: Key.ARCHIVE_UNKNOWN_ID,
    Fault.AMBIGUOUS_ID: Key.ARCHIVE_AMBIGUOUS_ID,
    Fault.NO_ARCHIVE: Key.ARCHIVE_NO_ARCHIVE,
    Fault.NO_WORKSPACE: Key.ARCHIVE_NO_WORKSPACE,
    Fault.NO_WRITER: Key.ARCHIVE_NO_WRITER,
}
_REASONS: Final = {
    Why.NO_ARCHIVE: Key.WHY_NO_ARCHIVE,
    Why.UNREADABLE: Key.WHY_UNREADABLE,
    Why.NO_SUCH_HOST: Key.WHY_NONE_OF_HOST,
    Why.NO_SUCH_SESSION: Key.WHY_NONE_OF_SESSION,
    Why.OUT_OF_RANGE: Key.WHY_OUT_OF_RANGE,
    Why.NO_MATCH: Key.WHY_NO_MATCH,
    Why.PAST_THE_END: Key.WHY_PAST_THE_END,
}
_WARNINGS: Final = {
    Code.LINE_TORN: Key.WARNING_LINE_TORN,
    Code.LINE_SALVAGED: Key.WARNING_LINE_SALVAGED,
    Code.DUPLICATE_HEADER: Key.WARNING_DUPLICATE_HEADER,
    Code.ENTRY_CONFLICT: Key.WARNING_ENTRY_CONFLICT,
    Code.ENTRY_INVALID: Key.WARNING_ENTRY_INVALID,
    Code.PARENT_MISSING: Key.WARNING_PARENT_MISSING,
    Code.NO_HEADER: Key.WARNING_NO_HEADER,
    Code.UNKNOWN_FORMAT: Key.WARNING_UNKNOWN_FORMAT,
    Code.UNREADABLE: Key.WARNING_UNREADABLE,
    Code.INCOMPLETE: Key.WARNING_INCOMPLETE,
    Code.SETTINGS_INVALID: Key.WARNING_SETTINGS_INVALID,
    Code.LINEAGE_BROKEN: Key.WARNING_LINEAGE_BROKEN,
    Code.ARCHIVE_DAMAGED: Key.WARNING_ARCHIVE_DAMAGED,
    Code.ARCHIVE_UNKNOWN_VERSION: Key.WARNING_ARCHIVE_UNKNOWN_VERSION,
    Code.ARCHIVE_NOT_SAVED: Key.WARNING_ARCHIVE_NOT_SAVED,
    Code.ARCHIVE_BUSY: Key.WARNING_ARCHIVE_BUSY,
    Code.LEGACY_UNREADABLE: Key.WARNING_LEGACY_UNREADABLE,
    Code.WRITER_MISSING: Key.WARNING_WRITER_MISSING,
    Code.WRITER_UNREACHABLE: Key.WARNING_WRITER_UNREACHABLE,
    Code.WRITER_FAILED: Key.WARNING_WRITER_FAILED,
    Code.WRITER_TIMED_OUT: Key.WARNING_WRITER_TIMED_OUT,
    Code.WRITER_EMPTY: Key.WARNING_WRITER_EMPTY,
}
_KINDS: Final[dict[Kind, Key]] = {
    "session": Key.PBOT_SESSION,
    "pair": Key.PBOT_PAIR,
    "summary": Key.PBOT_DIGEST,
}
_SHOWN: Final = 3
"""Warnings told in full; they stay until what they tell of is mended, and answers are short."""


def fault(error: BadRequest, words: Words) -> str:
    """Return what is wrong with a request; it names the parameter."""
    return words(_FAULTS[error.code], parameter=one_line(error.parameter), **error.values)


def error_json(error: BadRequest, words: Words) -> dict[str, dict[str, str]]:
    """Return a refusal in its shape on the wire (spec ARCHIVE 2.1)."""
    return {"error": {"code": error.code, "parameter": error.parameter, "message": fault(error, words)}}


def reason(why: Reason, words: Words) -> str:
    """Return why nothing was found."""
    told = words(
        _REASONS[why.code],
        hosts=", ".join(why.hosts),
        sessions=why.sessions,
        unreadable=why.unreadable,
        session=one_line(why.session_id or ""),
    )
    if not why.unreadable or why.code is Why.UNREADABLE:
        return told
    return f"{told}\n{words(Key.WHY_SOME_UNREADABLE, unreadable=why.unreadable)}"


def warnings(given: Sequence[Warned], words: Words) -> list[str]:
    """Return the first few warnings, and how many more there are."""
    lines = [words(Key.PBOT_WARNED, warning=warning(each, words)) for each in given[:_SHOWN]]
    more = len(given) - _SHOWN
    return [*lines, words(Key.PBOT_WARNED_MORE, count=more)] if more > 0 else lines


def warning(given: Warned, words: Words) -> str:
    """Return one warning."""
    subject = one_line(given.subject)
    return words(_WARNINGS[given.code], subject=f"{subject}:{given.line}" if given.line else subject)


def kind(name: Kind, words: Words) -> str:
    """Return what a node is."""
    return words(_KINDS[name])


def marks(*, completed: bool, written: bool, shared: bool, words: Words) -> list[str]:
    """Return what is particular about a node."""
    told = [] if completed else [words(Key.PBOT_UNFINISHED)]
    told += [] if written else [words(Key.PBOT_UNWRITTEN)]
    return [*told, words(Key.PBOT_SHARED)] if shared else told


def local(instant: Instant) -> str:
    """Return a time as people here write it, to the minute."""
    return f"{datetime.fromisoformat(instant).astimezone():%Y-%m-%d %H:%M}"

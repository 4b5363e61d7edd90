"""``/new``, ``/sessions`` and ``/session``: which session a chat talks to. Nothing here creates or deletes one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from commands.budget import split
from commands.model import (
    Binding,
    CommandRequest,
    CommandResult,
    Outcome,
    Services,
    StaleBinding,
)
from harness_client.errors import HarnessError
from harness_client.types import SessionId, SessionSummary
from i18n import Key, Words

DEFAULT_LIMIT, MOST = 10, 50
"""Rows of ``/sessions`` without and with ``--limit``."""

DEADLINE_SECONDS = 10.0

_TITLE_CODE_POINTS = 60
_LIMIT = re.compile(r"--limit[\s=]+0*([0-9]+)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,6}")
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


async def new(request: CommandRequest, services: Services) -> CommandResult:
    """Take the chat's binding away; the next ordinary message begins a session, the old one stays as it is."""
    await services.bindings.unbind(request.chat)
    return CommandResult((services.words(Key.NEW_DONE),))


async def sessions(request: CommandRequest, services: Services) -> CommandResult:
    """List the host's sessions, newest first, numbered for ``/session N``."""
    limit = rows_wanted(request.argument) or DEFAULT_LIMIT
    try:
        found = await _listed(services)
        binding = await services.bindings.get(request.chat)
    except (HarnessError, TimeoutError) as error:
        return _failed(error, request, services, Key.SESSIONS_FAILED)
    shown = found[:limit]
    services.shown.remember(request.chat, tuple(row.id for row in shown))
    if not shown:
        return CommandResult((services.words(Key.SESSIONS_NONE),))
    return CommandResult(split(_table(shown, len(found), binding, services)))


async def session(request: CommandRequest, services: Services) -> CommandResult:
    """Bind the chat to a session, named by its id or by its number in the list this chat saw last."""
    words = services.words
    try:
        wanted = _wanted(request, services)
        binding = await services.bindings.get(request.chat)
        rows = {row.id: row for row in await _listed(services, subagents=True)}
        row = _bindable(rows.get(wanted), by_number=wanted != request.argument)
        await services.bindings.bind(request.chat, row.id, expected=binding)
    except _No as no:
        return _refused(words(no.key, **no.values))
    except StaleBinding:
        return _refused(words(Key.SESSION_MOVED))
    except (HarnessError, TimeoutError) as error:
        return _failed(error, request, services, Key.SESSION_FAILED)
    bound = words(Key.SESSION_DONE, title=_title(row, words), folder=_plain(row.cwd or "-"), id=_plain(row.id))
    return CommandResult(split(f"{bound}\n{words(Key.SESSION_TRY_HISTORY)}"))


class _No(Exception):
    """The session cannot be bound; ``key`` says why."""

    def __init__(self, key: Key, **values: str) -> None:
        self.key = key
        self.values = values


def _wanted(request: CommandRequest, services: Services) -> SessionId:
    """Return the id that was asked for; a number counts in the list last shown, whatever the host lists by now."""
    argument = request.argument
    if not _NUMBER.fullmatch(argument):
        return SessionId(argument)
    shown = services.shown.recall(request.chat)
    if not shown:
        raise _No(Key.SESSION_NO_LIST, number=argument)
    if not 1 <= int(argument) <= len(shown):
        raise _No(Key.SESSION_NO_NUMBER, number=argument)
    return shown[int(argument) - 1]


def _bindable(row: SessionSummary | None, *, by_number: bool) -> SessionSummary:
    if row is None:
        raise _No(Key.SESSION_LIST_CHANGED if by_number else Key.SESSION_NOT_FOUND)
    if row.subagent:
        raise _No(Key.SESSION_SUBAGENT)
    return row


async def _listed(services: Services, *, subagents: bool = False) -> list[SessionSummary]:
    async with services.clock.timeout(DEADLINE_SECONDS):
        rows = await services.harness.sessions()
    return [row for row in rows if subagents or not row.subagent]


def rows_wanted(argument: str) -> int | None:
    """Return the number of rows asked for; None for anything but nothing or ``--limit N``."""
    if not argument:
        return DEFAULT_LIMIT
    match = _LIMIT.fullmatch(argument)
    if match is None:
        return None
    digits = match[1]
    return MOST if len(digits) > 2 else min(int(digits), MOST) or None


def is_session_id(text: str) -> bool:
    """Whether ``text`` may be a session id: 1 to 256 characters, no blank, nothing invisible."""
    return 0 < len(text) <= 256 and not any(unicodedata.category(c)[0] in "ZC" for c in text)


def _table(rows: Iterable[SessionSummary], total: int, binding: Binding, services: Services) -> str:
    words = services.words
    lines = [words(Key.SESSIONS_HEADER, total=total)]
    for number, row in enumerate(rows, 1):
        marks = [words(Key.SESSIONS_BOUND)] * (row.id == binding.session) + [words(Key.SESSIONS_RUNNING)] * row.running
        age = _age(services.clock.time() - row.updated_at / 1_000, words)
        lines.append(" · ".join([f"{number}. {_title(row, words)}", age, *marks]))
        lines.append(f"   {_plain(row.id)}")
    return "\n".join([*lines, "", words(Key.SESSIONS_FOOTER)])


def _title(row: SessionSummary, words: Words) -> str:
    title = _plain(row.title or "")
    if not title:
        return words(Key.SESSIONS_UNTITLED)
    return title if len(title) <= _TITLE_CODE_POINTS else f"{title[: _TITLE_CODE_POINTS - 1].rstrip()}…"


def _plain(text: str) -> str:
    """Return ``text`` on one line, without control and format characters."""
    visible = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    return " ".join("".join(c for c in visible if unicodedata.category(c) not in ("Cf", "Cs")).split())


def _age(seconds: float, words: Words) -> str:
    if seconds < _MINUTE:
        return words(Key.AGE_NOW)
    if seconds < _HOUR:
        return words(Key.AGE_MINUTES, count=int(seconds // _MINUTE))
    if seconds < _DAY:
        return words(Key.AGE_HOURS, count=int(seconds // _HOUR))
    return words(Key.AGE_DAYS, count=int(seconds // _DAY))


def _refused(text: str) -> CommandResult:
    return CommandResult((text,), Outcome.REFUSED)


def _failed(error: BaseException, request: CommandRequest, services: Services, key: Key) -> CommandResult:
    reference = services.references.record(error, actor=request.sender, session=None)
    return CommandResult((services.words(key, reference=reference),), Outcome.FAILED, reference)

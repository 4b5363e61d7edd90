"""``/new``, ``/sessions`` and ``/session``: which session a chat talks to. Nothing here creates or deletes one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from commands.answer import No, answering, soon
from commands.cleaning import one_line
from commands.folders import is_folder, same
from commands.lists import MOST, is_number, picked, row
from commands.model import Binding, CommandRequest, CommandResult, Listing, Services, StaleBinding
from harness_client.errors import Unsupported
from harness_client.types import SessionId, SessionSummary
from i18n import Key, Words

DEFAULT_LIMIT: Final = 10
"""Rows of ``/sessions`` without ``--limit``."""

_TITLE_CODE_POINTS = 60
_ASKED = re.compile(r"(?P<place>.*?)(?:(?:^|\s+)--limit[\s=]+0*(?P<limit>[0-9]+))?", re.ASCII | re.DOTALL)
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


async def new(request: CommandRequest, services: Services) -> CommandResult:
    """Take the chat's binding away; the next ordinary message begins a session, the old one stays as it is."""
    await services.bindings.unbind(request.chat)
    return CommandResult((services.words(Key.NEW_DONE),))


@answering(Key.SESSIONS_FAILED)
async def sessions(request: CommandRequest, services: Services) -> str:
    """List the host's sessions, or those of one workspace, newest first, numbered for ``/session N``."""
    asked = parse_asked(request.argument) or Asked()
    folder = picked(asked.place, Listing.WORKSPACES, request, services) or asked.place or None
    found = _listed(await soon(services, services.harness.sessions()), folder)
    shown = found[: asked.limit]
    place = await services.preferences.place(request.chat)
    marks = _Marks(await services.bindings.get(request.chat), folder or place.folder, await _archived(services))
    services.shown.remember(request.chat, Listing.SESSIONS, (each.id for each in shown), scope=folder)
    return _table(shown, len(found), folder, marks, services)


@answering(Key.SESSION_FAILED)
async def session(request: CommandRequest, services: Services) -> str:
    """Bind the chat to a session, named by its id or by its number in the list this chat saw last.

    The workspace of the chat's new sessions stays as it is, whatever that session works in.
    """
    words = services.words
    number = picked(request.argument, Listing.SESSIONS, request, services)
    binding = await services.bindings.get(request.chat)
    place = await services.preferences.place(request.chat)
    every = await soon(services, services.harness.sessions())
    found = next((each for each in every if each.id == (number or request.argument)), None)
    if found is None:
        raise No(Key.SESSION_NOT_FOUND) if number is None else No(Key.LIST_CHANGED, command=Listing.SESSIONS)
    if found.subagent:
        raise No(Key.SESSION_SUBAGENT)
    shown = services.shown.recall(request.chat, Listing.SESSIONS)
    unmoved = tuple(each.id for each in _listed(every, shown.scope)[: len(shown.items)]) == shown.items
    try:
        await services.bindings.bind(request.chat, found.id, expected=binding)
    except StaleBinding:
        raise No(Key.SESSION_MOVED) from None
    lines = [
        words(Key.SESSION_DONE, title=_title(found, words), folder=one_line(found.cwd or "-"), id=one_line(found.id)),
        words(Key.SESSION_ELSEWHERE, folder=one_line(place.folder)) if _is_elsewhere(found, place.folder) else "",
        "" if number is None or unmoved else words(Key.SESSION_RENUMBERED, number=request.argument),
        words(Key.SESSION_TRY_HISTORY),
    ]
    return "\n".join(line for line in lines if line)


def _is_elsewhere(each: SessionSummary, folder: str) -> bool:
    return each.cwd is not None and not same(each.cwd, folder)


def _listed(every: Iterable[SessionSummary], folder: str | None) -> list[SessionSummary]:
    """Return what a person sees of the host's sessions: no subagents, and only those of ``folder`` if one is named."""
    return [
        each
        for each in every
        if not each.subagent and (folder is None or (each.cwd is not None and same(each.cwd, folder)))
    ]


@dataclass(frozen=True, slots=True)
class Asked:
    """What ``/sessions`` is to show. ``place`` is a folder, a number of ``/workspaces``, or nothing."""

    place: str = ""
    limit: int = DEFAULT_LIMIT


def parse_asked(argument: str) -> Asked | None:
    """Read ``[folder or number] [--limit N]``; None for anything else."""
    match = _ASKED.fullmatch(argument)
    place = match["place"] if match else argument
    if match is None or "--limit" in place or not (not place or is_number(place) or is_folder(place)):
        return None
    digits = match["limit"]
    if digits is None:
        return Asked(place)
    limit = MOST if len(digits) > 2 else min(int(digits), MOST)
    return Asked(place, limit) if limit else None


def is_session_id(text: str) -> bool:
    """Whether ``text`` may be a session id: 1 to 256 characters, no blank, nothing invisible."""
    return 0 < len(text) <= 256 and not any(unicodedata.category(c)[0] in "ZC" for c in text)


async def _archived(services: Services) -> frozenset[SessionId]:
    """Return the archived sessions; a host without workspaces archives none."""
    try:
        return (await soon(services, services.harness.workspaces())).archived
    except Unsupported:
        return frozenset()


@dataclass(frozen=True, slots=True)
class _Marks:
    """What is said of a row beside its title: ``here`` needs no naming."""

    binding: Binding
    here: str
    archived: frozenset[SessionId]

    def of(self, each: SessionSummary, services: Services) -> list[str]:
        told = {
            Key.SESSIONS_BOUND: each.id == self.binding.session,
            Key.SESSIONS_RUNNING: each.running,
            Key.SESSIONS_ARCHIVED: each.id in self.archived,
        }
        return [
            _age(services.clock.time() - each.updated_at / 1_000, services.words),
            *(services.words(key) for key, holds in told.items() if holds),
            one_line(each.cwd or "") if _is_elsewhere(each, self.here) else "",
        ]


def _table(rows: Sequence[SessionSummary], total: int, folder: str | None, marks: _Marks, services: Services) -> str:
    words = services.words
    if not rows:
        return words(Key.SESSIONS_NONE) if folder is None else words(Key.SESSIONS_NONE_IN, folder=one_line(folder))
    if folder is None:
        lines = [words(Key.SESSIONS_HEADER, total=total)]
    else:
        lines = [words(Key.SESSIONS_HEADER_IN, folder=one_line(folder), total=total)]
    for number, each in enumerate(rows, 1):
        lines += [row(number, _title(each, words), *marks.of(each, services)), f"   {one_line(each.id)}"]
    return "\n".join([*lines, "", words(Key.SESSIONS_FOOTER)])


def _title(each: SessionSummary, words: Words) -> str:
    title = one_line(each.title or "")
    if not title:
        return words(Key.SESSIONS_UNTITLED)
    return title if len(title) <= _TITLE_CODE_POINTS else f"{title[: _TITLE_CODE_POINTS - 1].rstrip()}…"


def _age(seconds: float, words: Words) -> str:
    if seconds < _MINUTE:
        return words(Key.AGE_NOW)
    if seconds < _HOUR:
        return words(Key.AGE_MINUTES, count=int(seconds // _MINUTE))
    if seconds < _DAY:
        return words(Key.AGE_HOURS, count=int(seconds // _HOUR))
    return words(Key.AGE_DAYS, count=int(seconds // _DAY))

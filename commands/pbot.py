"""``/pbot history``: the archive of past questions and answers, in a private chat with an owner (spec ARCHIVE 1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, Protocol

import msgspec

from archive.answers import Child, Parent, ReadAnswer, Result, SearchAnswer
from archive.problem import BadRequest
from archive.request import Read, Search, parse_json
from commands import archive_words
from commands.budget import LIMITS, prefix, sendable, split, truncate, utf16_length
from commands.cleaning import clean, one_line
from commands.model import ChatKind, CommandRequest, CommandResult, Outcome, Services
from commands.recognise import BLANKS
from i18n import Key, Words

NAME: Final = "pbot"
_HISTORY: Final = "history"
SECONDS: Final = 10.0
_BODY: Final = 1_500
"""UTF-16 units of a node's text in one reply; the rest of the budget is for what is around it."""
_PREVIEW: Final = 48
"""Characters of a neighbour's preview."""
_ABOVE: Final = 8
"""Nodes above that one reply names; more than a few are there only where many branches share a beginning."""


class Past(Protocol):
    """What is asked of :class:`archive.service.HistoryService`."""

    async def search(self, asked: Search) -> SearchAnswer:
        """See the service."""

    async def read(self, asked: Read) -> ReadAnswer:
        """See the service."""


def accepts(argument: str) -> bool:
    """Whether an argument begins with ``history``."""
    return bool(argument) and _words(argument)[0].lower() == _HISTORY


async def pbot(request: CommandRequest, services: Services) -> CommandResult:
    """Search or read. The budget is that of ``/history``; what does not fit is left for the next request."""
    words = services.words
    if request.kind is not ChatKind.DIRECT:
        return CommandResult((words(Key.PBOT_PRIVATE_ONLY),), Outcome.REFUSED)
    if services.past is None:
        return CommandResult((words(Key.PBOT_NONE_HERE),), Outcome.REFUSED)
    try:
        async with services.clock.timeout(SECONDS):
            return CommandResult(await _answer(services.past, _asked(request.argument), words))
    except BadRequest as error:
        return CommandResult(sendable(archive_words.fault(error, words)), Outcome.REFUSED)
    except TimeoutError as error:
        reference = services.references.record(error, actor=request.sender, session=None)
        return CommandResult((words(Key.PBOT_TIMED_OUT, reference=reference),), Outcome.FAILED, reference)


def _words(argument: str) -> list[str]:
    first = next((at for at, character in enumerate(argument) if character in BLANKS), len(argument))
    return [argument[:first], argument[first:].strip(BLANKS)]


def _asked(argument: str) -> Search | Read:
    given = _words(argument)[1]
    return parse_json(given) if given.startswith("{") else parse_json(json.dumps({"action": "search", "query": given}))


async def _answer(past: Past, asked: Search | Read, words: Words) -> tuple[str, ...]:
    if isinstance(asked, Search):
        return _found(await past.search(asked), asked, words)
    limit = min(asked.limit, _BODY)
    return _page(await past.read(Read(asked.id, asked.host, asked.offset, limit, asked.children_offset)), words)


# -- search -----------------------------------------------------------------------------------------------------------


def _found(answer: SearchAnswer, asked: Search, words: Words) -> tuple[str, ...]:
    """Show as many results as fit, and how to ask for the next ones."""
    notes = archive_words.warnings(answer.warnings, words)
    if answer.reason is not None:
        return _cut("\n".join([archive_words.reason(answer.reason, words), *notes]))
    for count in range(len(answer.results), 1, -1):
        reply = _results(answer, asked, count, notes, words)
        if _fits(reply):
            return sendable(reply)
    return _cut(_results(answer, asked, 1, notes, words))


def _results(answer: SearchAnswer, asked: Search, count: int, notes: list[str], words: Words) -> str:
    first, last = asked.offset + 1, asked.offset + count
    query = one_line(prefix(asked.query, _PREVIEW))
    header = words(Key.PBOT_FOUND, query=query, first=first, last=last)
    if not query:
        header = words(Key.PBOT_LISTED, first=first, last=last)
    rows = [_row(first + index, result, words) for index, result in enumerate(answer.results[:count])]
    footer = [words(Key.PBOT_OPEN, command=_read(answer.results[0]))]
    if count < len(answer.results) or answer.next_offset is not None:
        footer.append(words(Key.PBOT_MORE, command=_search(asked, last)))
    return "\n\n".join([header, *rows, "\n".join([*footer, *notes])])


def _row(number: int, result: Result, words: Words) -> str:
    told = archive_words.marks(
        completed=result.completed, written=result.ready, shared=result.shared is True, words=words
    )
    head = [archive_words.kind(result.kind, words), result.host, archive_words.local(result.end), *told]
    return f"{number}. {' · '.join(head)}\n{clean(result.preview)}\n{words(Key.PBOT_ID, id=result.id)}"


def _search(asked: Search, offset: int) -> str:
    given = {
        "action": "search",
        "query": asked.query or None,
        "host": asked.host,
        "sessionId": asked.session,
        "from": asked.since,
        "to": asked.until,
        "offset": offset,
    }
    return _command({name: value for name, value in given.items() if value is not None})


def _read(node: Result | Child | Parent | ReadAnswer, **more: int) -> str:
    return _command({"action": "read", "id": node.id, "host": node.host, **more})


def _command(given: dict[str, object]) -> str:
    return f"/{NAME} {_HISTORY} {msgspec.json.encode(given).decode()}"


# -- read -------------------------------------------------------------------------------------------------------------


def _page(page: ReadAnswer, words: Words) -> tuple[str, ...]:
    told = archive_words.marks(completed=page.completed, written=page.ready, shared=page.shared is True, words=words)
    span = dict.fromkeys(map(archive_words.local, (page.start, page.end)))
    head = " · ".join([archive_words.kind(page.kind, words), page.host, " – ".join(span), *told])
    notes = archive_words.warnings(page.warnings, words)
    sections = [head, clean(page.text), "\n".join(_neighbours(page, words)), "\n".join([*_onward(page, words), *notes])]
    return _cut("\n\n".join(section for section in sections if section))


def _neighbours(page: ReadAnswer, words: Words) -> Iterator[str]:
    for key, nodes in ((Key.PBOT_ABOVE, page.parents[:_ABOVE]), (Key.PBOT_BELOW, page.children)):
        if nodes:
            yield words(key)
            yield from (f"- {one_line(node.preview[:_PREVIEW])} ({node.id})" for node in nodes)


def _onward(page: ReadAnswer, words: Words) -> Iterator[str]:
    if page.next_offset is not None:
        yield words(Key.PBOT_CONTINUE, command=_read(page, offset=page.next_offset))
    if page.children:
        yield words(Key.PBOT_OPEN, command=_read(page.children[0]))
    if page.next_children_offset is not None:
        yield words(Key.PBOT_MORE_BELOW, command=_read(page, childrenOffset=page.next_children_offset))


# -- the budget -------------------------------------------------------------------------------------------------------


def _fits(reply: str) -> bool:
    return utf16_length(reply) <= LIMITS.reply and len(split(reply)) <= LIMITS.segments


def _cut(reply: str) -> tuple[str, ...]:
    return sendable(reply if _fits(reply) else truncate(reply, LIMITS.segment, "…"))

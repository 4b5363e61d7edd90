"""What may be asked of the archive, and the one parser of it (spec ARCHIVE 2).

Every face hands over a JSON object; which names, types and ranges it may have is said here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from archive.model import Host, NodeId
from archive.problem import BadRequest, Fault
from archive.text import clean
from archive.times import Instant, range_end, range_start
from harness_client.types import SessionId

LONGEST_QUERY: Final = 4_000
"""Characters of a query, and of an id."""
MOST_RESULTS: Final = 50
MOST_UNITS: Final = 24_000
_ANY_OFFSET: Final = 2**53
"""More than any body or list has; the largest number every JSON reader keeps."""

T = TypeVar("T")


class Action(StrEnum):
    """What a chat or an agent may ask for."""

    SEARCH = "search"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Search:
    """Find ``query``, contiguous text, in questions, answers and finished summaries; blank: list the sessions.

    ``host`` and ``session`` narrow it, ``since`` and ``until`` to what intersects that time, both inclusive.
    """

    query: str = ""
    host: Host | None = None
    session: SessionId | None = None
    since: Instant | None = None
    until: Instant | None = None
    offset: int = 0
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Read:
    """Read one node. ``offset`` and ``limit`` count UTF-16 units of its body, ``children_offset`` its children."""

    id: NodeId
    host: Host | None = None
    offset: int = 0
    limit: int = 12_000
    children_offset: int = 0


def parse_json(text: str) -> Search | Read:
    """Read a request as JSON text. Raises BadRequest."""
    try:
        given: object = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors; half a surrogate pair is another
        raise BadRequest(Fault.BAD_JSON, "request") from None
    return parse(given)


def parse(given: object) -> Search | Read:
    """Read a request with its ``action``. Raises BadRequest."""
    fields = _fields(given)
    action = fields.pop("action", None)
    if action is None:
        raise BadRequest(Fault.MISSING, "action")
    if action == Action.SEARCH:
        return parse_search(fields)
    if action == Action.READ:
        return parse_read(fields)
    raise BadRequest(Fault.UNKNOWN_ACTION, "action")


def parse_search(given: object) -> Search:
    """Read the parameters of a search; one that is null counts as absent. Raises BadRequest."""
    fields = _Fields(given)
    search = Search(
        query=fields.text("query") or "",
        host=fields.host(),
        session=_as(SessionId, fields.text("sessionId")),
        since=fields.time("from", range_start),
        until=fields.time("to", range_end),
        offset=fields.number("offset", 0, 0, _ANY_OFFSET),
        limit=fields.number("limit", 20, 1, MOST_RESULTS),
    )
    fields.nothing_more()
    if search.since and search.until and search.since > search.until:
        raise BadRequest(Fault.REVERSED_RANGE, "to")
    return search


def parse_read(given: object) -> Read:
    """Read the parameters of a read. Raises BadRequest."""
    fields = _Fields(given)
    name = fields.text("id")
    if not name:
        raise BadRequest(Fault.MISSING, "id")
    read = Read(
        id=NodeId(name),
        host=fields.host(),
        offset=fields.number("offset", 0, 0, _ANY_OFFSET),
        limit=fields.number("limit", 12_000, 1, MOST_UNITS),
        children_offset=fields.number("childrenOffset", 0, 0, _ANY_OFFSET),
    )
    fields.nothing_more()
    return read


def parse_host(text: str | None) -> Host | None:
    """Read the name of a host. Raises BadRequest."""
    try:
        return None if text is None else Host(text)
    except ValueError:
        raise BadRequest(Fault.UNKNOWN_HOST, "host", {"hosts": ", ".join(Host)}) from None


def _as(kind: Callable[[str], T], text: str | None) -> T | None:
    return None if text is None else kind(text)


def _fields(given: object) -> dict[str, object]:
    if not isinstance(given, Mapping):
        raise BadRequest(Fault.NOT_AN_OBJECT, "request")
    return {str(name): value for name, value in given.items() if value is not None}


class _Fields:
    """The parameters not read yet."""

    def __init__(self, given: object) -> None:
        self._left = _fields(given)

    def text(self, name: str) -> str | None:
        value = self._left.pop(name, None)
        if value is None:
            return None
        if not isinstance(value, str):
            raise BadRequest(Fault.WRONG_TYPE, name, {"type": "string"})
        if len(value) > LONGEST_QUERY:
            raise BadRequest(Fault.TOO_LONG, name, {"most": str(LONGEST_QUERY)})
        return clean(value)

    def host(self) -> Host | None:
        return parse_host(self.text("host"))

    def time(self, name: str, convert: Callable[[str], Instant | None]) -> Instant | None:
        text = self.text(name)
        if text is None:
            return None
        moment = convert(text)
        if moment is None:
            raise BadRequest(Fault.BAD_TIME, name)
        return moment

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self._left.pop(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadRequest(Fault.WRONG_TYPE, name, {"type": "integer"})
        if not least <= value <= most:
            raise BadRequest(Fault.OUT_OF_RANGE, name, {"least": str(least), "most": str(most)})
        return value

    def nothing_more(self) -> None:
        for name in self._left:
            raise BadRequest(Fault.UNKNOWN_PARAMETER, clean(name)[:64])

"""Pages of a log: from a body to events (spec HISTORY 3, facts HARNESS 3.1, 4.2 and 4.3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from harness_client.decode import JsonText, off_loop
from harness_client.errors import HarnessError, Malformed, refusal
from harness_client.events import Event, Unknown, Wire, parse_event
from harness_client.streams import Page

_BREATH: Final = 128
"""Records of a snapshot read between two turns of the event loop."""
_DELTAS: Final = {"chunkrow/text-chunks": "text-delta"}
"""What the pieces of a packed run are one by one; only text is of interest."""
_LISTS: Final = ("events", "records")
"""The list of a page: its name on legacy and on modern hosts."""


async def read_page(body: bytes, what: str, *, through: int | None) -> Page:
    """Decode the answer of ``session.history`` or ``session/page``.

    Raises the host's refusal, or Malformed; off the event loop when the body is large.
    """
    return await _off_loop(partial(_answer, what=what, through=through), body, what)


async def read_records(records: Sequence[object], what: str, has_more: bool, *, through: int) -> Page:
    """Read the decoded records of a follow's snapshot, with a breath for the event loop now and then."""
    log = _Records()
    try:
        for count, record in enumerate(records, 1):
            log.add(record, json.dumps(record))
            if count % _BREATH == 0:
                await asyncio.sleep(0)
    except Malformed as error:
        raise Malformed(f"{what}: {error}") from None
    return log.page(has_more, through)


def check_repeat(one: str, other: str) -> None:
    """Raise Malformed unless two records of one ``seq`` hold the same event: 1, 1.0 and true differ."""
    if one != other and _canonical(one) != _canonical(other):
        raise Malformed("two different events with one seq")


def _canonical(record: str) -> str:
    return json.dumps(json.loads(record)["event"], sort_keys=True)


async def _off_loop(read: Callable[[JsonText], Page], body: bytes, what: str) -> Page:
    try:
        return await off_loop(read, body)
    except Malformed as error:
        raise Malformed(f"{what}: {error}") from None


def _answer(text: JsonText, *, what: str, through: int | None) -> Page:
    kind: object = None
    result: Page | HarnessError | None = None
    for key in text.members():
        if key == "result":
            result = _result(text, what, through)
        else:
            value, _ = text.value()
            kind = value if key == "type" else kind
    text.end()
    if kind != "server-response" or result is None:
        raise Malformed("the answer is no server-response")
    if isinstance(result, HarnessError):
        raise result
    return result


def _result(text: JsonText, what: str, through: int | None) -> Page | HarnessError | None:
    ok: object = None
    page: Page | None = None
    error: object = None
    for key in text.members():
        if key == "value" and text.opens("{"):
            page = _value(text, through)
            continue
        value, _ = text.value()
        ok = value if key == "ok" else ok
        error = value if key == "error" else error
    match ok, error:
        case True, _:
            return page
        case False, {"code": str(code)}:
            return refusal(code, what)
        case _:
            return None


def _value(text: JsonText, through: int | None) -> Page:
    log: _Records | None = None
    has_more: object = None
    for key in text.members():
        if key in _LISTS and log is None:
            log = _Records()
            log.read(text)
        else:
            value, _ = text.value()
            has_more = value if key == "hasMore" else has_more
    if log is None or not isinstance(has_more, bool):
        raise Malformed("a page without events or hasMore")
    return log.page(has_more, through)


class _Records:
    """The records of one page as they are read."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._sources: dict[int, str] = {}

    def read(self, text: JsonText) -> None:
        """Read the list under the cursor."""
        for _ in text.items():
            self.add(*text.value())

    def add(self, record: object, source: str) -> None:
        """Take one record; ``source`` is its JSON text."""
        wire = record if isinstance(record, dict) else {}
        match wire.get("type", "event"), wire.get("event"):
            case "event", event:
                self._take(event, source)
            case "chunks", packed:
                self._unpack(packed)
            case _:
                raise Malformed("a record of an unknown kind")

    def page(self, has_more: bool, through: int | None) -> Page:
        return Page(tuple(self._events), has_more, through, self._sources)

    def _take(self, wire: object, source: str) -> None:
        event = parse_event(wire)
        known = self._sources.get(event.seq)
        if known is not None:
            check_repeat(known, source)
            return
        self._sources[event.seq] = source
        if not isinstance(event, Unknown):
            self._events.append(event)

    def _unpack(self, packed: object) -> None:
        """Take a packed run of chunks (0.1.2): one event each, with consecutive seqs."""
        match packed:
            case {
                "type": str(kind),
                "seq": int(first),
                "data": {"texts": list(pieces)} | {"args": list(pieces)} as run,
            } if not isinstance(first, bool):
                of = {"turn": run.get("turn"), "step": run.get("step")}
                for seq, piece in enumerate(pieces, first):
                    chunk = {"type": _DELTAS.get(kind, kind), "text": piece}
                    event: Wire = {"type": "assistant/chunk", "seq": seq, "data": {**of, "chunk": chunk}}
                    self._take(event, json.dumps({"event": event}))
            case _:
                raise Malformed("a packed run without chunks")

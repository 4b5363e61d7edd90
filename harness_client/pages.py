"""Pages of a log: from a body to events."""

from __future__ import annotations

import msgspec

from harness_client.carrier import HostRefused, decode, unwrap
from harness_client.errors import refusal
from harness_client.events import Event, parse_event
from harness_client.streams import Page
from harness_client.wire import Wire


class _Item(Wire):
    """``{"type": "event", "event": …}`` on modern hosts, ``{"event": …, "view"?: …}`` on legacy ones.

    A packed ``chunks`` record (0.1.2) has the shape of one event at its first ``seq`` and stays one.
    """

    event: msgspec.Raw


class _PageValue(Wire):
    has_more: bool
    records: tuple[_Item, ...] = ()
    events: tuple[_Item, ...] = ()


async def read_page(body: bytes, what: str, *, through: int | None) -> Page:
    """Decode the answer of ``session.history`` or ``session/page``; raise HarnessError."""
    try:
        value = decode(unwrap(body, what), _PageValue, what)
    except HostRefused as refused:
        raise refusal(refused.error.code, what) from None
    return Page(tuple(read_event(item.event, what) for item in value.records + value.events), value.has_more, through)


async def read_records(records: msgspec.Raw, what: str, has_more: bool, *, through: int) -> Page:
    """Decode the records of a follow's snapshot."""
    items = decode(records, tuple[_Item, ...], what)
    return Page(tuple(read_event(item.event, what) for item in items), has_more, through)


def read_event(raw: msgspec.Raw, what: str) -> Event:
    """Decode one event."""
    return parse_event(decode(raw, object, what))

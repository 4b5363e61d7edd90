"""What ``/history`` shows of a real session, and the proof that it only read."""

from __future__ import annotations

from harness_client.client import HarnessClient
from harness_client.events import Event
from harness_client.transcript import Role, text_of, visible
from harness_client.types import SessionId


async def whole_log(client: HarnessClient, session: SessionId, limit: int = 50) -> list[list[Event]]:
    """Read all pages, oldest first; they must join without a gap or an overlap."""
    pages = [await client.page(session, limit=limit)]
    while pages[-1].has_more:
        pages.append(await client.page(session, before=pages[-1].oldest, through=pages[0].through, limit=limit))
    pages.reverse()
    seen = [seq for page in pages for seq in sorted(page.sources)]
    assert seen == list(range(len(seen))), "seq is dense from 0 over all pages"
    return [list(page.events) for page in pages]


async def seen_by_a_person(client: HarnessClient, session: SessionId) -> list[tuple[Role, str]]:
    """Return every message of the whole log that a person may see."""
    events = [event for page in await whole_log(client, session) for event in page]
    shown = visible(events, is_command=lambda _text: False, without_marks=lambda blocks: blocks)
    return [(message.role, text_of(message.blocks)) for message in shown]

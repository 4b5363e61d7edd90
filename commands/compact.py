"""``/compact``: let the host sum up what the session's model has seen. Nothing of the log is lost."""

from __future__ import annotations

import re

from commands.answer import No, answering, soon
from commands.model import CommandRequest, Services
from harness_client.errors import SessionBusy, SessionNotFound
from i18n import Key

# The host's own sentences, the same in both generations (seen on 0.1.0-rc.8 and 0.2.1).
_DONE = re.compile(r"Compacted (\d+) history items \(~(\d+) tokens\)")
_NOTHING = re.compile(r"no compactable history", re.IGNORECASE)


@answering(Key.COMPACT_FAILED)
async def compact(request: CommandRequest, services: Services) -> str:
    """Compact the chat's session while nothing runs in it; takes as long as the model does."""
    words = services.words
    session = (await services.bindings.get(request.chat)).session
    if session is None:
        raise No(Key.CHAT_UNBOUND)
    try:
        if await soon(services, services.harness.running(session)):
            raise No(Key.COMPACT_BUSY)
        outcome = await services.harness.run_command(session, "/compact")
    except SessionNotFound:
        raise No(Key.CHAT_SESSION_GONE) from None
    except SessionBusy:
        raise No(Key.COMPACT_BUSY) from None
    if not outcome.known:
        raise No(Key.COMPACT_UNSUPPORTED)
    if _NOTHING.search(outcome.text):
        raise No(Key.COMPACT_NOTHING)
    if not outcome.ok:
        raise No(Key.COMPACT_REFUSED)
    told = _DONE.search(outcome.text)
    return words(Key.COMPACT_DONE, items=told[1], tokens=told[2]) if told else words(Key.COMPACT_OK)

"""What ``/history`` shows of a real session, compared with what the test knows, and the proof that it only read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridges.demo_model import DemoModel
from commands.history import history, label
from commands.model import Binding, ChatKey, ChatKind, CommandRequest, Outcome, SenderId
from harness_client.client import HarnessClient
from harness_client.clock import SYSTEM_CLOCK
from harness_client.events import Event
from harness_client.transcript import Role
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.commands.rig import reading

WORDS = Words(Language.EN)
RUNNING = WORDS(Key.HISTORY_RUNNING)
_ENTRY = re.compile(r"\d\. (User|Assistant)\n(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Bound:
    """A chat that is bound to one session for ever."""

    session: SessionId

    async def get(self, chat: ChatKey) -> Binding:
        return Binding(self.session, 1, 1, 1)

    async def bind(self, chat: ChatKey, session: SessionId, *, expected: Binding) -> Binding:
        raise AssertionError("/history binds nothing")

    async def unbind(self, chat: ChatKey) -> Binding:
        raise AssertionError("/history unbinds nothing")


class NoReferences:
    """Nothing may fail here."""

    def record(self, error: BaseException, *, actor: SenderId, session: SessionId | None) -> str:
        raise AssertionError("/history failed") from error


@dataclass(frozen=True, slots=True)
class Shown:
    """A reply taken apart; ``entries`` are (who, body), oldest first."""

    entries: list[tuple[Role, str]]
    notes: list[str]


async def shown(client: HarnessClient, session: SessionId, count: int) -> Shown:
    """Run ``/history count`` and take its reply apart. Bodies must hold no blank lines."""
    request = CommandRequest(ChatKey("terminal", "test", "chat"), ChatKind.DIRECT, SenderId("me"), str(count))
    result = await history(request, reading(Bound(session), client, WORDS, SYSTEM_CLOCK, NoReferences()))
    assert result.outcome is Outcome.OK
    head, *entries, foot = "".join(result.segments).split("\n\n")
    assert head == WORDS(Key.HISTORY_HEADER, label=label(session), count=len(entries))
    assert foot.endswith(WORDS(Key.HISTORY_FOOTER))
    found = [_ENTRY.fullmatch(entry) for entry in entries]
    roles = {WORDS(Key.HISTORY_USER): Role.USER, WORDS(Key.HISTORY_ASSISTANT): Role.ASSISTANT}
    return Shown([(roles[entry[1]], entry[2]) for entry in found if entry], foot.split("\n")[:-1])


async def compare(
    client: HarnessClient,
    session: SessionId,
    expected: list[tuple[Role, str]],
    model: DemoModel,
    *,
    running: bool = False,
) -> None:
    """Check ``/history 1`` to ``5`` against ``expected``, all that a person should see, and that no model was asked."""
    asked = dict(model.asked)
    for count in range(1, 6):
        reply = await shown(client, session, count)
        assert reply.entries == expected[-count:]
        notes = [RUNNING] if running else []
        if len(expected) < count:
            notes.append(WORDS(Key.HISTORY_ONLY, count=len(expected)))
        assert reply.notes == notes
    assert dict(model.asked) == asked, "reading asked the model"


async def whole_log(client: HarnessClient, session: SessionId, limit: int = 50) -> list[list[Event]]:
    """Read all pages, oldest first; they must join without a gap or an overlap."""
    pages = [await client.page(session, limit=limit)]
    while pages[-1].has_more:
        pages.append(await client.page(session, before=pages[-1].oldest, through=pages[0].through, limit=limit))
    pages.reverse()
    seen = [seq for page in pages for seq in sorted(page.sources)]
    assert seen == list(range(len(seen))), "seq is dense from 0 over all pages"
    return [list(page.events) for page in pages]

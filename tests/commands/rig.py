"""Commands as a bridge runs them, over whatever answers for the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, cast

from commands.batch import Batches
from commands.catalog import COMMANDS, KNOWN, refusal
from commands.model import (
    Admissions,
    AttachmentKind,
    Binding,
    Bindings,
    ChatKey,
    ChatKind,
    CommandRequest,
    CommandResult,
    Outcome,
    Preferences,
    References,
    SenderId,
    Services,
)
from commands.recognise import Recognised, recognise
from harness_client.client import HarnessClient
from harness_client.clock import Clock
from harness_client.errors import HarnessError
from harness_client.pages import read_page
from harness_client.streams import Page
from harness_client.types import SessionId
from i18n import Language, Words
from tests.fakes.clock import FakeClock
from tests.wire_events import page_body

CHAT = ChatKey("terminal", "ops", "me")
SECRET = "SECRET-7f3a"
SESSION = SessionId("session-hist42-and-the-rest")


class Host(Protocol):
    """What ``/history`` reads from."""

    async def page(
        self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
    ) -> Page: ...
    async def running(self, session: SessionId) -> bool: ...


class OneBinding:
    """The bindings of one chat, in memory; a test moves them."""

    def __init__(self, session: SessionId | None) -> None:
        self.binding = Binding(session, version=1, generation=1, incarnation=1)

    async def get(self, chat: ChatKey) -> Binding:
        return self.binding if chat == CHAT else Binding(None, 0, 0, 0)

    async def bind(self, chat: ChatKey, session: SessionId, *, expected: Binding) -> Binding:
        raise AssertionError("/history binds nothing")

    async def unbind(self, chat: ChatKey) -> Binding:
        raise AssertionError("/history unbinds nothing")


class KeptReferences:
    """Keeps what would be logged."""

    def __init__(self) -> None:
        self.recorded: list[tuple[BaseException, SenderId, SessionId | None]] = []

    def record(self, error: BaseException, *, actor: SenderId, session: SessionId | None) -> str:
        self.recorded.append((error, actor, session))
        return f"H-{len(self.recorded):06}"


@dataclass
class Read:
    """One read of a scripted host."""

    before: int | None
    limit: int


@dataclass
class ScriptedHost:
    """Answers reads with pages in turn: bodies, which go through the real parser, or errors to raise."""

    pages: list[bytes | HarnessError]
    runs: bool | HarnessError = False
    reads: list[Read] = field(default_factory=list)
    asked_running: int = 0

    @classmethod
    def of(cls, *pages: tuple[list[dict[str, object]], bool]) -> ScriptedHost:
        return cls([page_body(events, more) for events, more in pages])

    async def page(
        self, session: SessionId, *, before: int | None = None, through: int | None = None, limit: int = 50
    ) -> Page:
        assert session == SESSION
        self.reads.append(Read(before, limit))
        page = self.pages[len(self.reads) - 1]
        if isinstance(page, HarnessError):
            raise page
        return await read_page(page, "session.history", through=None)

    async def running(self, session: SessionId) -> bool:
        self.asked_running += 1
        if isinstance(self.runs, HarnessError):
            raise self.runs
        return self.runs


def reading(bindings: Bindings, harness: HarnessClient, words: Words, clock: Clock, references: References) -> Services:
    """Return all that ``/history`` needs; to touch the rest would be an AttributeError."""
    return Services(
        bindings,
        harness,
        words,
        clock,
        references,
        preferences=cast("Preferences", None),
        admissions=cast("Admissions", None),
        version="0",
        batches=Batches(),
    )


class Rig:
    """One private chat that is bound to SESSION."""

    def __init__(
        self,
        host: Host,
        *,
        language: Language = Language.ZH,
        session: SessionId | None = SESSION,
        clock: Clock | None = None,
    ) -> None:
        self.bindings = OneBinding(session)
        self.references = KeptReferences()
        self.words = Words(language)
        # The command sees the two reads of Host only; anything else would be an AttributeError.
        harness = cast("HarnessClient", host)
        self.services = reading(self.bindings, harness, self.words, clock or FakeClock(), self.references)

    async def ask(
        self, text: str, *, kind: ChatKind = ChatKind.DIRECT, attachments: frozenset[AttachmentKind] = frozenset()
    ) -> CommandResult:
        """Send a message as a person would; it must be a command."""
        recognised = recognise(text, KNOWN)
        assert isinstance(recognised, Recognised)
        notice = refusal(recognised, kind, attachments)
        if notice is not None:
            return CommandResult((self.words(notice),), Outcome.REFUSED)
        request = CommandRequest(CHAT, kind, SenderId("alice"), recognised.argument, attachments)
        return await COMMANDS[recognised.name].run(request, self.services)

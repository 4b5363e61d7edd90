"""One bot of a test: the real intake, state and delivery between a fake host and a channel that remembers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, Unpack

from bridges.app import Parts
from bridges.config import Access, Busy
from bridges.delivery import Delivery
from bridges.intake import Intake, Policy
from bridges.message import (
    Acceptance,
    AnswerStream,
    EventId,
    InboundAttachment,
    InboundMessage,
    Inbox,
    Limits,
    NotSent,
    ReplyTarget,
    SendOutcome,
    Sent,
    SentId,
)
from bridges.split import split_lossless
from bridges.state import BotKey, State
from bridges.state.sqlite import open_state
from commands.model import ChatKey, ChatKind, Outcome, SenderId
from harness_client.client import Address, HarnessClient
from harness_client.clock import SYSTEM_CLOCK, Clock
from i18n import Language
from tests.fakes.harness import FakeHarness, How
from tests.fakes.waiting import eventually as eventually  # noqa: PLC0414 - most tests of a bench wait too

BOT = BotKey("test", "bot")
CHAT = ChatKey("test", "bot", "1")
ALICE = SenderId("alice")
OPEN = Access(direct="open", group="open", owners=frozenset({"owner"}))


class PlainChannel:
    """Can only send."""

    limits = Limits(text=4_000)

    def __init__(self) -> None:
        self.sent: list[tuple[ReplyTarget, str]] = []
        self.outcomes: list[SendOutcome] = []
        """Taken from the front, one for each send; Sent when there is none."""
        self.changed = asyncio.Event()

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.sent]

    async def run(self, inbox: Inbox) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        outcome = self.outcomes.pop(0) if self.outcomes else Sent(SentId(str(len(self.sent))))
        if isinstance(outcome, Sent):
            self.sent.append((target, text))
        self.changed.set()
        return outcome

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def until_sent(self, count: int) -> list[str]:
        await self.until(lambda: len(self.sent) >= count)
        return self.texts


class EditingChannel(PlainChannel):
    """Can edit what it sent, and shows that it types."""

    pace = 0.0
    typing_seconds = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.edits: list[tuple[SentId, str]] = []
        self.edit_outcomes: list[SendOutcome] = []
        self.typed = 0

    async def edit(self, target: ReplyTarget, message: SentId, text: str) -> SendOutcome:
        outcome = self.edit_outcomes.pop(0) if self.edit_outcomes else Sent(message)
        if isinstance(outcome, Sent):
            self.edits.append((message, text))
            self.sent[int(message)] = (target, text)
        self.changed.set()
        return outcome

    async def typing(self, target: ReplyTarget) -> None:
        self.typed += 1


class StreamingChannel(PlainChannel):
    """Has a live carrier."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[Stream] = []

    async def begin(self, target: ReplyTarget) -> AnswerStream:
        self.streams.append(Stream(self))
        return self.streams[-1]


@dataclass(slots=True)
class Stream:
    """One carrier and all it showed."""

    channel: StreamingChannel
    shown: list[str] = field(default_factory=list)
    final: str | None = None
    refuses: bool = False

    async def update(self, text: str) -> None:
        self.shown.append(text)
        self.channel.changed.set()

    async def finish(self, text: str) -> SendOutcome:
        assert self.final is None, "a carrier ends once"
        self.final = text
        self.channel.changed.set()
        return NotSent.REJECTED if self.refuses else Sent(None)


@dataclass(frozen=True, slots=True)
class Setup:
    """How a desk differs from the usual one."""

    busy: Busy = Busy.QUEUE
    group_approvals: bool = False
    language: Language = Language.EN
    clock: Clock = SYSTEM_CLOCK


class Desk:
    """One bot on whatever host answers. Speak with :meth:`say`, look at ``channel``."""

    def __init__(
        self,
        harness: HarnessClient,
        state: State,
        channel: PlainChannel,
        tasks: asyncio.TaskGroup,
        workspace: str,
        setup: Setup | None = None,
    ) -> None:
        setup = setup or Setup()
        self.harness = harness
        self.state = state
        self.channel = channel
        self.access: Access | None = OPEN
        self.outcomes: dict[str, Outcome] = {}
        self._ids = itertools.count(1)
        delivery = Delivery(channel, split_lossless, clock=setup.clock)
        bot = Parts(harness, state, setup.language, workspace, setup.clock).bot(BOT, channel, delivery)
        policy = Policy(lambda: self.access, name="ThisBot", busy=setup.busy, group_approvals=setup.group_approvals)
        self.intake = Intake(bot, policy, tasks, settled=self._settled)

    def _settled(self, event: EventId, outcome: Outcome) -> None:
        self.outcomes[event] = outcome
        self.channel.changed.set()

    async def say(
        self,
        text: str,
        *,
        event: str | None = None,
        chat: ChatKey = CHAT,
        kind: ChatKind = ChatKind.DIRECT,
        sender: SenderId = ALICE,
        addressed: bool = True,
        attachments: tuple[InboundAttachment, ...] = (),
        quoted: bool = False,
    ) -> Acceptance:
        message = InboundMessage(
            EventId(event or f"e{next(self._ids)}"),
            chat,
            kind,
            sender,
            text,
            ReplyTarget(chat, "route"),
            attachments=attachments,
            addressed=addressed,
            quoted=quoted,
        )
        return await self.intake.accept(message)

    async def ask(self, text: str) -> str:
        """Say something and return the next reply."""
        before = len(self.channel.sent)
        await self.say(text)
        return (await self.channel.until_sent(before + 1))[before]

    async def nothing_outstanding(self) -> bool:
        """Whether the state knows of no turn that is not over."""
        return not await self.state.turns.outstanding(BOT)


class Bench(Desk):
    """A desk whose host is a fake: look at ``host`` too."""

    def __init__(
        self,
        host: FakeHarness,
        harness: HarnessClient,
        state: State,
        channel: PlainChannel,
        tasks: asyncio.TaskGroup,
        setup: Setup | None = None,
    ) -> None:
        super().__init__(harness, state, channel, tasks, host.world.cwd, setup)
        self.host = host

    @property
    def prompts(self) -> list[str]:
        """The names of all prompt calls, in order."""
        return [call.name for call in self.host.calls if call.name in ("session.prompt", "session/prompt")]

    async def created(self) -> bool:
        """Whether the host was asked for a session."""
        return self.creates > 0

    @property
    def creates(self) -> int:
        return sum(call.name in ("session.create", "session/create") for call in self.host.calls)

    def fail(self, name: str, **how: Unpack[How]) -> None:
        """Let ``prompt`` or another call of a session go wrong, by its name in either generation."""
        for method in (f"session.{name}", f"session/{name}"):
            self.host.fail(method, **how)


class _Over(Exception):
    """Ends the tasks of a bench."""


D = TypeVar("D", bound=Desk)


@asynccontextmanager
async def bench(
    host: FakeHarness, folder: Path, channel: PlainChannel | None = None, setup: Setup | None = None
) -> AsyncIterator[Bench]:
    """Set up one bot on a fake host."""

    def make(harness: HarnessClient, state: State, tasks: asyncio.TaskGroup) -> Bench:
        return Bench(host, harness, state, channel or PlainChannel(), tasks, setup)

    async with seated(make, Address.parse(host.url), folder) as made:
        yield made


@asynccontextmanager
async def seated(
    make: Callable[[HarnessClient, State, asyncio.TaskGroup], D], host: Address, folder: Path
) -> AsyncIterator[D]:
    """Set up one bot; leaving it is as sudden for its turns as the end of the process.

    Its task group lives in a task of its own: a fixture is set up and torn down by different tasks.
    """
    ready: asyncio.Future[D] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def live() -> None:
        try:
            async with (
                open_state(folder / "state.db") as state,
                HarnessClient(host) as harness,
                asyncio.TaskGroup() as tasks,
            ):
                ready.set_result(make(harness, state, tasks))
                await over.wait()
                raise _Over
        except* _Over:
            pass

    life = asyncio.create_task(live())
    life.add_done_callback(lambda _: ready.cancelled() or ready.done() or ready.cancel())
    try:
        yield await ready
    finally:
        over.set()
        await life

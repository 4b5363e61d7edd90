"""One bot on one simulated platform: the real wiring of ``run`` around the real channel, against a fake host."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from bridges.app import Parts
from bridges.channels import Surroundings
from bridges.config import Access
from bridges.intake import Policy
from bridges.log import Redactor
from bridges.message import Acceptance, EventId, InboundMessage
from bridges.observer import Observer
from bridges.serve import ServedBot
from bridges.state import State
from bridges.state.sqlite import open_state
from bridges.supervise import Health, Link
from commands.model import ChatKey, ChatKind, Outcome
from harness_client.address import Address
from harness_client.client import HarnessClient
from harness_client.clock import Clock, SystemClock
from harness_client.types import SessionId
from i18n import Language, Words
from tests.contract.platform import Platform
from tests.fakes.harness import FakeHarness, Session
from tests.fakes.waiting import eventually


class NotConnected(AssertionError):
    """The bot did not connect; ``health`` says why."""

    def __init__(self, health: Health) -> None:
        super().__init__(health)
        self.health = health


WRITES = frozenset({"session.prompt", "session/prompt", "session.create", "session/create"})


class SwiftClock(SystemClock):
    """Real time for those who measure it; whoever waits waits a twentieth."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds) / 20)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(max(0.0, seconds) / 2)


SWIFT_CLOCK = SwiftClock()


class Seat:
    """A bot on a platform, whatever host it talks to."""

    patience = 10.0
    """Seconds within which a reply must be out."""

    def __init__(self, platform: Platform, state: State, language: Language) -> None:
        self.platform = platform
        self.state = state
        self.language = language
        self.words = Words(language)
        self.access = Access(direct=frozenset({platform.member}), group=frozenset({platform.member}))
        self.redact = Redactor()
        self.bot: ServedBot | None = None
        self.accepted: list[tuple[InboundMessage, Acceptance]] = []
        self.outcomes: dict[EventId, Outcome] = {}

    @property
    def observer(self) -> Observer:
        return Observer(
            accepted=lambda message, acceptance: self.accepted.append((message, acceptance)),
            settled=self.outcomes.__setitem__,
        )

    @property
    def acceptances(self) -> Counter[Acceptance]:
        return Counter(acceptance for _, acceptance in self.accepted)

    @property
    def said(self) -> set[str]:
        """Everything that was said, by whomever."""
        heard = {text for who in (None, self.platform.stranger) for text in self.platform.heard(sender=who)}
        return heard | {message.text for message, _ in self.accepted} | set(self.platform.glimpsed())

    @property
    def chat(self) -> ChatKey:
        """The chat that spoke last."""
        return self.accepted[-1][0].chat

    async def ask(self, text: str, *, chat: ChatKind = ChatKind.DIRECT) -> list[str]:
        """Let the member say something; return what the bot said in the chat by the end of it."""
        before = len(self.platform.heard(chat))
        await self.platform.says(text, chat=chat)
        await self.settled()
        return self.platform.heard(chat)[before:]

    async def settled(self) -> None:
        """Wait until everything that was taken on is over."""
        await eventually(lambda: self.acceptances[Acceptance.ACCEPTED] == len(self.outcomes), self.patience)

    @asynccontextmanager
    async def served(
        self, harness: HarnessClient, workspace: str, clock: Clock = SWIFT_CLOCK
    ) -> AsyncIterator[ServedBot]:
        """Serve the bot as ``run`` does; yields it once it is connected."""
        parts = Parts(harness, self.state, self.language, workspace, clock)
        around = Surroundings(self.state.cursors(self.platform.bot), clock, self.redact.hide)
        channel, policy = self.platform.channel(around), Policy(lambda: self.access)
        bot = ServedBot(parts, self.platform.bot, channel, policy, redact=self.redact, observer=self.observer)
        self.bot, stop = bot, asyncio.Event()
        serving = asyncio.create_task(bot.serve(stop))
        try:
            await eventually(lambda: bot.health.link is Link.UP or bool(bot.health.error))
            if bot.health.link is not Link.UP:
                raise NotConnected(bot.health)
            yield bot
        finally:
            stop.set()
            await serving


class Desk(Seat):
    """What a case of the table sees: a seat before a fake host."""

    def __init__(self, host: FakeHarness, platform: Platform, state: State, language: Language) -> None:
        super().__init__(platform, state, language)
        self.host = host

    @property
    def writes(self) -> list[str]:
        """The calls that made a session or a prompt, in order."""
        return [call.name for call in self.host.calls if call.name in WRITES]

    async def bind(self, *, messages: int = 0, length: int = 0) -> Session:
        """Bind the member's direct chat to a session of so many messages, each of about ``length`` characters."""
        session = self.host.session()
        for number in range(messages // 2):
            turn = session.start()
            session.user(f"question {number} ".ljust(length, "q"))
            session.assistant(f"answer {number} ".ljust(length, "a"), turn=turn)
            session.end(turn=turn)
        await self.ask("/status")
        chats = self.state.chats
        await chats.bind(self.chat, SessionId(session.id), expected=await chats.get(self.chat))
        return session


@asynccontextmanager
async def desk_at(
    host: FakeHarness, platform: Platform, folder: Path, language: Language, redact: Redactor | None = None
) -> AsyncIterator[Desk]:
    """Serve one bot on the platform; yields once it is connected. ``redact`` is the log's, where there is one."""
    address = Address.parse(host.url)
    async with open_state(folder / "state.db") as state, HarnessClient(address) as harness:
        desk = Desk(host, platform, state, language)
        desk.redact = redact or desk.redact
        desk.redact.keep([address.token or ""])
        async with desk.served(harness, host.world.cwd):
            yield desk

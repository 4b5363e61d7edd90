"""A bot that lives for hours in seconds: the contract's seat on a loop whose time passes by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest import mock

from bridges.config import Access
from bridges.message import Acceptance
from bridges.serve import ServedBot
from bridges.state import State
from bridges.state.sqlite import open_state
from bridges.supervise import Link
from commands.model import ChatKind, SenderId
from harness_client.address import Address
from harness_client.client import HarnessClient
from i18n import Key, Language
from tests.contract.desk import Seat
from tests.contract.platform import Row, Simulated, Trait
from tests.contract.rows.discord import DiscordPlatform
from tests.contract.rows.feishu import FeishuPlatform
from tests.fakes.harness import FakeHarness
from tests.fakes.swift import LoopClock, SwiftLoop

CLOCK: Final = LoopClock()

REPLY_SECONDS: Final = 900.0
"""Simulated seconds within which a reply is out, whatever happens: two back-offs, and a dead link that is noticed."""

PULSE: Final = 30.0
HOST_HEARTBEAT: Final = 60.0
"""A real host pings every eight seconds, which would be most of what such an hour has to do."""


class SwiftSeat(Seat):
    """A seat whose hours are short. Member and stranger alike may talk to the bot."""

    def __init__(self, row: Row, platform: Simulated, state: State) -> None:
        super().__init__(platform, state, Language.EN)
        self.simulated = platform
        people = frozenset({platform.member, platform.stranger})
        self.access = Access(direct=people, group=people)
        self.may_come_again = Trait.REDELIVERY not in row.LACKS
        self._history = self.words(Key.HISTORY_HEADER, label="", count=1).partition("|")[0]
        self.chats: list[tuple[ChatKind, SenderId]] = [(ChatKind.DIRECT, platform.member)]
        if Trait.GROUPS not in row.LACKS:
            self.chats.append((ChatKind.GROUP, platform.member))
        if Trait.STRANGERS not in row.LACKS:
            self.chats.append((ChatKind.DIRECT, platform.stranger))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SwiftLoop)
        if isinstance(platform, FeishuPlatform):
            loop.held.append(self._works_elsewhere)
            platform.fake.gateway.pulse = PULSE  # the SDK pings by real time
        if isinstance(platform, DiscordPlatform):
            platform.fake.gateway.pulse = PULSE  # the SDK's own heart is a thread that sleeps

    def _works_elsewhere(self) -> bool:
        """Whether the process of Feishu's SDK, which keeps real time, is at work."""
        assert isinstance(self.simulated, FeishuPlatform)
        link = self.bot.health.link if self.bot else Link.CLOSED
        return link is Link.CONNECTING or (link is Link.UP and bool(self.simulated.fake.gateway.pending))

    async def until(self, condition: Callable[[], bool], seconds: float = REPLY_SECONDS) -> None:
        """Wait until the condition holds, for so many simulated seconds."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(1)

    async def connected(self) -> None:
        """Wait until the link stands."""
        await self.until(lambda: self.bot is not None and self.bot.health.link is Link.UP)

    async def quiet(self) -> None:
        """Wait until everything that was taken on is over."""
        await self.until(lambda: self.acceptances[Acceptance.ACCEPTED] == len(self.outcomes))

    def replies(self) -> list[str]:
        """Return what the bot said in all its chats."""
        return [text for kind, who in self.chats for text in self.platform.heard(kind, who)]

    def count(self, text: str) -> int:
        """Return how many of the bot's messages hold ``text``, replies to ``/history`` aside."""
        return sum(text in reply for reply in self.replies() if not reply.startswith(self._history))

    @property
    def histories(self) -> int:
        """How often the history was shown."""
        return sum(reply.startswith(self._history) for reply in self.replies())

    def forget(self) -> None:
        """Forget what was said so far, here and on the platform."""
        self.simulated.forget()
        self.accepted.clear()
        self.outcomes.clear()


@dataclass(frozen=True, slots=True)
class World:
    """What all bots of one loop share."""

    host: FakeHarness
    harness: HarnessClient
    state: State

    def serve(self, seat: SwiftSeat) -> AbstractAsyncContextManager[ServedBot]:
        """Serve the seat's bot; it is connected inside."""
        return seat.served(self.harness, self.host.world.cwd, CLOCK)


@asynccontextmanager
async def swift_world(folder: Path) -> AsyncIterator[World]:
    """Open a host, and a state in ``folder``, in the loop's time; Discord's SDK keeps it too."""
    loop = asyncio.get_running_loop()
    async with (
        FakeHarness() as host,
        open_state(folder / "state.db", clock=CLOCK) as state,
        HarnessClient(Address.parse(host.url), clock=CLOCK) as harness,
    ):
        host.heartbeat = HOST_HEARTBEAT
        with mock.patch("discord.gateway.time", SimpleNamespace(time=loop.time, perf_counter=loop.time)):
            yield World(host, harness, state)

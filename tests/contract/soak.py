"""Hours of all channels at once, with everything that goes wrong in them, and the measures of what must not grow.

Every question carries a word of its own. It must be answered once; where the rules say that an answer may be lost (a
fault of the platform that leaves open whether it took the message, a host that was killed at work) at most once.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import random
import sqlite3
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bridges.message import EventId
from bridges.state import BotKey
from bridges.state.sqlite import CLAIM_SECONDS, open_state
from commands.model import ChatKind, SenderId
from harness_client.types import SessionId
from tests.contract.platform import Row, Trouble
from tests.contract.swift import SwiftSeat, World, swift_world
from tests.fakes.harness import Step, say
from tests.fakes.swift import LoopClock
from tests.perf.measure import resident

HOUR: Final = 3600.0
STARTS_EVERY: Final = 6
"""Hours between two starts of a bot, and between two deaths of the host."""
KILLED_AT: Final = 1
END: Final = " - and that is all."
SLOWEST: Final = 10.0
"""Simulated seconds the longest answer takes."""
OLD_CLAIMS: Final = 500
"""Messages that were taken on so long before the run that nobody delivers them again."""

AT_ONCE: Final = frozenset({Trouble.CLOSE, Trouble.RESET, Trouble.SILENCE, Trouble.EXPIRED})
"""Troubles that come while an answer is made; the others wait for what comes next."""
SETTLING_SECONDS: Final = 120.0
TROUBLED_SECONDS: Final = 200.0
"""How long a trouble lasts: a dead link is noticed within 60 seconds, and made again after a back-off."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process held at an hour."""

    hour: float
    rss: int
    tasks: int
    descriptors: int
    state: int


@dataclass(slots=True)
class Result:
    """What came of it."""

    questions: int = 0
    answered: int = 0
    cut: int = 0
    """Answers that stand there in part, by the rules."""
    missing: int = 0
    """Answers that never came, by the rules."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    troubles: Counter[Trouble] = field(default_factory=Counter)
    kills: int = 0
    """How often the host was killed at work, and came back."""
    starts: int = 0
    samples: list[Sample] = field(default_factory=list)
    old_claims_left: int = OLD_CLAIMS

    def slope(self, measure: Callable[[Sample], int], warm_up: int) -> float:
        """Return by how much something grew in an hour after ``warm_up`` hours, by least squares."""
        hours = [sample.hour for sample in self.samples[warm_up:]]
        return statistics.linear_regression(hours, [measure(sample) for sample in self.samples[warm_up:]]).slope


@dataclass(slots=True)
class Asked:
    """A question, what went wrong with it, and how often the host had been killed by then."""

    word: str
    trouble: Trouble | None
    kills: int


class Soak:
    """One run over ``rows`` for so many ``hours``. The same ``seed`` brings the same troubles."""

    def __init__(self, rows: Mapping[str, Row], hours: float, *, seed: int = 1) -> None:
        self.result = Result()
        self._rows = rows
        self._hours = hours
        self._chance = random.Random(seed)
        self._numbers = itertools.count(1)

    async def run(self, folder: Path) -> Result:
        """Run to the end."""
        await self._age(folder / "state.db")
        async with swift_world(folder) as world, AsyncExitStack() as stack:
            world.host.model.default = self._slowly
            world.host.model.title = ""
            seats: list[SwiftSeat] = []
            for row in self._rows.values():
                platform = await stack.enter_async_context(row.platform())
                seats.append(SwiftSeat(row, platform, world.state))
            watching = asyncio.create_task(self._watch(world, folder / "state.db"))
            async with asyncio.TaskGroup() as tasks:
                for seat in seats:
                    tasks.create_task(self._life(world, seat))
            watching.cancel()
            await asyncio.wait({watching})
        self.result.old_claims_left = _old_claims(folder / "state.db")
        return self.result

    def _slowly(self, prompt: str) -> tuple[Step]:
        """Answer in two pieces with some seconds between them."""
        rest = asyncio.Event()
        asyncio.get_running_loop().call_later(self._chance.uniform(0, SLOWEST), rest.set)
        return (say(f"You said: {prompt}", rest, END),)

    async def _age(self, path: Path) -> None:
        """Let there be messages that were taken on long ago."""
        async with open_state(path, clock=_LongAgo()) as state:
            claims = (state.claims.claim(BotKey("telegram", "ops"), EventId(f"old-{n}")) for n in range(OLD_CLAIMS))
            await asyncio.gather(*claims)

    # -- one bot -----------------------------------------------------------------------------------------------------

    @property
    def _goes_on(self) -> bool:
        return asyncio.get_running_loop().time() < self._hours * HOUR

    async def _life(self, world: World, seat: SwiftSeat) -> None:
        chats = itertools.cycle(seat.chats)
        while self._goes_on:
            self.result.starts += 1
            async with world.serve(seat):
                for _ in range(STARTS_EVERY):
                    if self._goes_on:
                        await self._hour(seat, chats)

    async def _hour(self, seat: SwiftSeat, chats: Iterator[tuple[ChatKind, SenderId]]) -> None:
        asked: list[Asked] = []
        troubles: list[Trouble | None] = [*Trouble, None, None]
        self._chance.shuffle(troubles)
        for trouble in troubles:
            await asyncio.sleep(
                self._chance.uniform(0, 2) * (HOUR / len(troubles) - TROUBLED_SECONDS - SETTLING_SECONDS)
            )
            word = f"word-{seat.platform.bot.channel}-{next(self._numbers)}."
            asked.append(Asked(word, trouble, self.result.kills))
            await self._ask(seat, word, trouble, *next(chats))
            self._judge(seat, asked[-1])
        await self._look_back(seat)
        for each in asked:
            self._recount(seat, each.word)
        seat.forget()

    async def _ask(self, seat: SwiftSeat, word: str, trouble: Trouble | None, chat: ChatKind, sender: SenderId) -> None:
        """Ask, with a trouble on the way, and wait until it is over and everything that was said is answered."""
        await seat.connected()
        if trouble is not None and trouble not in AT_ONCE:
            await self._meet(seat, trouble)
        if trouble is Trouble.NONSENSE:
            await self._recover(seat)
        await seat.platform.says(word, chat=chat, sender=sender, id=word)
        if trouble in AT_ONCE:
            await asyncio.sleep(self._chance.uniform(0, SLOWEST))
            await self._meet(seat, trouble)
        await self._recover(seat)
        if seat.may_come_again:
            await seat.platform.again(word)
        await seat.quiet()

    async def _meet(self, seat: SwiftSeat, trouble: Trouble) -> None:
        self.result.troubles[trouble] += await seat.simulated.meets(trouble, "a fault")

    async def _recover(self, seat: SwiftSeat) -> None:
        await asyncio.sleep(TROUBLED_SECONDS)
        seat.simulated.heals()
        await asyncio.sleep(SETTLING_SECONDS)  # a link that has been dead may yet be taken for dead
        await seat.connected()

    def _judge(self, seat: SwiftSeat, asked: Asked) -> None:
        """Count an answer: whole, or in part or not at all where the rules allow it."""
        self.result.questions += 1
        begun, whole = seat.count(f"You said: {asked.word}"), seat.count(f"You said: {asked.word}{END}")
        killed = asked.kills != self.result.kills
        if whole:
            self.result.answered += 1
        elif begun and (killed or asked.trouble is Trouble.LOST):
            self.result.cut += 1
        elif killed or asked.trouble is Trouble.BROKEN:
            self.result.missing += 1
        else:
            self.result.lost.append(f"{asked.word} after {asked.trouble}: {seat.replies()[-3:]}")

    def _recount(self, seat: SwiftSeat, word: str) -> None:
        if seat.count(f"You said: {word}{END}") > 1:
            self.result.doubled.append(word)

    async def _look_back(self, seat: SwiftSeat) -> None:
        """Ask for the history, then begin anew in every chat: a session would grow with the hours."""
        before = seat.histories
        await seat.platform.says("/history", id="history")
        await seat.quiet()
        if seat.histories == before:
            self.result.lost.append(f"/history on {seat.platform.bot}: {seat.replies()[-1:]}")
        for chat, sender in seat.chats:
            await seat.platform.says("/new", chat=chat, sender=sender, id="new")
            await seat.quiet()

    # -- all of them -------------------------------------------------------------------------------------------------

    async def _watch(self, world: World, state: Path) -> None:
        """Measure every hour; kill the host now and then, which comes back at once."""
        for hour in range(int(self._hours) + 1):
            await asyncio.sleep(hour * HOUR - asyncio.get_running_loop().time())
            if hour % STARTS_EVERY == KILLED_AT:
                self.result.kills += 1
                await world.host.restart()
            self._forget_sessions(world, {session for _, session in await world.state.chats.bound()})
            self.result.samples.append(_sample(hour, state))

    def _forget_sessions(self, world: World, bound: set[SessionId]) -> None:
        """Let the fake host forget what nobody can ask for any more: its memory is not what is measured."""
        sessions = world.host.world.sessions
        for name in [name for name, session in sessions.items() if SessionId(session.id) not in bound]:
            del sessions[name]
        world.host.calls.clear()


class _LongAgo(LoopClock):
    """A clock that is late by more than a claim lasts."""

    def time(self) -> float:
        return super().time() - CLAIM_SECONDS - HOUR


def _sample(hour: int, state: Path) -> Sample:
    gc.collect()
    files = (state.with_name(state.name + suffix) for suffix in ("", "-wal", "-shm"))
    return Sample(
        hour,
        resident(os.getpid()),
        len(asyncio.all_tasks()),
        len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - only their number
        sum(file.stat().st_size for file in files if file.exists()),
    )


def _old_claims(state: Path) -> int:
    with closing(sqlite3.connect(state)) as db:
        (count,) = db.execute("SELECT count(*) FROM claim WHERE event LIKE 'old-%'").fetchone()
    return int(count)

"""``harness-im run`` on all nine platforms, fakes in another process: start, memory, one reply, many replies."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.perf.host import FIFTY, SHORT
from tests.perf.measure import Figure, median, resident
from tests.perf.platforms import Platforms, platforms
from tests.perf.program import running

CHATS: Final = 100
TIMES: Final = 50
ROUND: Final = 25
"""Replies measured before the rest of all of them, up to two paced segments, is let go by: it is work, too."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one channel should reach. ``pace``: seconds after which a chat may be written to again; it is waited for."""

    title: str
    start: float = 1.0
    reply: float = 15.0
    memory: float = 90.0
    pace: float = 1.2


ROWS: Final = {
    "telegram": Row("Telegram", reply=12.0),
    "slack": Row("Slack"),
    "discord": Row("Discord"),
    "whatsapp": Row("WhatsApp", pace=6.5),
    "weixin": Row("Weixin", pace=1.7),
    "qq": Row("QQ"),
    "feishu": Row("Feishu", start=2.0, memory=150.0),
    "dingtalk": Row("DingTalk"),
    "wecom": Row("WeCom"),
}
WESTERN: Final = ("telegram", "slack", "discord", "whatsapp")


@dataclass(frozen=True, slots=True)
class Run:
    """The program at work. ``moments`` has the seconds from its start to each connection, as each platform saw it."""

    pid: int
    platforms: Platforms
    moments: dict[str, float]

    def held(self) -> int:
        """Return the bytes of memory of the program and all its children."""
        return sum(map(resident, _family(self.pid)))


@asynccontextmanager
async def running_on(harness: str, *names: str) -> AsyncIterator[Run]:
    """Run a bot on each of these platforms; yields once all are connected."""
    async with platforms(*names) as there:
        began = time.monotonic()
        async with running(there.tables, harness) as child:
            moments = await there.connected()
            yield Run(child.pid, there, {name: moment - began for name, moment in moments.items()})


async def figures(harness: str) -> list[Figure]:
    """Run each bot by itself, then together, against the host at ``harness``."""
    alone = [figure for name in ROWS for figure in await _alone(name, harness)]
    return [*alone, *await _together(harness)]


async def _alone(name: str, harness: str) -> list[Figure]:
    row = ROWS[name]
    title, note = row.title, "in turn, fake platform and host included, pace not counted"
    async with running_on(harness, name) as run:
        people = range(CHATS if name == "telegram" else TIMES)
        await run.platforms.ask(name, f"/session {FIFTY}", *people)
        await asyncio.sleep(row.pace)
        replies = []
        for person in people:
            replies.append(await run.platforms.ask(name, "/history 5", person))
            if len(replies) % ROUND == 0:
                await asyncio.sleep(2 * row.pace)
        many = await _at_once(name, run, row.pace) if name == "telegram" else []
        first = "first poll" if name in {"telegram", "weixin"} else "connection"
        return [
            Figure(f"run with one {title} bot, to its {first}", run.moments[name], row.start, "s"),
            Figure(
                f"run with one {title} bot, memory after all of this (RSS)", run.held() / 1e6, row.memory, "MB",
                "with the process of its SDK" if name == "feishu" else "",
            ),
            Figure(f"/history 5 through {title}, median", median(replies) * 1000, row.reply, "ms",
                   f"{len(people)} {note}"),
            Figure(f"/history 5 through {title}, 95th percentile", statistics.quantiles(replies, n=20)[-1] * 1000, 20,
                   "ms"),
            *many,
        ]  # fmt: skip


async def _at_once(name: str, run: Run, pace: float) -> list[Figure]:
    await asyncio.sleep(pace)
    await run.platforms.ask(name, f"/session {SHORT}", *range(CHATS))
    await asyncio.sleep(pace)
    seconds = await run.platforms.ask(name, "/history 5", *range(CHATS))
    note = f"{CHATS / seconds:.0f} replies a second"
    return [Figure(f"a reply when {CHATS} chats ask at once", seconds / CHATS * 1000, 1000 / 150, "ms", note)]


async def _together(harness: str) -> list[Figure]:
    """Connect several platforms at once; memory is read as soon as all are, and once more when each has replied."""
    others = [name for name in ROWS if name != "feishu"]
    found, ready = [], {}
    for title, names, most in (
        ("the four western channels", WESTERN, 90.0),
        ("all channels but Feishu", others, 110.0),
        ("all nine channels", list(ROWS), 260.0),
    ):
        async with running_on(harness, *names) as run:
            held, ready = run.held(), run.moments
            for name in names:
                await run.platforms.ask(name, f"/session {SHORT}", 1)
            note = f"with every child process; {run.held() / 1e6:.0f} MB after a reply on each"
            found.append(Figure(f"run with {title}, connected (RSS)", held / 1e6, most, "MB", note))
    last = max(ready[name] for name in others)
    note = f"Feishu itself after {ready['feishu']:.2f} s"
    return [*found, Figure("run with all nine, to the last connection of the other eight", last, 2.0, "s", note)]


def _family(pid: int) -> Iterable[int]:
    """Return a process and all below it (Linux)."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))

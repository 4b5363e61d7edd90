"""Many bots in one program: what happens to one of them is nobody else's trouble."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridges.app import Parts
from bridges.intake import Policy
from bridges.message import (
    Acceptance,
    ChatKey,
    ChatKind,
    EventId,
    InboundMessage,
    Inbox,
    Menu,
    ReplyTarget,
    SendOutcome,
)
from bridges.observer import Observer
from bridges.serve import DRAIN_SECONDS, RESTART_SECONDS, ServedBot
from bridges.state import BotKey
from bridges.state.sqlite import open_state
from bridges.supervise import Link
from commands.catalog import COMMANDS
from commands.model import Outcome
from harness_client.address import Address
from harness_client.client import HarnessClient
from i18n import Key, Language, Words
from tests.bridges.bench import ALICE, OPEN, PlainChannel, eventually
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness


class LivingChannel(PlainChannel):
    """Connects, hands its inbox to the test, and has a menu."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.key = BotKey("test", name)
        self.inbox: Inbox | None = None
        self.lose = asyncio.Event()
        self.hold: asyncio.Event | None = None
        self.runs = 0
        self.sends = 0
        self.closed = False
        self.menus: list[Mapping[str, Menu]] = []

    async def run(self, inbox: Inbox) -> None:
        self.runs += 1
        self.inbox = inbox
        inbox.connected()
        await self.lose.wait()
        self.lose.clear()
        raise ConnectionError("lost")

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        assert not self.closed, "a channel can send until it is closed"
        self.sends += 1
        if self.hold is not None:
            await self.hold.wait()
        return await super().send(target, text)

    async def publish(self, commands: Mapping[str, Menu]) -> None:
        self.menus.append(commands)

    async def close(self) -> None:
        self.closed = True

    async def say(self, text: str, event: str) -> Acceptance:
        assert self.inbox is not None
        chat = ChatKey("test", self.key.name, "1")
        return await self.inbox.accept(
            InboundMessage(EventId(event), chat, ChatKind.DIRECT, ALICE, text, ReplyTarget(chat, "route"))
        )


class Crash(Exception):
    """A fault of our own."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def parts(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Parts]:
    async with (
        FakeHarness() as host,
        open_state(tmp_path / "state.db") as state,
        HarnessClient(Address.parse(host.url)) as harness,
    ):
        yield Parts(harness, state, Language.EN, host.world.cwd, clock)


async def serve(bots: list[ServedBot], stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as tasks:
        for bot in bots:
            tasks.create_task(bot.serve(stop))


@asynccontextmanager
async def served(parts: Parts, observers: Mapping[LivingChannel, Observer]) -> AsyncIterator[asyncio.Task[None]]:
    """Serve a bot for each channel; yields once all are up. Leaving it stops them, and waits until they ended."""
    bots = [
        ServedBot(parts, channel.key, channel, Policy(lambda: OPEN), redact=str, observer=observer)
        for channel, observer in observers.items()
    ]
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(bots, stop))
    try:
        await eventually(lambda: all(bot.health.link is Link.UP for bot in bots))
        yield serving
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await serving
    assert [bot.health.link for bot in bots] == [Link.CLOSED] * len(bots)


async def test_a_bot_that_fell_begins_anew_and_the_other_never_notices(parts: Parts, clock: FakeClock) -> None:
    bad, good = LivingChannel("bad"), LivingChannel("good")
    falls = [Crash()]

    def fall(event: EventId, outcome: Outcome) -> None:
        if falls:
            raise falls.pop()

    async with served(parts, {bad: Observer(settled=fall), good: Observer()}):
        await bad.say("/help", "1")
        await eventually(lambda: not falls)
        await clock.sleeping()
        await good.say("/help", "1")
        await good.until_sent(1)
        assert (bad.runs, good.runs) == (1, 1)
        bad.closed = False
        await clock.advance(RESTART_SECONDS)
        await eventually(lambda: bad.runs == 2)
        await bad.say("/help", "2")
        await bad.until_sent(2)
        assert good.runs == 1


async def test_a_link_that_is_lost_stops_no_message_between_its_claim_and_its_work(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = LivingChannel("one")
    claimed, go_on, claim = asyncio.Event(), asyncio.Event(), type(parts.state.claims).claim

    async def slow(*args: Any, **options: Any) -> bool:  # handed on as it is
        ours = await claim(*args, **options)
        claimed.set()
        await go_on.wait()
        return ours

    async with served(parts, {channel: Observer()}):
        monkeypatch.setattr(type(parts.state.claims), "claim", slow)
        taking = asyncio.create_task(channel.say("/version", "1"))
        await claimed.wait()
        taking.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await taking
        await channel.until_sent(1)
        assert await channel.say("/version", "1") is Acceptance.DUPLICATE


async def test_what_is_under_way_at_the_end_is_sent_before_the_channel_is_closed(parts: Parts) -> None:
    channel = LivingChannel("one")
    channel.hold = asyncio.Event()
    settled: list[EventId] = []
    async with served(parts, {channel: Observer(settled=lambda event, _: settled.append(event))}):
        await channel.say("/help", "1")
        await eventually(lambda: channel.sends == 1)
        asyncio.get_running_loop().call_later(0.1, channel.hold.set)
    assert len(channel.sent) == 1
    assert settled == ["1"]
    assert channel.closed


async def test_what_does_not_end_is_left_in_time(parts: Parts, clock: FakeClock) -> None:
    channel = LivingChannel("one")
    channel.hold = asyncio.Event()

    async def pass_time() -> None:
        while True:
            await clock.sleeping()
            await clock.advance(DRAIN_SECONDS / 10)
            await asyncio.sleep(0.005)

    began = clock.monotonic()
    async with served(parts, {channel: Observer()}):
        await channel.say("/help", "1")
        await eventually(lambda: channel.sends == 1)
        time = asyncio.create_task(pass_time())
    time.cancel()
    assert channel.sent == []
    assert channel.closed
    assert clock.monotonic() - began < DRAIN_SECONDS * 2


async def test_a_channel_that_cannot_be_told_apart_from_a_dead_one_still_sends_between_two_links(
    parts: Parts, clock: FakeClock
) -> None:
    channel = LivingChannel("one")
    async with served(parts, {channel: Observer()}):
        await channel.say("/help", "1")
        channel.lose.set()
        await channel.until_sent(1)
        await eventually(lambda: not channel.lose.is_set())
        await clock.sleeping()
        assert not channel.closed
        await clock.advance(2)
        await eventually(lambda: channel.runs == 2)
    assert len(channel.menus) == 1, "the menu is published once"


async def test_the_menu_is_that_of_the_table_the_configured_language_first(parts: Parts) -> None:
    channel = LivingChannel("one")
    async with served(parts, {channel: Observer()}):
        await eventually(lambda: bool(channel.menus))
    (menus,) = channel.menus
    assert list(menus) == ["en", "zh"]
    for language in Language:
        shown = {entry.name: entry.summary for entry in menus[language]}
        assert shown["history"] == Words(language)(Key.HISTORY_SUMMARY)
        assert shown.keys() <= COMMANDS.keys()


def test_a_channel_that_is_not_configured_costs_nothing() -> None:
    code = (
        "import sys, bridges.channels, bridges.serve, bridges.cli.running\n"
        "from bridges.text.telegram import TelegramChannel\n"
        "from harness_client.clock import SYSTEM_CLOCK\n"
        "TelegramChannel('ops', token='t', api=None, clock=SYSTEM_CLOCK)\n"
        "heavy = {'telegram', 'httpx', 'slack_bolt', 'slack_sdk', 'discord', 'lark_oapi', 'dingtalk_stream'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert done.stdout.strip() == "[]"

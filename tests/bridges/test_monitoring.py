"""Figures and health: what is told of a running program, and that nobody can be recognised in it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from archive.model import Host
from archive.request import Search
from archive.service import HistoryService, Work
from bridges.config import parse
from bridges.config_error import ConfigError
from bridges.doors import MAX_CONNECTIONS
from bridges.listen import Listen
from bridges.message import Acceptance, ChatKey, ChatKind, EventId, InboundMessage, ReplyTarget
from bridges.metrics import Metrics
from bridges.monitoring import PROBE_SECONDS, TICK_SECONDS, Monitor, monitored
from bridges.secret import Places
from bridges.state import BotKey
from bridges.supervise import Health, Link
from commands.model import Outcome, SenderId
from harness_client.address import Address
from harness_client.client import HarnessClient
from harness_client.errors import HarnessError
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.chat_process import SECONDS
from tests.bridges.test_run import Service, bot, configure, message, service
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import TELLER, FakeTelegram

EN = Words(Language.EN)
NAMES = {
    "bridge_inbound_total": {"channel", "outcome"},
    "bridge_command_seconds": {"command", "channel", "outcome"},
    "bridge_send_seconds": {"channel", "outcome"},
    "bridge_channel_up": {"channel", "bot"},
    "bridge_queue_depth": {"channel"},
    "bridge_loop_stall_seconds": set(),
    "harness_request_seconds": {"method", "code"},
    "harness_up": set(),
    "archive_search_seconds": {"host"},
    "archive_refresh_seconds": {"host"},
}
"""Dashboards and alarms are made of these: a name or label that changes breaks them."""


class LateClock(FakeClock):
    """Lets everybody sleep 0.3 s longer than asked."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds + 0.3)


class Bot:
    """A served bot as figures see it."""

    def __init__(self, name: str, link: Link = Link.UP, waiting: int = 0) -> None:
        self.health = Health(BotKey("test", name), link, 0.0)
        self.waiting = waiting


@asynccontextmanager
async def watched(host: FakeHarness, *bots: Bot, clock: FakeClock) -> AsyncIterator[tuple[Metrics, str]]:
    metrics = Metrics()
    async with (
        HarnessClient(Address.parse(host.url), observe=metrics.observer.requested) as harness,
        monitored(Monitor(metrics, harness, bots, clock), Listen("127.0.0.1:0")) as address,
    ):
        yield metrics, address


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        return response.status, await response.text()


async def is_ready(address: str) -> bool:
    return (await get(f"{address}/readyz"))[0] == 200


async def until(address: str, ready: bool) -> None:
    async with asyncio.timeout(SECONDS):
        while await is_ready(address) is not ready:  # noqa: ASYNC110 - what changes is in another program
            await asyncio.sleep(0.01)  # nothing but asking again would tell


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


def labels(figures: str) -> dict[str, set[str]]:
    """Return every name with its labels, those of a histogram's buckets aside."""
    found: dict[str, set[str]] = {}
    for name, inside in re.findall(r"^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? ", figures, re.MULTILINE):
        found.setdefault(name, set()).update(set(re.findall(r'(\w+)="', inside)) - {"le"})
    return {name: inside for name, inside in found.items() if not name.endswith("_created")}


async def test_names_and_labels_are_those_of_every_dashboard(host: FakeHarness) -> None:
    chat = ChatKey("test", "one", "chat-4711")
    told = InboundMessage(
        EventId("event-4711"), chat, ChatKind.DIRECT, SenderId("sender-4711"), "text-4711", ReplyTarget(chat, "4711")
    )
    async with watched(host, Bot("one", waiting=3), Bot("two", Link.STOPPED), clock=FakeClock()) as (metrics, address):
        observer = metrics.observer
        observer.accepted(told, Acceptance.ACCEPTED)
        observer.settled(told.id, Outcome.OK)
        observer.commanded("test", "history", Outcome.OK, 0.1)
        observer.sent("test", "sent", 0.1)
        observer.archived("search", Host.PI, 0.1)
        observer.archived("refresh", Host.DSH, 0.1)
        await until(address, ready=True)
        _, figures = await get(f"{address}/metrics")
    assert labels(figures) == NAMES
    assert 'bridge_channel_up{bot="one",channel="test"} 1.0' in figures
    assert 'bridge_channel_up{bot="two",channel="test"} 0.0' in figures
    assert 'bridge_queue_depth{channel="test"} 3.0' in figures
    assert 'bridge_inbound_total{channel="test",outcome="accepted"} 1.0' in figures
    assert "4711" not in figures


async def test_ready_means_a_host_that_answers_and_a_bot_that_is_connected(host: FakeHarness) -> None:
    clock, lonely = FakeClock(), Bot("one", Link.WAITING)
    async with watched(host, lonely, clock=clock) as (_, address):
        await eventually(lambda: host.calls != [])
        assert not await is_ready(address)
        lonely.health = Health(lonely.health.bot, Link.UP, 0.0)
        await until(address, ready=True)
        await host.stop()
        await clock.advance(PROBE_SECONDS)
        await until(address, ready=False)
        status, said = await get(f"{address}/readyz")
        assert (status, '"harness": false' in said, '"test/one": "up"' in said) == (503, True, True)
        assert "harness_up 0.0" in (await get(f"{address}/metrics"))[1]
        assert (await get(f"{address}/healthz"))[0] == 200, "a program that lives is not restarted for its host"


async def test_a_late_event_loop_is_measured(host: FakeHarness) -> None:
    clock, metrics = LateClock(), Metrics()
    async with HarnessClient(Address.parse(host.url)) as harness:
        ticking = asyncio.create_task(Monitor(metrics, harness, [], clock).tick())
        await clock.sleeping()
        await clock.advance(TICK_SECONDS + 0.3)
        await eventually(lambda: b"bridge_loop_stall_seconds_count 1.0" in metrics.text())
        ticking.cancel()
    assert b'bridge_loop_stall_seconds_bucket{le="0.25"} 0.0' in metrics.text()
    assert b'bridge_loop_stall_seconds_bucket{le="0.5"} 1.0' in metrics.text()


async def test_requests_are_told_by_method_and_end_without_ids(host: FakeHarness) -> None:
    told: list[tuple[str, str]] = []
    session = SessionId("session-4711")
    async with HarnessClient(Address.parse(host.url), observe=lambda method, end, _: told.append((method, end))) as it:
        await it.health()
        await it.sessions()
        with pytest.raises(HarnessError):
            await it.rename_session(session, "title")
        await host.stop()
        with pytest.raises(HarnessError):
            await it.sessions()
    ends = {end for _, end in told}
    assert {"ok", "session-not-found", "unreachable"} <= ends
    assert all(re.fullmatch(r"[a-zA-Z$./]+", method) for method, _ in told), told


async def test_the_archive_tells_how_long_it_searched(tmp_path: Path) -> None:
    told: list[tuple[Work, Host]] = []
    service = HistoryService(tmp_path, {}, observe=lambda work, host, _: told.append((work, host)))
    await service.search(Search("x"))
    await service.search(Search("x", host=Host.PI))
    assert told == [*(("search", host) for host in Host), ("search", Host.PI)]


def address_of(running: Service) -> str:
    (line,) = [line for line in running.out if line.startswith(EN(Key.RUN_MONITORED, address="").split("/")[0])]
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found is not None
    return found[0]


async def test_the_running_program_tells_its_figures_and_of_no_person(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, '[metrics]\nlisten = "127.0.0.1:0"\n', bot(telegram))
    async with service(tmp_path, config) as running:
        await running.ready()
        await eventually(lambda: len(running.out) == 3, SECONDS)
        address = address_of(running)
        await until(address, ready=True)
        await telegram.deliver(message(telegram, "hello"))
        await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
        await telegram.deliver(message(telegram, "/status"))
        await telegram.until(lambda: len(telegram.texts(TELLER)) == 2)
        _, figures = await get(f"{address}/metrics")
        assert await running.stop() == 0
    assert 'bridge_inbound_total{channel="telegram",outcome="accepted"} 2.0' in figures
    assert 'bridge_command_seconds_count{channel="telegram",command="status",outcome="ok"} 1.0' in figures
    assert 'bridge_send_seconds_count{channel="telegram",outcome="sent"}' in figures
    assert 'harness_request_seconds_count{code="ok",method="session' in figures
    assert "harness_up 1.0" in figures
    sessions = [str(session) for session in host.world.sessions]
    assert sessions, "a session was made"
    for secret in (*sessions, str(TELLER), telegram.token, host.login.token, "hello"):
        assert not re.search(rf'="[^"]*{re.escape(secret)}', figures)


async def test_a_port_that_is_taken_is_told(host: FakeHarness, telegram: FakeTelegram, tmp_path: Path) -> None:
    async with watched(host, clock=FakeClock()) as (_, address):
        taken = address.removeprefix("http://")
        config = configure(tmp_path, host, f'[metrics]\nlisten = "{taken}"\n', bot(telegram))
        async with service(tmp_path, config) as running:
            assert await running.child.wait() == 1
    assert EN(Key.RUN_CANNOT_LISTEN, address=taken, reason="Address already in use") in running.errors
    assert telegram.calls == []


@pytest.mark.parametrize("listen", ["192.0.2.1:9464", "[::]:9464", "example.org:9464"])
def test_figures_are_for_this_machine_only(tmp_path: Path, listen: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(f'[metrics]\nlisten = "{listen}"'.encode(), Places({}, tmp_path))
    assert (refused.value.path, refused.value.key) == ("metrics.listen", Key.CONFIG_NOT_LOOPBACK)


def test_without_figures_their_library_is_not_loaded() -> None:
    program = "import sys, bridges.cli.running; sys.exit('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=SECONDS)  # noqa: S603 - the line above
    assert done.returncode == 0


async def test_whoever_opens_connections_and_says_nothing_gets_only_so_many(host: FakeHarness) -> None:
    async with watched(host, Bot("a"), clock=FakeClock()) as (_, address):
        where = Listen(address.removeprefix("http://"))
        idle = [await asyncio.open_connection(where.host, where.port) for _ in range(MAX_CONNECTIONS)]
        for _, writer in idle:
            writer.write(b"GET /healthz HTTP/1.1\r\nX: ")  # and never goes on
        with pytest.raises(aiohttp.ClientConnectionError):
            await get(f"{address}/healthz")
        for _, writer in idle:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(SECONDS):
            while not await _is_let_in(address):  # noqa: ASYNC110 - the server tells nobody that it has room
                await asyncio.sleep(0.01)


async def _is_let_in(address: str) -> bool:
    try:
        return (await get(f"{address}/healthz"))[0] == 200
    except aiohttp.ClientConnectionError:
        return False


async def test_the_pages_end_though_somebody_holds_a_connection(host: FakeHarness) -> None:
    async with asyncio.timeout(SECONDS):
        async with watched(host, Bot("a"), clock=FakeClock()) as (_, address):
            where = Listen(address.removeprefix("http://"))
            reader, writer = await asyncio.open_connection(where.host, where.port)
            await get(f"{address}/healthz")  # by now the other one was taken, too
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()

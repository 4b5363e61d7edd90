"""Feishu: the process of the vendor's SDK: one for all bots, loaded nowhere else, gone when nobody needs it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from bridges.feishu import link, sdk
from bridges.feishu.channel import DEAF_SECONDS
from bridges.feishu.link import Deaf, LinkEnded
from bridges.feishu.pipe import UNANSWERED, Ended, Event, Open, Report, Why, line
from bridges.message import Stop
from bridges.state import BotKey
from bridges.supervise import Supervisor
from tests.bridges.bench import eventually
from tests.channels.feishu import Line, line_on, platform
from tests.fakes.feishu import FakeFeishu, Fault
from tests.fakes.feishu.frame import CONTROL, DATA, Frame
from tests.guards.sources import ROOT


class Nonsense(msgspec.Struct, tag=True):
    """What neither side says."""


NOWHERE = Open(7, "cli_0123456789abcdef", "feishu-app-secret-fake", "http://127.0.0.1:1")


@pytest.fixture
async def fake() -> AsyncIterator[FakeFeishu]:
    async with platform() as fake:
        yield fake


def child() -> int:
    """Return the id of the only process there is."""
    (process,) = link._PROCESSES.values()
    assert process._child is not None
    return process._child.pid


def runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def python(code: str, *, input: str = "") -> str:  # noqa: A002 - the name that subprocess gives it
    """Run some Python by itself and return what it printed."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, input=input, capture_output=True, text=True, timeout=50, check=False)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- one process -------------------------------------------------------------------------------------------------------


async def test_all_bots_share_one_process_that_ends_with_the_last_of_them(fake: FakeFeishu) -> None:
    async with platform() as elsewhere, line_on(fake) as one:
        first = child()
        async with line_on(elsewhere) as two:
            assert child() == first
            await two.says()
        await one.says("alone again")
        assert child() == first
    await eventually(lambda: not runs(first))
    assert not link._PROCESSES


async def test_a_process_that_dies_takes_links_with_it_and_a_new_one_brings_them_back(fake: FakeFeishu) -> None:
    async with platform() as elsewhere, line_on(fake) as one, line_on(elsewhere) as two:
        os.kill(child(), signal.SIGKILL)
        for line_ in (one, two):
            assert isinstance(await line_.ended(), LinkEnded)
        for line_ in (one, two):
            await line_.start()
            assert (await line_.says("back")).text == "back"


async def test_a_process_that_hangs_is_ended_all_the_same(fake: FakeFeishu) -> None:
    async with line_on(fake) as line_:
        stuck = child()
        os.kill(stuck, signal.SIGSTOP)
        async with asyncio.timeout(5):  # what the supervisor gives a channel
            await line_.stop()
    await eventually(lambda: not runs(stuck))


async def test_a_process_that_hangs_is_left_to_the_bots_that_still_use_it(fake: FakeFeishu) -> None:
    """Some bot is always there, so it would never be ended: the first that hears nothing gets another one."""
    async with platform() as elsewhere, line_on(fake) as one, line_on(elsewhere) as two:
        stuck = child()
        os.kill(stuck, signal.SIGSTOP)
        await one.clock.advance(DEAF_SECONDS)
        assert isinstance(await one.ended(), Deaf)
        await one.start()
        assert child() != stuck
        assert (await one.says("back")).text == "back"
        await two.clock.advance(DEAF_SECONDS)
        assert isinstance(await two.ended(), Deaf)
        await eventually(lambda: not runs(stuck))
        await two.start()
        assert (await two.says("back")).text == "back"


async def test_a_process_nobody_waits_for_any_more_is_ended() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
    waiting = asyncio.create_task(link._reaped(process))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert process.returncode == -signal.SIGKILL


async def test_a_run_that_is_cancelled_while_the_process_starts_leaves_nothing(fake: FakeFeishu) -> None:
    line_ = Line(fake)
    task = asyncio.create_task(line_.channel.run(line_.inbox))
    await eventually(lambda: bool(link._PROCESSES))
    task.cancel()
    await asyncio.wait({task})
    assert not link._PROCESSES
    await line_.channel.close()


async def test_the_process_gets_none_of_the_secrets_of_our_environment(
    fake: FakeFeishu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_TOKEN", "telegram-token-fake")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ssl/cert.pem")
    async with line_on(fake):
        told = Path(f"/proc/{child()}/environ").read_text() + Path(f"/proc/{child()}/cmdline").read_text()
    assert "SSL_CERT_FILE" in told
    assert "TELEGRAM" not in told
    assert "secret" not in told


HOLDER = """
import asyncio, sys
from bridges.feishu import link
from bridges.feishu.rest import Application

async def main():
    async with link.link_of(Application("cli_0123456789abcdef", "feishu-app-secret-fake", sys.argv[1])):
        (process,) = link._PROCESSES.values()
        print(process._child.pid, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("hanging", [False, True])
async def test_the_process_ends_when_we_are_killed(fake: FakeFeishu, *, hanging: bool) -> None:
    if hanging:
        fake.fail("discover", Fault(hang=True))
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, fake.url), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    pid = int(await asyncio.wait_for(holder.stdout.readline(), 20))
    await eventually(lambda: "discover" in fake.calls, 20)
    assert runs(pid)
    holder.kill()
    await holder.wait()
    await eventually(lambda: not runs(pid))


async def test_without_the_sdk_the_bot_stops_and_names_the_extra(
    fake: FakeFeishu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    line_ = Line(fake)
    supervisor = Supervisor(BotKey("feishu", "bot"), line_.channel, line_.inbox, redact=str, clock=line_.clock)
    await supervisor.run()
    assert supervisor.health.why is Stop.NOT_INSTALLED
    assert "harness-im[feishu]" in (supervisor.health.error or "")


# -- what is loaded where ----------------------------------------------------------------------------------------------


async def test_the_sdk_is_not_loaded_here(fake: FakeFeishu) -> None:
    async with line_on(fake) as line_:
        await line_.says()
    assert not [name for name in sys.modules if name.partition(".")[0] == "lark_oapi"]


def test_only_one_file_names_the_sdks_modules() -> None:
    named = [
        path.name
        for path in (ROOT / "bridges").rglob("*.py")
        if "import_module" in path.read_text() and "lark_oapi" in path.read_text()
    ]
    imported = [
        path
        for path in (ROOT / "bridges").rglob("*.py")
        if "import lark_oapi" in path.read_text() or "from lark_oapi" in path.read_text()
    ]
    assert (named, imported) == (["sdk.py"], [])


LOADED = """
import json, sys
from bridges.feishu.sdk import load
module = load()
print(json.dumps([module.Client.__module__, "lark_oapi.api" in sys.modules, len(sys.modules)]))
"""

ELSEWHERE = """
import importlib
found = importlib.import_module
def missing(name):
    importlib.import_module = found
    raise ImportError(name)
importlib.import_module = missing
"""


def test_of_the_sdk_only_the_long_connection_is_loaded() -> None:
    module, everything, count = json.loads(python(LOADED))
    assert (module, everything) == ("lark_oapi.ws.client", False)
    assert count < 1_500


def test_where_its_parts_are_elsewhere_all_of_it_is_loaded() -> None:
    module, everything, _ = json.loads(python(ELSEWHERE + LOADED))
    assert (module, everything) == ("lark_oapi.ws.client", True)


def test_nothing_but_reports_goes_to_standard_output() -> None:
    noisy = "from bridges.feishu import sdk; f = sdk.load; sdk.load = lambda: (print('noise'), f())[1]; sdk.main()"
    orders = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", noisy],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert orders.stdin is not None
    assert orders.stdout is not None
    with orders:
        orders.stdin.write(line(NOWHERE))
        orders.stdin.flush()
        report = msgspec.json.decode(orders.stdout.readline(), type=Report)
        orders.stdin.close()
        assert orders.stdout.read() == b""
    assert isinstance(report, Ended)
    assert report.detail == "ConnectionError"


# -- bounds and frames -------------------------------------------------------------------------------------------------


async def test_events_that_wait_for_us_are_bounded() -> None:
    reports: list[Report] = []
    waiting_link = sdk.Link(NOWHERE, reports.append)
    waiting = [asyncio.create_task(waiting_link.taken(b"{}")) for _ in range(UNANSWERED)]
    await eventually(lambda: len(reports) == UNANSWERED)
    assert await waiting_link.taken(b"{}") is False
    for report in reports:
        assert isinstance(report, Event)
        waiting_link.answer(report.number, taken=True)
    assert await asyncio.gather(*waiting) == [True] * UNANSWERED
    assert len(reports) == UNANSWERED


class Insecure:
    """As much of the SDK as a link needs to learn where to connect, and that is in the clear."""

    class ClientException(Exception):
        code = 0

    class ServerException(Exception):
        code = 0

    class Client:
        def __init__(self, *args: object, **more: object) -> None:
            self._cache = SimpleNamespace(_cron=SimpleNamespace(cancel=lambda: None))

        def _get_conn_url(self) -> str:
            return "ws://127.0.0.1:1/ws?device_id=1&service_id=1"

        async def _connect(self) -> None:
            raise AssertionError("connected in the clear")

        async def _disconnect(self) -> None:
            pass


@pytest.mark.parametrize(
    ("asked", "kept"),
    [(None, 60), (0, 60), (9_999_999, 60), (float("inf"), 60), (30, 30), (0.001, 10), (-1, 10)],
)
async def test_the_pace_of_pings_is_clamped(asked: float | None, kept: float) -> None:
    client = sdk._client(Insecure, sdk.Link(NOWHERE, lambda report: None))
    client._configure(SimpleNamespace(PingInterval=asked))
    assert client._ping_interval == kept


async def test_a_link_in_the_clear_is_refused_where_the_platform_speaks_tls() -> None:
    reports: list[Report] = []
    order = Open(1, "cli_0123456789abcdef", "feishu-app-secret-fake", "https://open.feishu.cn")
    await sdk.Link(order, reports.append).run(Insecure)
    assert reports == [Ended(1, Why.LOST, "ConnectionRefusedError")]


async def test_events_of_a_link_that_ended_wait_for_nothing() -> None:
    ended = sdk.Link(Open(1, "a", "b", "https://open.feishu.cn"), lambda report: None)
    waiting = asyncio.create_task(ended.taken(b"{}"))
    await asyncio.sleep(0)
    await ended.run(Insecure)
    assert await waiting is False


async def test_a_process_that_stumbles_over_an_order_is_replaced(fake: FakeFeishu) -> None:
    async with line_on(fake) as line_:
        (process,) = link._PROCESSES.values()
        pid = child()
        process.tell(Nonsense())  # type: ignore[arg-type]  # the process will not understand it either
        assert isinstance(await line_.ended(), LinkEnded)
        await eventually(lambda: not runs(pid))
        await line_.start()
        await line_.says("back")


FRAMES = """
import sys
from bridges.feishu.sdk import load
load()
from lark_oapi.ws.pb.pbbp2_pb2 import Frame
for line in sys.stdin:
    frame = Frame()
    frame.ParseFromString(bytes.fromhex(line))
    print(frame.SerializeToString().hex())
"""


def test_the_frames_of_the_fake_are_those_of_the_sdk() -> None:
    chance = random.Random(7)

    def text() -> str:
        return "".join(
            chr(chance.choice([chance.randrange(32, 127), chance.randrange(0x4E00, 0x9FFF)])) for _ in range(9)
        )

    frames = [
        Frame(
            chance.choice([CONTROL, DATA]),
            {text(): text() for _ in range(chance.randrange(9))},
            chance.randbytes(chance.randrange(1, 3_000)),
            service=chance.randrange(2**31),
            seq=chance.randrange(2**64),
            log=chance.randrange(2**64),
        )
        for _ in range(200)
    ]
    said = python(FRAMES, input="\n".join(frame.encode().hex() for frame in frames))
    assert [Frame.decode(bytes.fromhex(each)) for each in said.split()] == frames


@pytest.mark.parametrize("data", [b"", b"\x08", b"\x2a\x05a", b"\x0b", b"\xff" * 12])
def test_the_fake_takes_no_broken_frame(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        Frame.decode(data)

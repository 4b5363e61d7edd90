"""Feishu: the process of the vendor's SDK: one for all bots, loaded nowhere else, gone when nobody needs it."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from bridges.feishu import link
from bridges.feishu.channel import DEAF_SECONDS
from bridges.feishu.link import Deaf, LinkEnded
from bridges.feishu.pipe import Ended, Open, Report, line
from bridges.message import Stop
from bridges.state import BotKey
from bridges.supervise import Supervisor
from tests.bridges.bench import eventually
from tests.channels.feishu import Line, line_on, platform
from tests.fakes.feishu import FakeFeishu, Fault
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
    return process._child.pid if process._child is not None else 0


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


async def test_a_process_that_stumbles_over_an_order_is_replaced(fake: FakeFeishu) -> None:
    async with line_on(fake) as line_:
        (process,) = link._PROCESSES.values()
        pid = child()
        process.tell(Nonsense())  # type: ignore[arg-type]  # the process will not understand it either
        assert isinstance(await line_.ended(), LinkEnded)
        await eventually(lambda: not runs(pid))
        await line_.start()
        await line_.says("back")


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


async def busiest() -> float:
    """Return the most processor seconds that anything held our loop for, until cancelled."""
    longest = 0.0
    with suppress(asyncio.CancelledError):
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - before)
    return longest


async def test_no_loop_stands_still_for_20_ms_while_the_real_sdk_loads_and_works(fake: FakeFeishu) -> None:
    async with line_on(fake) as line_:
        await line_.says("everything of ours is loaded by now")
    gc.disable()
    watching = asyncio.create_task(busiest())
    try:
        async with line_on(fake) as line_:
            for _ in range(5):
                await line_.says()
            fake.gateway.cut()
            await line_.ended()
            await line_.start()
    finally:
        gc.enable()
        watching.cancel()
    assert await watching < 0.020


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

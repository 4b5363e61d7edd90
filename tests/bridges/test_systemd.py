"""What systemd hears, on a real datagram socket: from the class that speaks, and from the whole program."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bridges.systemd import LOOK_SECONDS, SEND_SECONDS, Systemd
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.chat_process import SECONDS
from tests.bridges.test_run import bot, configure, service
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import FakeTelegram

EN, ZH = Words(Language.EN), Words(Language.ZH)
PID = 4711
ONE = EN(Key.RUN_STATUS, up="telegram/ops", down="–")


class Manager:
    """The other end: every word that came, as its lines."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.words: list[list[str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(address.replace("@", "\0", 1))
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def _read(self) -> None:
        self.words.append(self._socket.recv(4096).decode().split("\n"))

    async def hears(self, *lines: str) -> int:
        """Wait for a word of exactly these lines; return its place."""
        await eventually(lambda: list(lines) in self.words, SECONDS)
        return self.words.index(list(lines))

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a socket's has 108 bytes at most."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture(params=["path", "abstract"])
async def manager(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Manager]:
    with closing(Manager(f"{folder}/notify" if request.param == "path" else f"@{folder.name}")) as made:
        yield made


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


async def test_each_word_is_one_datagram(manager: Manager) -> None:
    systemd = Systemd.of({"NOTIFY_SOCKET": manager.address}, PID, FakeClock(12.5))
    await systemd.ready("two\nlines\rof a status")
    await systemd.reloading()
    await systemd.stopping()
    await eventually(lambda: len(manager.words) == 3)
    assert manager.words == [
        ["READY=1", "STATUS=two lines of a status"],
        ["RELOADING=1", "MONOTONIC_USEC=12500000"],
        ["STOPPING=1"],
    ]


async def test_a_status_is_told_again_only_when_it_changed(manager: Manager) -> None:
    clock, present = FakeClock(), ["none"]
    systemd = Systemd.of({"NOTIFY_SOCKET": manager.address}, PID, clock)
    telling = asyncio.create_task(systemd.keep_informed(lambda: present[-1]))
    for status in ("none", "one", "one", "two"):
        await clock.sleeping()
        present.append(status)
        await clock.advance(LOOK_SECONDS)
    await manager.hears("STATUS=two")
    telling.cancel()
    await asyncio.wait([telling])
    assert manager.words == [["STATUS=one"], ["STATUS=two"]]


async def test_the_watchdog_hears_of_us_twice_within_its_limit(manager: Manager) -> None:
    clock = FakeClock()
    environ = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(PID)}
    beating = asyncio.create_task(Systemd.of(environ, PID, clock).keep_alive())
    for count in (1, 2, 3):
        await eventually(lambda count=count: len(manager.words) == count)  # type: ignore[misc]  # a default has no type
        await clock.sleeping()
        await clock.advance(14.9)
        assert len(manager.words) == count
        await clock.advance(0.1)
    beating.cancel()
    await asyncio.wait([beating])
    assert manager.words[:3] == [["WATCHDOG=1"]] * 3


@pytest.mark.parametrize(
    "watchdog",
    [
        {},
        {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(PID + 1)},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "-1", "WATCHDOG_PID": str(PID)},
        {"WATCHDOG_USEC": "9" * 400},
        {"WATCHDOG_USEC": "9" * 5000},
    ],
)
async def test_a_watchdog_that_is_not_ours_hears_nothing(manager: Manager, watchdog: dict[str, str]) -> None:
    async with asyncio.timeout(SECONDS):
        await Systemd.of({"NOTIFY_SOCKET": manager.address} | watchdog, PID).keep_alive()
    assert manager.words == []


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
async def test_without_a_manager_nothing_is_said_and_nothing_lasts(environ: dict[str, str]) -> None:
    systemd = Systemd.of(environ | {"WATCHDOG_USEC": "1000"}, PID)
    async with asyncio.timeout(SECONDS):
        await systemd.ready("fine")
        await systemd.keep_alive()
        await systemd.keep_informed(lambda: "fine")


async def test_a_manager_that_is_gone_stops_nothing(folder: Path) -> None:
    await Systemd.of({"NOTIFY_SOCKET": f"{folder}/nobody"}, PID).ready("fine")
    await Systemd.of({"NOTIFY_SOCKET": f"{folder}/{'long' * 40}"}, PID).ready("fine")


async def test_a_manager_that_does_not_read_holds_nothing_up(folder: Path) -> None:
    clock = FakeClock()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as deaf:
        deaf.bind(f"{folder}/deaf")
        systemd = Systemd.of({"NOTIFY_SOCKET": f"{folder}/deaf"}, PID, clock)

        async def fill() -> None:
            while True:
                await systemd.stopping()

        filling = asyncio.create_task(fill())
        await clock.sleeping()
        await eventually(lambda: _full(folder))
        filling.cancel()
        await asyncio.wait([filling])
        last = asyncio.create_task(systemd.ready("fine"))
        await eventually(lambda: last in asyncio.all_tasks() and not last.done())
        await clock.sleeping()
        await clock.advance(SEND_SECONDS)
        await asyncio.wait_for(last, SECONDS)


def _full(folder: Path) -> bool:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sender:
        sender.setblocking(False)
        sender.connect(f"{folder}/deaf")
        try:
            sender.send(b"x")
        except BlockingIOError:
            return True
    return False


async def test_the_program_tells_its_whole_life(
    manager: Manager, host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(telegram))
    async with service(tmp_path, config, NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="500000") as running:
        ready = await manager.hears("READY=1", f"STATUS={ONE}")
        await running.ready()
        assert not [word for word in manager.words[:ready] if word != ["WATCHDOG=1"]]
        beats = manager.words.count(["WATCHDOG=1"])
        await eventually(lambda: manager.words.count(["WATCHDOG=1"]) >= beats + 3, SECONDS)

        before = time.monotonic()
        config.write_text(config.read_text().replace('language = "en"', 'language = "zh"'))
        running.child.send_signal(signal.SIGHUP)
        again = await manager.hears("READY=1", f"STATUS={ZH(Key.RUN_STATUS, up='telegram/ops', down='–')}")
        (word, stamp) = next(word for word in manager.words[ready + 1 : again] if word != ["WATCHDOG=1"])
        assert word == "RELOADING=1"
        assert before <= int(stamp.removeprefix("MONOTONIC_USEC=")) / 1e6 <= time.monotonic()

        assert await running.stop() == 0
        await manager.hears("STOPPING=1")


async def test_a_link_that_is_lost_and_a_reload_that_fails_show_in_the_status(
    folder: Path, host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(telegram))
    with closing(Manager(f"{folder}/notify")) as manager:
        async with service(tmp_path, config, NOTIFY_SOCKET=manager.address) as running:
            await manager.hears("READY=1", f"STATUS={ONE}")
            telegram.fail("getUpdates", status=401, description="Unauthorized", times=None)
            await telegram.deliver(telegram.write.update(telegram.write.message("hello")))
            await manager.hears(f"STATUS={EN(Key.RUN_STATUS, up='–', down='telegram/ops')}")
            config.write_text(config.read_text() + "nonsense = 1\n")
            running.child.send_signal(signal.SIGHUP)
            problem = EN(Key.CONFIG_UNKNOWN, path="bot[0].endpoints.nonsense")
            await manager.hears("READY=1", f"STATUS={EN(Key.RELOAD_FAILED, problem=problem)}")
            assert await running.stop() == 0
        assert ["WATCHDOG=1"] not in manager.words, "nobody asked for it"


async def test_a_loop_that_is_stuck_falls_silent(manager: Manager) -> None:
    environ = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "20000"}
    beating = asyncio.create_task(Systemd.of(environ, os.getpid()).keep_alive())
    await eventually(lambda: len(manager.words) >= 3)
    heard = len(manager.words)
    time.sleep(0.2)  # noqa: ASYNC251 - it is the loop that must be held: ten limits of the watchdog go by
    await asyncio.sleep(0)
    await eventually(lambda: len(manager.words) > heard)
    assert len(manager.words) <= heard + 2, "nothing but the loop says that it turns"
    beating.cancel()
    await asyncio.wait([beating])


async def test_a_secret_comes_from_the_credentials_of_the_service(
    folder: Path, host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(telegram))
    config.write_text(config.read_text().replace(f'token = "{telegram.token}"', 'token = { file = "telegram" }'))
    (folder / "telegram").write_text(f"{telegram.token}\n")
    async with service(tmp_path, config, CREDENTIALS_DIRECTORY=str(folder)) as running:
        first, *_ = await running.ready()
        assert "1 of 1" in first
        assert await running.stop() == 0

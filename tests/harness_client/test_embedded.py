"""The embedded host with a fake ``dsh``: every way it can start, die and end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import structlog

from harness_client import embedded
from harness_client.address import Address
from harness_client.clock import SystemClock
from harness_client.embedded import EmbeddedHost, EmbeddedSpec, HomeInUse, HostNotReady, RuntimeMissing
from harness_client.host_process import Output

FAKE = Path(__file__).parents[1] / "fakes" / "dsh.py"
KEY = "not-a-real-key"


class QuickClock(SystemClock):
    """Sleeps cost nothing and are recorded; a timeout lasts ``scale`` of what it says; time can be moved."""

    def __init__(self, scale: float = 1.0) -> None:
        self.slept: list[float] = []
        self.moved = 0.0
        self._scale = scale

    def monotonic(self) -> float:
        return super().monotonic() + self.moved

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return super().timeout(seconds * self._scale)


@pytest.fixture
def spec(tmp_path: Path) -> Callable[[str], EmbeddedSpec]:
    """Return a spec whose ``dsh`` behaves as told."""
    command = tmp_path / "dsh"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{FAKE}" "$@"\n')
    command.chmod(0o700)
    workspace = tmp_path / "a workspace"
    workspace.mkdir()

    def make(plan: str) -> EmbeddedSpec:
        return EmbeddedSpec(
            data=tmp_path / "data",
            workspace=workspace,
            model_url="http://127.0.0.1:9",
            model_key=KEY,
            environment={"PATH": os.environ["PATH"], "FAKE_DSH": plan},
            command=command,
        )

    return make


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- the condition is in another process
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return status != "Z"


def environment_and_cwd(pid: int) -> tuple[dict[str, str], Path]:
    raw = Path(f"/proc/{pid}/environ").read_bytes().decode()
    variables = dict(line.split("=", 1) for line in raw.strip("\0").split("\0"))
    return variables, Path(f"/proc/{pid}/cwd").readlink()


def pid_of(spec: EmbeddedSpec, number: int) -> int:
    return int((spec.data / "dsh" / f"pid{number}").read_text())


def started(spec: EmbeddedSpec) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((spec.data / "dsh" / "starts").read_text())
    return 0


async def test_a_host_is_ready_with_its_address_and_gone_afterwards(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    async with EmbeddedHost(plan) as host:
        address = await host.address()
        assert address.base.startswith("http://127.0.0.1:")
        assert address.token == "tok-0-secret"
        child = pid_of(plan, 0)
        assert alive(child)
        assert host.pid is not None
        assert os.getsid(host.pid) == host.pid != os.getsid(0), "Ctrl-C in our terminal would reach it"
        assert os.getpgid(child) == host.pid
        assert stat.S_IMODE(plan.data.stat().st_mode) == 0o700
    assert not alive(child)
    assert host.pid is None


async def test_the_child_sees_only_what_it_is_given(
    spec: Callable[[str], EmbeddedSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODY_ELSES_TOKEN", "leak")
    plan = spec("ready")
    async with EmbeddedHost(plan):
        seen, cwd = environment_and_cwd(pid_of(plan, 0))
    assert cwd == plan.workspace
    assert {k: v for k, v in seen.items() if k not in {"PWD", "OLDPWD", "SHLVL", "_"}} == plan.variables()
    assert plan.variables() == {
        "PATH": os.environ["PATH"],
        "FAKE_DSH": "ready",
        "LANG": "C.UTF-8",
        "HOME": str(plan.data / "home"),
        "TMPDIR": str(plan.data / "tmp"),
        "DSH_HOME": str(plan.data / "dsh"),
        "DSH_TELEMETRY_DISABLED": "1",
        "DEEPSEEK_BASE_URL": "http://127.0.0.1:9",
        "DEEPSEEK_API_KEY": KEY,
        "NODE_OPTIONS": f'"--require={Path(embedded.__file__).with_name("workspace_hook.cjs")}"',
    }


def test_without_a_key_none_is_passed_and_the_key_is_not_in_the_repr(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    assert KEY not in repr(plan)
    bare = EmbeddedSpec(data=plan.data, workspace=plan.workspace, command=plan.command)
    assert not any(name.startswith("DEEPSEEK") for name in bare.variables())


async def test_a_dead_host_is_started_again_on_its_port(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan, clock = spec("ready"), QuickClock()
    async with EmbeddedHost(plan, clock=clock, chance=lambda: 0.5) as host:
        first, group = await host.address(), host.pid
        told: list[Address] = []
        host.on_restart(told.append)
        os.kill(pid_of(plan, 0), signal.SIGKILL)
        await until(lambda: host.pid not in {None, group})
        second = await host.address()
        assert told == [second]
        assert second.base == first.base, "the login cookie is bound to the authority"
        assert second.token == "tok-1-secret"
    assert clock.slept == [0.75]


async def test_the_port_was_taken_meanwhile(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan, clock = spec("brief port-taken port-taken"), QuickClock()
    async with EmbeddedHost(plan, clock=clock, chance=lambda: 0.0) as host:
        await until(lambda: started(plan) == 3)
        await host.address()
        ports = [(plan.data / "dsh" / f"argv{n}").read_text().split("\n")[-1] for n in range(3)]
        assert ports[0] == ports[2] == "0"
        assert ports[1] != "0"
    assert clock.slept == [1.0, 2.0]


async def test_restarts_back_off_to_a_minute_and_begin_anew_after_a_healthy_while(
    spec: Callable[[str], EmbeddedSpec],
) -> None:
    plan, clock = spec("brief " + "dies " * 8 + "ready ready"), QuickClock()
    async with EmbeddedHost(plan, clock=clock, chance=lambda: 0.0) as host:
        await until(lambda: started(plan) == 10)
        await host.address()
        assert clock.slept == [1, 2, 4, 8, 16, 32, 60, 60, 60]
        clock.moved += embedded.HEALTHY_AFTER
        os.kill(pid_of(plan, 9), signal.SIGKILL)
        await until(lambda: started(plan) == 11)
        assert clock.slept[9:] == [1]


async def test_the_log_of_a_death_holds_no_secret(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("brief dies ready")
    with structlog.testing.capture_logs() as logs:
        async with EmbeddedHost(plan, clock=QuickClock()) as host:
            await until(lambda: started(plan) == 3)
            await host.address()
    assert [entry["event"] for entry in logs] == ["embedded_host_ended", "embedded_host_not_ready"]
    assert logs[0]["code"] == 0
    assert KEY not in str(logs)
    assert "secret" not in str(logs)


async def test_a_host_that_ends_before_it_is_ready(spec: Callable[[str], EmbeddedSpec]) -> None:
    with pytest.raises(HostNotReady, match="ended before it was ready") as caught:
        async with EmbeddedHost(spec("dies")):
            pytest.fail("entered")
    assert "dsh: no luck with *** and http://127.0.0.1:" in caught.value.tail
    assert "/?token=***" in caught.value.tail
    assert not [part for part in ("\x1b", KEY, "secret") if part in str(caught.value)]


async def test_a_host_that_never_becomes_ready(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("silent")
    with pytest.raises(HostNotReady, match="not ready within 60 s"):
        async with EmbeddedHost(plan, clock=QuickClock(scale=1 / 100)):
            pytest.fail("entered")
    assert not started(plan) or not alive(pid_of(plan, 0))


async def test_a_host_that_prints_no_usable_address(spec: Callable[[str], EmbeddedSpec]) -> None:
    with pytest.raises(HostNotReady, match="an address that is none"):
        async with EmbeddedHost(spec("no-address")):
            pytest.fail("entered")


async def test_a_failed_start_leaves_the_data_directory_free(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("dies ready")
    with pytest.raises(HostNotReady):
        await EmbeddedHost(plan).__aenter__()
    async with EmbeddedHost(plan) as host:
        assert (await host.address()).token == "tok-1-secret"


async def test_two_programs_on_one_data_directory(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    async with EmbeddedHost(plan):
        with pytest.raises(HomeInUse, match="in use by another running program"):
            await EmbeddedHost(plan).__aenter__()
        assert started(plan) == 1


async def test_a_command_that_cannot_run(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    plan.command.unlink()
    with pytest.raises(HostNotReady, match="No such file or directory"):
        await EmbeddedHost(plan).__aenter__()


def test_relative_paths_would_mean_something_else_in_the_child() -> None:
    with pytest.raises(ValueError, match="must be absolute"):
        EmbeddedSpec(data=Path("data"), workspace=Path("/"), command=Path("/dsh"))


async def test_a_data_directory_that_cannot_be_made(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    plan.data.write_text("a file")
    with pytest.raises(HostNotReady, match="cannot be used"):
        await EmbeddedHost(plan).__aenter__()


async def test_a_workspace_that_does_not_exist(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    plan.workspace.rmdir()
    with pytest.raises(HostNotReady, match="could not be started"):
        await EmbeddedHost(plan).__aenter__()


async def test_a_stubborn_host_is_killed_within_a_second(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("stubborn")
    async with EmbeddedHost(plan):
        child, begun = pid_of(plan, 0), time.monotonic()
    await until(lambda: not alive(child))
    assert time.monotonic() - begun < 1.5, "STOP_WITHIN is 0.7 s"


async def test_a_child_that_keeps_the_output_open_delays_nothing(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan, clock = spec("mother ready"), QuickClock()
    async with EmbeddedHost(plan, clock=clock) as host:
        group, begun = host.pid, time.monotonic()
        os.kill(pid_of(plan, 0), signal.SIGKILL)
        await until(lambda: host.pid not in {None, group})
        await host.address()
        assert time.monotonic() - begun < 2.5, "the daughter lives 3 s"


async def test_output_is_drained_for_ever(spec: Callable[[str], EmbeddedSpec]) -> None:
    async with EmbeddedHost(spec("chatty")) as host:
        assert (await host.address()).token == "tok-0-secret"


async def test_a_cancelled_start_leaves_nothing(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("silent")
    entering = asyncio.create_task(EmbeddedHost(plan).__aenter__())
    await until(lambda: started(plan) == 1)
    await until((plan.data / "dsh" / "pid0").exists)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    await until(lambda: not alive(pid_of(plan, 0)))


async def test_leaving_while_a_restart_waits(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("brief ready")
    async with EmbeddedHost(plan, chance=lambda: 0.0) as host:
        await until(lambda: host.pid is None)
    assert started(plan) == 1


PROGRAM = """
import asyncio, signal, sys
from pathlib import Path
from harness_client.embedded import EmbeddedHost, EmbeddedSpec

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests themselves run in the background

async def main(data, workspace, command, plan):
    spec = EmbeddedSpec(Path(data), Path(workspace), environment={"FAKE_DSH": plan}, command=Path(command))
    async with EmbeddedHost(spec):
        print("up", flush=True)
        await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


@contextlib.contextmanager
def program(plan: EmbeddedSpec, behaviour: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a whole program of its own with an embedded host, up to its first line."""
    command = [sys.executable, "-c", PROGRAM, str(plan.data), str(plan.workspace), str(plan.command), behaviour]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 -- our own
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        yield running
    finally:
        running.kill()
        running.communicate()


async def test_a_killed_program_takes_its_host_with_it(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    with program(plan, "ready") as running:
        child = pid_of(plan, 0)
        assert alive(child)
        running.kill()
        await until(lambda: not alive(child))


async def test_a_program_started_right_after_a_kill_waits_for_the_old_host(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    with program(plan, "slow") as running:
        old = pid_of(plan, 0)
        with pytest.raises(HomeInUse):
            await EmbeddedHost(plan).__aenter__()
        running.kill()
        running.wait()
        assert alive(old), "it needs 0.4 s to end"
        async with EmbeddedHost(plan) as host:
            assert not alive(old)
            assert (await host.address()).token == "tok-1-secret"


async def test_ctrl_c_ends_everything_within_a_second(spec: Callable[[str], EmbeddedSpec]) -> None:
    plan = spec("ready")
    with program(plan, "ready") as running:
        child, begun = pid_of(plan, 0), time.monotonic()
        running.send_signal(signal.SIGINT)
        running.wait(5)
        assert time.monotonic() - begun < 1
        assert not alive(child)


def test_the_extra_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(RuntimeMissing, match=r"pip install 'harness-im\[embedded\]'"):
        embedded.bundled_command()
    (tmp_path / "dsh").touch()
    assert embedded.bundled_command() == tmp_path / "dsh"


def test_output_is_bounded_and_cut_anywhere() -> None:
    output = Output(["s3cr3t"])
    line = b"noise\r\ndsh web: http://127.0.0.1:1/?token=abc\n"
    seen: list[str | None] = []
    for byte in line:
        output.feed(bytes([byte]))
        seen.append(output.printed_url)
    assert seen[-2:] == [None, "http://127.0.0.1:1/?token=abc"], "a line without its end may be half a token"
    output.feed(b"key s3cr3t\tBearer xyz sk-12345\n")
    assert output.tail(2) == "dsh web: http://127.0.0.1:1/?token=***\nkey *** Bearer *** ***"
    for _ in range(1000):
        output.feed(b"y" * 1000)
    assert len(output.tail()) <= 8 * 1024

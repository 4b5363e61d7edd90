"""The real host is killed, restarted, broken: what was said stays, and what is cold stays cold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from bridges.demo_model import DemoModel, Step
from harness_client.address import Address
from harness_client.client import FollowItem, HarnessClient
from harness_client.clock import SystemClock
from harness_client.embedded import EmbeddedHost, EmbeddedSpec, HomeInUse, HostNotReady
from harness_client.errors import Unreachable
from harness_client.events import TextDelta
from harness_client.transcript import Role
from harness_client.types import SessionId
from tests.live.reading import whole_log
from tests.live.talk import BOUND, Talk, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Impatient(SystemClock):
    """Waits a twentieth of what it is told, and remembers."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await super().sleep(seconds / 20)


def logs(spec: EmbeddedSpec, session: SessionId) -> dict[str, bytes]:
    """Return the files of a session: a host that wakes it writes into them."""
    files = [path for path in (spec.data / "dsh" / "sessions").glob(f"*/{session}/*") if path.is_file()]
    assert files
    return {path.name: path.read_bytes() for path in files}


async def until_written(spec: EmbeddedSpec, session: SessionId, text: str) -> None:
    """Wait until the host has flushed ``text`` to the session's log: what it has not, it may lose."""

    async def written() -> bool:
        [log] = [data for name, data in logs(spec, session).items() if name.endswith(".zstd")]
        with zstandard.ZstdDecompressor().stream_reader(log, read_across_frames=True) as reader:
            return text.encode() in reader.read()

    await until(written)


def child_of(group: int) -> int:
    """Return the host itself, the child of its lifeline."""
    return int(Path(f"/proc/{group}/task/{group}/children").read_text().split()[0])


async def read_everything(talk: Talk, spec: EmbeddedSpec, model: DemoModel) -> None:
    """Read a cold session in every way that must not wake it, and prove that none did."""
    before, asked = logs(spec, talk.session), dict(model.asked)
    await talk.check()
    await whole_log(talk.client, talk.session)
    await talk.client.projections(talk.session)
    assert not await talk.client.running(talk.session)
    assert dict(model.asked) == asked
    assert logs(spec, talk.session) == before, "the session was woken"


async def test_a_program_started_again_finds_its_sessions(
    new_spec: Callable[[], EmbeddedSpec], model: DemoModel
) -> None:
    spec = new_spec()
    async with EmbeddedHost(spec) as host, HarnessClient(await host.address()) as client:
        talk = Talk(client, model, await client.create_session(cwd=str(spec.workspace)))
        await talk.ask("remember me")
        with pytest.raises(HomeInUse):
            await EmbeddedHost(spec).__aenter__()
    async with EmbeddedHost(spec) as host, HarnessClient(await host.address()) as client:
        talk.client = client
        await read_everything(talk, spec, model)
        await talk.ask("and me")
        await talk.check()


async def test_a_host_killed_in_the_middle_of_a_turn(new_spec: Callable[[], EmbeddedSpec], model: DemoModel) -> None:
    spec, clock = new_spec(), Impatient()
    async with EmbeddedHost(spec, clock=clock) as host, HarnessClient(await host.address()) as client:
        group, address = host.pid, await host.address()
        assert group is not None
        talk = Talk(client, model, await client.create_session(cwd=str(spec.workspace)))
        await talk.ask("before the crash")

        async def kill(item: FollowItem) -> None:
            if isinstance(item, TextDelta):
                await until_written(spec, talk.session, "never answered")
                os.kill(child_of(group), signal.SIGKILL)

        with pytest.raises(Unreachable):
            await talk.say("never answered", Step(text="I was about to", piece=100, end="hang"), on=kill)
        talk.expected.append((Role.USER, "never answered"))

        async def restarted() -> bool:
            return host.pid not in {None, group}

        await until(restarted)
        async with asyncio.timeout(BOUND):
            again = await host.address()
        assert again.base == address.base
        assert again.token is None or again.token != address.token
        assert len(clock.slept) == 1
        assert 0.5 <= clock.slept[0] <= 1.0
        # The same client, its old token void, its cookie good.
        await read_everything(talk, spec, model)
        await talk.ask("after the crash")
        await talk.check()


class Squatter(SystemClock):
    """Lets somebody take the host's port while it is away."""

    def __init__(self) -> None:
        self.taken: socket.socket | None = None
        self.port = 0

    async def sleep(self, seconds: float) -> None:
        if self.taken is None:
            self.taken = socket.create_server(("127.0.0.1", self.port))
        await asyncio.sleep(0)

    def leave(self) -> None:
        if self.taken is not None:
            self.taken.close()


async def test_a_host_whose_port_was_taken_moves_and_its_client_follows(
    new_spec: Callable[[], EmbeddedSpec], model: DemoModel
) -> None:
    spec, clock = new_spec(), Squatter()
    async with (
        EmbeddedHost(spec, clock=clock) as host,
        HarnessClient(await host.address()) as client,
        contextlib.AsyncExitStack() as leaving,
    ):
        leaving.callback(clock.leave)
        moved: asyncio.Queue[Address] = asyncio.Queue()
        host.on_restart(client.move)
        host.on_restart(moved.put_nowait)
        clock.port = int(client.address.base.rpartition(":")[2])
        talk = Talk(client, model, await client.create_session(cwd=str(spec.workspace)))
        await talk.ask("here")
        await until_written(spec, talk.session, "turn/end")
        before = client.address
        group = host.pid
        assert group is not None
        os.kill(child_of(group), signal.SIGKILL)
        async with asyncio.timeout(BOUND):
            after = await moved.get()
        assert after.base != before.base
        await talk.check()


async def test_a_host_that_cannot_start(new_spec: Callable[[], EmbeddedSpec]) -> None:
    spec = new_spec()
    (spec.data / "dsh").mkdir(parents=True)
    (spec.data / "dsh" / "profiles").write_text("not a folder")
    with pytest.raises(HostNotReady, match="ended before it was ready") as caught:
        await EmbeddedHost(spec).__aenter__()
    assert "profiles" in caught.value.tail
    shutil.rmtree(spec.data)


async def test_a_host_that_is_never_ready(
    new_spec: Callable[[], EmbeddedSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_client.embedded.READY_WITHIN", 0.2)
    with pytest.raises(HostNotReady, match="was not ready within"):
        await EmbeddedHost(new_spec()).__aenter__()


def open_files(pid: int) -> set[Path]:
    """Return the regular files a process has open for writing."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        flags = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().split("flags:")[1].split()[0]
        if int(flags, 8) & os.O_ACCMODE and link.is_file():
            found.add(link.readlink())
    return found


async def test_files_are_written_in_the_data_directory_only(new_spec: Callable[[], EmbeddedSpec]) -> None:
    spec = new_spec()
    before = {path for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(("dsh-", "pkg-"))}
    async with EmbeddedHost(spec) as host:
        assert host.pid is not None
        opened = open_files(child_of(host.pid))
    after = {path for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(("dsh-", "pkg-"))}
    assert spec.data / "host.lock" in opened, "it is held by the host itself"
    assert all(path.is_relative_to(spec.data) for path in opened)
    assert after == before
    assert not list(spec.workspace.iterdir())

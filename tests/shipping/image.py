"""Make the image and use it: ``python -m tests.shipping.image docker|podman|steps``, from the root of the project.

With a container runtime it is built and run; with ``steps`` its Dockerfile is carried out in sandboxes on this
machine. Either way the entry point serves a fake Telegram with a fake Harness, as the user of the image, on a root that
cannot be written to, and the health check is asked before, while and after it runs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import TELLER, FakeTelegram
from tests.guards.sources import ROOT
from tests.shipping.dockerfile import Stage, parse
from tests.shipping.sandbox import Sandbox, start, stop

STATE, CONFIG = "/var/lib/harness-im", "/etc/harness-im"
LIMIT = 10.0
"""Seconds a container has to end."""
ASK_SECONDS = 180.0
"""Bound of a command beside it; the first one reads all its files from a cold disk."""


class Runtime(Protocol):
    """Whatever runs the image."""

    def start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        """Start the entry point with ``words``, its output on a pipe."""

    def ask(self, words: Sequence[str]) -> int:
        """Run a command beside it and return its exit code."""

    def stop(self) -> None:
        """Send SIGTERM to the program."""


class Steps:
    """The image carried out on this machine."""

    def __init__(self, stages: Sequence[Stage], place: Path, mounts: Mapping[str, Path]) -> None:
        made: dict[str, Path] = {}
        cache = Path(os.environ.get("PIP_CACHE_DIR", place / "cache"))
        cache.mkdir(exist_ok=True)
        for stage in stages:
            self._sandbox = Sandbox(stage, place / stage.name, ROOT, made, cache)
            self._sandbox.build()
            made[stage.name] = self._sandbox.root
        self._entry = stages[-1].last("ENTRYPOINT").command()
        self._mounts = mounts
        self._pid = 0
        for folder in mounts:
            (self._sandbox.root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        """See :meth:`Runtime.start`."""
        child, self._pid = start(self._sandbox, [*self._entry, *words], self._mounts)
        return child

    def ask(self, words: Sequence[str]) -> int:
        """See :meth:`Runtime.ask`."""
        return subprocess.run(self._sandbox.command(words, self._mounts), check=False, timeout=ASK_SECONDS).returncode  # noqa: S603 - our own image

    def stop(self) -> None:
        """See :meth:`Runtime.stop`."""
        stop(self._pid)


class Containers:
    """The image in a container runtime whose command line is docker's."""

    TAG = "harness-im:checked"

    def __init__(self, program: str, mounts: Mapping[str, Path]) -> None:
        self._program = program
        self._mounts = [f"--volume={folder}:{place}" for place, folder in mounts.items()]
        self._name = f"harness-im-{time.time_ns()}"
        subprocess.run([program, "build", "--tag", self.TAG, str(ROOT)], check=True, timeout=1800)  # noqa: S603 - asked for by the caller

    def _run(self, *words: str) -> list[str]:
        around = ["--rm", "--network=host", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", *self._mounts]
        return [self._program, "run", *around, *words]

    def start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        """See :meth:`Runtime.start`."""
        command = self._run(f"--name={self._name}", self.TAG, *words)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own image

    def ask(self, words: Sequence[str]) -> int:
        """See :meth:`Runtime.ask`."""
        first, *rest = words
        command = self._run(f"--entrypoint={first}", self.TAG, *rest)
        return subprocess.run(command, check=False, timeout=ASK_SECONDS).returncode  # noqa: S603 - our own image

    def stop(self) -> None:
        """See :meth:`Runtime.stop`."""
        subprocess.run([self._program, "stop", self._name], check=True, timeout=ASK_SECONDS)  # noqa: S603 - as above


def _expect(what: str, holds: bool) -> None:
    print(f"{'ok' if holds else 'NOT SO':6}  {what}", flush=True)
    if not holds:
        raise SystemExit(1)


async def _use(runtime: Runtime, image: Stage, config: Path) -> None:
    health = image.last("HEALTHCHECK").command()
    async with FakeHarness() as host, FakeTelegram() as telegram:
        config.write_text(
            f'language = "en"\n[harness]\nurl = "{host.url}"\n'
            f'[[bot]]\nname = "ops"\nchannel = "telegram"\ntoken = {{ file = "token" }}\naccess.direct = "open"\n'
            f'endpoints.api = "{telegram.api}"\n'
        )
        config.with_name("token").write_text(telegram.token)
        look = _threaded(runtime.ask)
        _expect("its user is 10001", await look(["sh", "-c", "test $(id -u) = 10001"]) == 0)
        _expect("its root cannot be written to", await look(_unless("touch /opt/x || touch /etc/x")) == 7)
        _expect("no build tools are left", await look(_unless(_TOOLS)) == 7)
        _expect("what each channel needs is there", await look(["python", "-c", _COMPLETE]) == 0)
        _expect("the health check fails before it runs", await look(health) == 1)
        child = await asyncio.to_thread(runtime.start, image.last("CMD").command())
        try:
            assert child.stdout is not None
            print(await asyncio.to_thread(child.stdout.readline), end="")
            await telegram.deliver(telegram.write.update(telegram.write.message("hello")))
            await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
            _expect("a message is answered", holds=True)
            async with asyncio.timeout(ASK_SECONDS):
                while await look(health):  # noqa: ASYNC110 - nothing tells from outside when the first note is made
                    await asyncio.sleep(0.2)
            _expect("the health check passes while it runs", holds=True)
            began = time.monotonic()
            await asyncio.to_thread(runtime.stop)
            code = await asyncio.to_thread(child.wait, LIMIT)
            _expect(f"SIGTERM ends it well, in {time.monotonic() - began:.1f} s", code == 0)
            _expect("the health check fails after that", await look(health) == 1)
        finally:
            child.kill()
            child.wait()


def _unless(command: str) -> list[str]:
    """Return a command that ends with 7 when ``command`` fails, quietly."""
    return ["sh", "-c", f"{{ {command}; }} >/dev/null 2>&1 || exit 7"]


def _threaded(call: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str]], asyncio.Future[int]]:
    """Return ``call`` for an event loop."""
    return lambda words: asyncio.ensure_future(asyncio.to_thread(call, words))


_TOOLS = "ls /opt/harness-im/bin/pip /usr/local/bin/pip || python -c 'import pip' || python -c 'import setuptools'"
_COMPLETE = """
import sys
from importlib.util import find_spec
import cryptography, dingtalk_stream, discord, mcp, segno, slack_bolt, telegram
import bridges.cli.running, bridges.mcp_server
sys.exit(find_spec("lark_oapi") is None)  # whose import takes many seconds
"""


def main(kind: str) -> None:
    """Make and use the image; SystemExit with 1 at the first thing that is not so."""
    stages = parse((ROOT / "Dockerfile").read_text())
    with tempfile.TemporaryDirectory(prefix="image-") as made:
        place = Path(made)
        mounts = {STATE: place / "state", CONFIG: place / "config"}
        for folder, mode in zip(mounts.values(), (0o700, 0o755), strict=True):
            folder.mkdir(mode=mode)
            shutil.chown(folder, 10001, 10001)
        began = time.monotonic()
        runtime: Runtime = Steps(stages, place, mounts) if kind == "steps" else Containers(kind, mounts)
        print(f"made in {time.monotonic() - began:.0f} s", flush=True)
        asyncio.run(_use(runtime, stages[-1], mounts[CONFIG] / "config.toml"))


if __name__ == "__main__":
    main(*sys.argv[1:])

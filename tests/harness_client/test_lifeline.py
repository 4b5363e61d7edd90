"""The lifeline in this process; :mod:`tests.harness_client.test_embedded` runs it for real."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_client import lifeline


class Cord:
    """The other end of the lifeline."""

    def __init__(self, writing: int) -> None:
        self._writing = writing

    def cut(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1


@pytest.fixture
def cord(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cord]:
    reading, writing = os.pipe()
    before = signal.getsignal(signal.SIGTERM)
    cord = Cord(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(lifeline, "GRACE", 0.1)
        yield cord
        cord.cut()
        for thread in threading.enumerate():
            if thread.name == "lifeline":
                thread.join(5)  # it reads the pipe that is about to be closed
    signal.signal(signal.SIGTERM, before)


def command(text: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", text)


def when(path: Path, act: object) -> threading.Thread:
    def run() -> None:
        until = time.monotonic() + 10
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert callable(act)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_the_exit_code_is_the_commands(cord: Cord, tmp_path: Path) -> None:
    assert lifeline.main(str(tmp_path / "lock"), *command("raise SystemExit(7)")) == 7
    cord.cut()


def test_a_signal_is_128_and_its_number(cord: Cord, tmp_path: Path) -> None:
    code = lifeline.main(str(tmp_path / "lock"), *command("import os; os.kill(os.getpid(), 9)"))
    assert code == 128 + 9
    cord.cut()


def test_cut_it_ends_the_command_in_order(cord: Cord, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"import time, pathlib; pathlib.Path({str(ready)!r}).touch(); time.sleep(30)"
    cutting = when(ready, cord.cut)
    assert lifeline.main(str(tmp_path / "lock"), *command(text)) == 128 + signal.SIGTERM
    cutting.join()


def test_cut_it_kills_a_command_that_does_not_listen(cord: Cord, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = (
        "import signal, time, pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"pathlib.Path({str(ready)!r}).touch(); time.sleep(30)"
    )
    cutting = when(ready, cord.cut)
    assert lifeline.main(str(tmp_path / "lock"), *command(text)) == 128 + signal.SIGKILL
    cutting.join()


def test_sigterm_is_passed_on(cord: Cord, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"import time, pathlib; pathlib.Path({str(ready)!r}).touch(); time.sleep(30)"
    asking = when(ready, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert lifeline.main(str(tmp_path / "lock"), *command(text)) == 128 + signal.SIGTERM
    asking.join()
    cord.cut()


def test_it_waits_for_the_lock_and_gives_up_when_cut(cord: Cord, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        cutting = threading.Timer(0.2, cord.cut)
        cutting.start()
        assert lifeline.main(str(held.name), *command(f"open({str(ran)!r}, 'w')")) == 0
        cutting.join()
    assert not ran.exists()


def test_a_command_that_is_not_there(cord: Cord, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert lifeline.main(str(tmp_path / "lock"), str(tmp_path / "missing")) == 127
    assert "No such file" in capfd.readouterr().err
    cord.cut()

"""Run one command, and end it when whoever started us is gone.

A script of its own, never imported by the program: ``python -I -S lifeline.py LOCK COMMAND…``

Standard input is the lifeline: nothing is ever written to it, and its end means that the starter has stopped or died,
by SIGKILL too. Then the command gets SIGTERM and, :data:`GRACE` seconds later, SIGKILL. A pipe says this on every
POSIX system; Linux's own parent-death signal follows the thread that forked, not the process.

LOCK is held by us and by the command, so that a successor started right after a SIGKILL waits until the command of
its predecessor has really ended. The exit code is the command's, 128 + signal, or 127 when it
cannot be started.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
import time
from types import FrameType

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL when the lifeline is cut."""

_POLL = 0.05


def main(lock_path: str, *command: str) -> int:
    """Run ``command`` to its end and return its exit code; 0 without running it when the lifeline is cut before."""
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _acquire(lock):
        return 0
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(lock,))  # noqa: S603 -- our own command
    except OSError as error:
        print(error, file=sys.stderr)
        return 127

    def pass_on(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    threading.Thread(target=_end_when_cut, args=(child,), name="lifeline", daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _acquire(lock: int) -> bool:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if select.select([sys.stdin], [], [], _POLL)[0]:
                return False
        else:
            return True


def _end_when_cut(child: subprocess.Popen[bytes]) -> None:
    os.read(sys.stdin.fileno(), 1)
    child.terminate()
    time.sleep(GRACE)
    child.kill()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

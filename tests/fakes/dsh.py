"""Plays the ``dsh`` command for tests: one behaviour a start, the last one for ever.

The environment variable FAKE_DSH names them, joined by blanks; ``$DSH_HOME/starts`` counts.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType


def main() -> None:
    home = Path(os.environ["DSH_HOME"])
    starts = home / "starts"
    number = int(starts.read_text()) if starts.exists() else 0
    starts.write_text(str(number + 1))
    plan = os.environ["FAKE_DSH"].split()
    behaviour = plan[min(number, len(plan) - 1)]
    (home / f"argv{number}").write_text("\n".join(sys.argv[1:]))
    (home / f"pid{number}").write_text(str(os.getpid()))
    port = int(sys.argv[sys.argv.index("--port") + 1])
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if behaviour == "port-taken" and port:
            sys.exit("dsh: the port is in use")
        listener.bind(("127.0.0.1", port))
        listener.listen()
        behave(behaviour, f"http://127.0.0.1:{listener.getsockname()[1]}/?token=tok-{number}-secret")


def behave(behaviour: str, url: str) -> None:
    match behaviour:
        case "dies":
            print(f"\x1b[31mdsh: no luck\x1b[0m with {os.environ['DEEPSEEK_API_KEY']} and {url}", file=sys.stderr)
            sys.exit(3)
        case "silent":
            time.sleep(600)
        case "no-address":
            print("dsh web: http://user@127.0.0.1:1/", flush=True)
            time.sleep(600)
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "slow":
            signal.signal(signal.SIGTERM, end_slowly)
        case "mother":  # of a child that leaves the group and keeps the output open
            subprocess.Popen(["/bin/sleep", "3"], start_new_session=True)
        case "chatty":
            sys.stdout.write("x" * 5_000_000)
            sys.stdout.write("\n")
    print("dsh: warning: something is odd", file=sys.stderr, flush=True)
    sys.stdout.write(f"dsh web: {url[:20]}")
    sys.stdout.flush()
    sys.stdout.write(f"{url[20:]}\n")
    sys.stdout.flush()
    if behaviour == "brief":
        sys.exit(0)
    time.sleep(600)


def end_slowly(_number: int, _frame: FrameType | None) -> None:
    time.sleep(0.4)
    sys.exit(0)


if __name__ == "__main__":
    main()

"""A day of all nine channels in minutes: ``python -m tests.perf.soak [HOURS]``; exit code 1 when something is missed.

Our program, the platforms and the host are one process here, so memory and descriptors are those of all of them. The
SDKs of Telegram's edge, Slack, Discord and DingTalk live in the simulated time; Feishu's is a process of its own that
keeps real time, and the loop waits for it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bridges.log import Redactor, logging_to
from tests.contract.soak import Result, Soak
from tests.contract.test_table import ROWS
from tests.fakes.swift import run_swiftly
from tests.perf.measure import Figure, machine

WARM_UP: int = 2
"""Hours that are not counted: caches fill."""


def soak(hours: int) -> Result:
    """Run all rows that have a platform."""
    rows = {name: row for name, row in ROWS.items() if name != "terminal"}
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(folder, "log").open("w") as log,
        logging_to(log, Redactor()),
    ):
        return run_swiftly(Soak(rows, hours).run(Path(folder)))


def figures(result: Result) -> list[Figure]:
    """Return what must not grow, and what must not be."""
    first, last = result.samples[WARM_UP], result.samples[-1]
    span = last.hour - first.hour
    troubles = ", ".join(f"{count} {trouble}" for trouble, count in sorted(result.troubles.items()))
    memory, tasks, descriptors = (
        result.slope(measure, WARM_UP)
        for measure in (lambda each: each.rss, lambda each: each.tasks, lambda each: each.descriptors)
    )
    told = f"{result.questions} questions, {result.answered} answered whole; {troubles}"
    rules = f"{result.kills} deaths of the host, {result.starts} starts of bots"
    return [
        Figure("replies lost", len(result.lost), 0, "", told),
        Figure("replies doubled", len(result.doubled), 0, "", rules),
        Figure("replies the rules give up (outcome unknown)", result.missing + result.cut, result.questions * 0.1, ""),
        Figure("growth of memory, fakes included", memory / 1e6, 0.5, "MB an hour",
               f"{first.rss / 1e6:.0f} MB, {span:.0f} h later {last.rss / 1e6:.0f} MB"),
        Figure("growth of open tasks", tasks, 1, "an hour", f"{last.tasks} in the end"),
        Figure("growth of open descriptors", descriptors, 1, "an hour",
               f"{last.descriptors} in the end"),
        Figure("state file with its journal", last.state / 1e6, 8, "MB"),
        Figure("claims that nobody can repeat any more", result.old_claims_left, 0, ""),
    ]  # fmt: skip


def main() -> int:
    """Print every figure."""
    hours = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    sys.stdout.write(f"{hours} simulated hours, measured on {machine()}\n")
    measured = figures(soak(hours))
    sys.stdout.writelines(f"{figure}\n" for figure in measured)
    return int(any(figure.value > figure.reach for figure in measured))


if __name__ == "__main__":
    sys.exit(main())

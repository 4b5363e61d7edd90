"""The archive at 20,000 pairs and 90 MB, and two alternatives beside it in the same run: ripgrep and SQLite FTS5.

Everything about the archive is measured in a process of its own, so that its memory is its own:
``python -m tests.perf.archive FOLDER`` measures one; without an argument it makes the folder, measures and compares.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from archive.files import ArchiveFolder
from archive.model import Host, NodeId, SessionArchive
from archive.request import Search
from archive.schema import encode
from archive.service import HistoryService, LocalPi
from archive.sources.pi_locate import PiHome, default_directory
from tests.archive.native import Line, jsonl, pi_assistant, pi_header, pi_user
from tests.perf import alternatives
from tests.perf.measure import Figure, StallMeter, median, resident

SESSIONS: Final = 200
PAIRS: Final = 100
PAIR_BYTES: Final = 4_300
ROUNDS: Final = 40
QUERIES: Final = ("据", "数据", "数据库", "LAZY dog", "zq", "no such words")
"""CJK of one, two and three characters, mixed case, a rare word and none at all."""

_ENGLISH: Final = "the quick brown Fox jumps over a Lazy dog and Writes code in Python while reading".split()  # noqa: SIM905 - a sentence
_CHINESE: Final = [chr(code) for code in range(0x4E00, 0x4E00 + 900) if chr(code) not in "数据库"]


def _talk(chance: random.Random, size: int) -> str:
    """Return a text of about ``size`` bytes, half of them Chinese; one in fifty holds the words searched for."""
    if chance.random() < 0.5:
        words = " ".join(chance.choices(_ENGLISH, k=size // 5))
        return f"{words} lazy DOG" if chance.random() < 0.02 else words
    text = "".join(chance.choices(_CHINESE, k=size // 3))
    return f"{text}数据库" if chance.random() < 0.02 else text


def make(root: Path) -> None:
    """Write the native sessions of a workspace."""
    chance = random.Random(7)
    workspace = root / "workspace"
    workspace.mkdir()
    sessions = default_directory(root / "agent", str(workspace))
    sessions.mkdir(parents=True)
    for number in range(SESSIONS):
        lines: list[Line] = [pi_header(f"session-{number:03}", workspace)]
        parent: str | None = None
        for index in range(PAIRS):
            question, answer = f"q{index}", f"a{index}"
            lines.append(pi_user(question, parent, _talk(chance, PAIR_BYTES // 4)))
            lines.append(pi_assistant(answer, question, _talk(chance, PAIR_BYTES * 3 // 4)))
            parent = answer
        data = jsonl(lines).decode()
        text = "\n".join(json.dumps(json.loads(line), ensure_ascii=False) for line in data.splitlines()) + "\n"
        (sessions / f"{number:03}.jsonl").write_text(text, "utf-8")


def service(root: Path) -> HistoryService:
    """Return the history of the made workspace."""
    return HistoryService(root / "workspace", {Host.PI: LocalPi(PiHome(root / "agent"))})


async def measure(root: Path) -> dict[str, float]:
    """Measure a workspace whose archives are there already."""
    before = resident(os.getpid())
    history = service(root)
    meter = StallMeter()
    found: dict[str, float] = {}
    async with meter.watch():
        found["cold"] = await _timed(history, "no such words")
        for query in QUERIES:
            times = [await _timed(history, query) for _ in range(ROUNDS)]
            found[f"query {query}"] = median(times)
    found["idle"] = await _idle()
    found["memory"] = resident(os.getpid())
    found["before"] = before
    for query in QUERIES:
        found[f"hits {query}"] = await _hits(history, query)
    async with meter.watch():
        found["refresh"] = await _refreshed(root, history)
    found["stall"] = meter.longest
    found["publish"] = _published(root)
    return found


async def _idle() -> float:
    """Return the longest stall of a loop that does nothing for a while: what the machine itself adds."""
    meter = StallMeter()
    async with meter.watch():
        await asyncio.sleep(3)
    return meter.longest


async def _timed(history: HistoryService, query: str) -> float:
    began = time.perf_counter()
    await history.search(Search(query), refresh=False)
    return time.perf_counter() - began


async def _hits(history: HistoryService, query: str) -> int:
    offset: int | None = 0
    hits = 0
    while offset is not None:
        answer = await history.search(Search(query, offset=offset, limit=50), refresh=False)
        hits += len(answer.results)
        offset = answer.next_offset
        if hits > 1_000:
            return hits
    return hits


async def _refreshed(root: Path, history: HistoryService) -> float:
    """Refresh after one session grew by a pair; the first refresh only warms up."""
    await history.refresh(Host.PI)
    times = []
    sessions = default_directory(root / "agent", str(root / "workspace"))
    for number in range(7):
        with (sessions / f"{number:03}.jsonl").open("ab") as file:
            file.write(jsonl([pi_user("q-new", f"a{PAIRS - 1}", "more"), pi_assistant("a-new", "q-new", "more")]))
        began = time.perf_counter()
        (answer,) = await history.refresh(Host.PI)
        times.append(time.perf_counter() - began)
        assert answer.updated == 1
    return median(times)


def _published(root: Path) -> float:
    """Publish one archive as it is but for its stamp, a few times."""
    folder = ArchiveFolder(root / "workspace", Host.PI)
    archives = folder.load().archives
    archive = archives[min(archives)]
    assert len(encode(archive)) > 400_000
    times = []
    for _ in range(15):
        began = time.perf_counter()
        folder.update(archive.session, _touched)
        times.append(time.perf_counter() - began)
    return median(times)


def _touched(current: SessionArchive | None, _root: NodeId) -> SessionArchive:
    assert current is not None
    return replace(current, scan=replace(current.scan, mtime_ns=current.scan.mtime_ns + 1))


def figures() -> tuple[list[Figure], list[str]]:
    """Make the workspace, measure the archive in a process of its own, and the alternatives over the same text."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make(root)
        began = time.perf_counter()
        (report,) = asyncio.run(service(root).refresh(Host.PI))
        index = time.perf_counter() - began
        assert report.pairs == SESSIONS * PAIRS
        size = sum(path.stat().st_size for path in (root / "workspace").rglob("*.json"))
        compared = alternatives.compare(default_directory(root / "agent", str(root / "workspace")), QUERIES)
        child = subprocess.run(  # noqa: S603 - this very module
            [sys.executable, "-m", __name__ if __name__ != "__main__" else "tests.perf.archive", folder],
            stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        found: dict[str, float] = json.loads(child.stdout)
    return _figures(found, size), _table(found, index, size, compared)


def _figures(found: dict[str, float], size: int) -> list[Figure]:
    what = f"archive of {SESSIONS * PAIRS:,} pairs, {size / 1e6:.0f} MB"
    middle = median([found[f"query {query}"] for query in QUERIES])
    slowest = f"the slowest query {max(found[f'query {query}'] for query in QUERIES) * 1000:.1f} ms"
    stall = f"{ROUNDS * len(QUERIES)} queries, the first cold, 8 refreshes; an idle loop {found['idle'] * 1000:.1f} ms"
    return [
        Figure(f"{what}: first query, cold", found["cold"], 1.5, "s", "load, fold and search"),
        Figure(f"{what}: warm query, median", middle * 1000, 50, "ms", slowest),
        Figure(f"{what}: memory (RSS)", found["memory"] / 1e6, 450, "MB", f"{found['before'] / 1e6:.0f} MB before"),
        Figure(f"{what}: longest stall of the event loop", found["stall"] * 1000, 20, "ms", stall),
        Figure("refresh after one session of 450 kB grew", found["refresh"] * 1000, 100, "ms", "median of 7"),
        Figure("publish of an archive of 450 kB", found["publish"] * 1000, 5, "ms", "median of 15"),
    ]


def _table(found: dict[str, float], index: float, size: int, compared: list[alternatives.Alternative]) -> list[str]:
    """Put the archive and the alternatives side by side; times in milliseconds, hits behind them."""
    ours = alternatives.Alternative(
        "this archive",
        index,
        size,
        {query: (found[f"query {query}"], int(found[f"hits {query}"])) for query in QUERIES},
    )
    return [f"index cost and warm query times over the same {SESSIONS * PAIRS:,} pairs:", *map(str, [ours, *compared])]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(asyncio.run(measure(Path(sys.argv[1])))))
    else:
        reached, table = figures()
        sys.stdout.write("\n".join([*map(str, reached), *table, ""]))
        sys.exit(int(any(figure.value > figure.reach for figure in reached)))

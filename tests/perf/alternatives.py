"""What a person could use instead, over the same native files: ripgrep, and SQLite's trigram index."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.perf.measure import median

ROUNDS: Final = 7


@dataclass(frozen=True, slots=True)
class Alternative:
    """``index`` in seconds and ``size`` in bytes, before the first query; each query with its seconds and its hits."""

    name: str
    index: float
    size: int
    queries: Mapping[str, tuple[float, int | None]]

    def __str__(self) -> str:
        told = ", ".join(
            f"{query!r} not possible" if hits is None else f"{query!r} {seconds * 1000:.1f} ms ({hits} hits)"
            for query, (seconds, hits) in self.queries.items()
        )
        return f"  {self.name}: index {self.index:.1f} s, {self.size / 1e6:.0f} MB; {told}"


def compare(sessions: Path, queries: Sequence[str]) -> list[Alternative]:
    """Measure both."""
    return [_ripgrep(sessions, queries), _fts5(sessions, queries)]


def _timed(call: Callable[[str], int], query: str) -> tuple[float, int]:
    times, hits = [], 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        hits = call(query)
        times.append(time.perf_counter() - began)
    return median(times), hits


def _ripgrep(sessions: Path, queries: Sequence[str]) -> Alternative:
    program = shutil.which("rg", path=str(Path(sys.executable).parent)) or shutil.which("rg")
    if program is None:
        return Alternative("ripgrep (not installed)", 0, 0, dict.fromkeys(queries, (0.0, None)))

    def lines(query: str) -> int:
        command = [program, "--ignore-case", "--fixed-strings", "--no-filename", "--count", query, str(sessions)]
        out = subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout  # noqa: S603 - the program found
        return sum(map(int, out.split()))

    found = {each: _timed(lines, each) for each in queries}
    return Alternative("ripgrep, lines of the native files", 0, 0, found)


def _fts5(sessions: Path, queries: Sequence[str]) -> Alternative:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "index.db"
        began = time.perf_counter()
        database = sqlite3.connect(file)
        database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='trigram')")
        database.executemany("INSERT INTO texts VALUES (?)", ((text,) for text in _texts(sessions)))
        database.commit()
        index = time.perf_counter() - began

        def rows(query: str) -> int:
            quoted = '"' + query.replace('"', '""') + '"'
            return len(database.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (quoted,)).fetchall())

        found = {each: _timed(rows, each) for each in queries}
        size = file.stat().st_size
        database.close()
    return Alternative("SQLite FTS5, trigrams of all texts", index, size, found)


def _texts(sessions: Path) -> Iterator[str]:
    for path in sorted(sessions.glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            record = json.loads(line) if line else {}
            content = record.get("message", {}).get("content", "")
            yield from [content] if isinstance(content, str) else (block["text"] for block in content)

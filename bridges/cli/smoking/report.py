"""The report: JSON for programs, Markdown and a table for people. All say of every line whether it is live."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bridges import private_file
from bridges.cli.smoking.lines import Item, Side, Verdict, Why
from bridges.cli.smoking.record import Line, Record, counts
from bridges.cli.table import rendered
from bridges.config import APP
from i18n import Key, Words

ITEMS: Final[Mapping[Item, Key]] = {
    Item.CONNECT: Key.SMOKE_CONNECT,
    Item.HISTORY: Key.SMOKE_HISTORY,
    Item.HISTORY_MOST: Key.SMOKE_HISTORY_MOST,
    Item.ATTACHMENT: Key.SMOKE_ATTACHMENT,
    Item.GROUP: Key.SMOKE_GROUP,
    Item.STRANGER: Key.SMOKE_STRANGER,
    Item.BATCH: Key.SMOKE_BATCH,
    Item.HELP_EN: Key.SMOKE_HELP_EN,
    Item.HELP_ZH: Key.SMOKE_HELP_ZH,
    Item.RUNNING: Key.SMOKE_RUNNING,
    Item.QUESTION: Key.SMOKE_QUESTION,
    Item.APPROVAL: Key.SMOKE_APPROVAL,
    Item.DUPLICATE: Key.SMOKE_DUPLICATE,
    Item.ECHO: Key.SMOKE_ECHO,
    Item.FIRST_SEGMENT: Key.SMOKE_FIRST_SEGMENT,
    Item.SECOND_SEGMENT: Key.SMOKE_SECOND_SEGMENT,
    Item.BIND: Key.SMOKE_BIND,
}
VERDICTS: Final[Mapping[Verdict, Key]] = {
    Verdict.PASS: Key.SMOKE_PASS,
    Verdict.FAIL: Key.SMOKE_FAIL,
    Verdict.NOT_DONE: Key.SMOKE_NOT_DONE,
}
SIDES: Final[Mapping[Side, Key]] = {Side.SIMULATED: Key.SMOKE_SIMULATED, Side.LIVE: Key.SMOKE_LIVE}
REASONS: Final[Mapping[Why, Key]] = {
    Why.NOT_ASKED: Key.SMOKE_WHY_NOT_ASKED,
    Why.NO_BOT: Key.SMOKE_WHY_NO_BOT,
    Why.PLATFORM: Key.SMOKE_WHY_PLATFORM,
    Why.MODEL: Key.SMOKE_WHY_MODEL,
    Why.SWITCHES: Key.SMOKE_WHY_SWITCHES,
    Why.NOBODY: Key.SMOKE_WHY_NOBODY,
    Why.OPEN: Key.SMOKE_WHY_OPEN,
    Why.OVERRIDDEN: Key.SMOKE_WHY_OVERRIDDEN,
    Why.NOT_INSTALLED: Key.SMOKE_WHY_NOT_INSTALLED,
    Why.NOT_CONNECTED: Key.SMOKE_WHY_NOT_CONNECTED,
    Why.NOT_REACHED: Key.SMOKE_WHY_NOT_REACHED,
    Why.SKIPPED: Key.SMOKE_WHY_SKIPPED,
    Why.TIMED_OUT: Key.SMOKE_WHY_TIMED_OUT,
    Why.NOTHING_SENT: Key.SMOKE_WHY_NOTHING_SENT,
    Why.NO_SESSION: Key.SMOKE_WHY_NO_SESSION,
    Why.TOO_SHORT: Key.SMOKE_WHY_TOO_SHORT,
    Why.NOT_ALLOWED: Key.SMOKE_WHY_NOT_ALLOWED,
    Why.CASE: Key.SMOKE_WHY_CASE,
    Why.WRONG_REPLY: Key.SMOKE_WHY_WRONG_REPLY,
    Why.NO_REPLY: Key.SMOKE_WHY_NO_REPLY,
    Why.NOT_SENT: Key.SMOKE_WHY_NOT_SENT,
    Why.HOST_CALLED: Key.SMOKE_WHY_HOST_CALLED,
    Why.CAME_BACK: Key.SMOKE_WHY_CAME_BACK,
}
MARKS: Final[Mapping[Verdict, str]] = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.NOT_DONE: "–"}


@dataclass(frozen=True, slots=True)
class Paper:
    """Where the report lies, in files whose names begin with the time of the run."""

    folder: Path
    stem: str

    @classmethod
    def of(cls, record: Record, folder: Path) -> Paper:
        """Return the place of the report of this run."""
        return cls(folder, f"smoke-{datetime.fromtimestamp(record.began, UTC):%Y%m%dT%H%M%SZ}-{record.side}")

    @property
    def markdown(self) -> Path:
        """Return the file for people."""
        return self.folder / f"{self.stem}.md"

    @property
    def log(self) -> Path:
        """Return the file for the program's log of the run."""
        return self.folder / f"{self.stem}.log"

    def save(self, record: Record, words: Words) -> None:
        """Write both files, for this user alone and each whole at every moment. Raises OSError."""
        private_file.write(self.folder / f"{self.stem}.json", as_json(record).encode())
        private_file.write(self.markdown, as_markdown(record, words).encode())


def as_json(record: Record) -> str:
    """Return all of it for programs."""
    told = {
        "program": APP,
        "version": record.version,
        "asked_for": record.side,
        "began": _iso(record.began),
        "ended": _iso(record.ended),
        "harness_calls": record.calls,
        "counts": {side: {each: _counts(record, side)[each] for each in Verdict} for side in Side},
        "lines": [_told(line) for line in record],
    }
    return json.dumps(told, ensure_ascii=False, indent=2) + "\n"


def _told(line: Line) -> dict[str, str | float | None]:
    spot, result = line.spot, line.result
    return {
        "marked": spot.side,
        "channel": spot.channel,
        "bot": spot.bot,
        "endpoint": spot.endpoint,
        "item": spot.item,
        "result": result.verdict,
        "why": result.why,
        "detail": result.detail,
        "seconds": None if result.seconds is None else round(result.seconds, 3),
        "at": _iso(line.at),
    }


def _counts(record: Record, side: Side) -> Mapping[Verdict, int]:
    return counts(line for line in record if line.spot.side is side)


def as_markdown(record: Record, words: Words) -> str:
    """Return all of it for people."""
    calls = ", ".join(f"{name} {count}" for name, count in sorted(record.calls.items()))
    head = [
        f"# {words(Key.SMOKE_TITLE)}",
        "",
        f"- {words(Key.SMOKE_VERSION, version=record.version)}",
        f"- {words(Key.SMOKE_ASKED_FOR, side=words(SIDES[record.side]))}",
        f"- {words(Key.SMOKE_TIMES, began=_iso(record.began), ended=_iso(record.ended) or '–')}",
        f"- {words(Key.SMOKE_CALLS, calls=calls or words(Key.SMOKE_NO_CALLS))}",
        "",
        *(f"{text}\n" for text in (promise(record, words), words(Key.SMOKE_SIDES), words(Key.SMOKE_SECONDS))),
        f"## {words(Key.SMOKE_SUMMARY)}",
        "",
        *_grid(_summary_headings(words), _summary(record, words)),
        "",
        f"## {words(Key.SMOKE_LINES)}",
        "",
        *_grid([words(key) for key in _HEADINGS], (_cells(line, words) for line in record)),
    ]
    return "\n".join(head) + "\n"


def promise(record: Record, words: Words) -> str:
    """Return what the run does not do."""
    return words(Key.SMOKE_HARMLESS if record.side is Side.LIVE else Key.SMOKE_ALL_SIMULATED)


_HEADINGS: Final = (
    Key.SMOKE_MARKED,
    Key.SMOKE_CHANNEL,
    Key.BOTS_BOT,
    Key.SMOKE_ENDPOINT,
    Key.SMOKE_ITEM,
    Key.SMOKE_RESULT,
    Key.SMOKE_WHY,
    Key.SMOKE_TOOK,
    Key.SMOKE_AT,
)


def _cells(line: Line, words: Words) -> list[str]:
    spot, result = line.spot, line.result
    return [
        words(SIDES[spot.side]),
        spot.channel,
        spot.bot or "",
        spot.endpoint,
        words(ITEMS[spot.item]),
        words(VERDICTS[result.verdict]),
        reason(line, words),
        "" if result.seconds is None else f"{result.seconds:.2f}",
        _iso(line.at) or "",
    ]


def reason(line: Line, words: Words) -> str:
    """Return why a line is no pass, with its detail; empty for a pass."""
    result = line.result
    if result.why is None:
        return ""
    told = words(REASONS[result.why])
    return f"{told} ({result.detail})" if result.detail else told


def _grid(headings: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [
        _row(headings),
        _row(["---"] * len(headings)),
        *map(_row, rows),
    ]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def as_table(record: Record, words: Words) -> str:
    """Return the summary, and below it what failed or is still to be done."""
    lines = [rendered(_summary_headings(words), _summary(record, words))]
    if sentences := _sentences(record.open_lines(), words):
        lines += ["", *sentences]
    return "\n".join(lines)


def _summary_headings(words: Words) -> list[str]:
    return [words(Key.SMOKE_CHANNEL), *(words(SIDES[side]) for side in Side)]


def _summary(record: Record, words: Words) -> list[list[str]]:
    """Count the lines of each bot by side; a simulated platform of ours stands with its channel."""
    names = sorted({(line.spot.channel, line.spot.bot or "") for line in record})
    rows: list[list[str]] = []
    for channel, bot in names:
        own = [line for line in record if (line.spot.channel, line.spot.bot or "") == (channel, bot)]
        cells = [counted((line for line in own if line.spot.side is side), words) for side in Side]
        rows.append([f"{channel}/{bot}" if bot else channel, *cells])
    return rows


def counted(lines: Iterable[Line], words: Words) -> str:
    """Return in words how many ended how; nothing for none."""
    found = counts(lines)
    if not found:
        return ""
    passed, failed, undone = (found[each] for each in Verdict)
    return words(Key.SMOKE_COUNTS, passed=passed, failed=failed, undone=undone)


def _sentences(lines: Iterable[Line], words: Words) -> list[str]:
    """Return a sentence for all lines of a bot that ended alike for the same reason."""
    alike: dict[tuple[str, Side, Verdict, str], list[str]] = {}
    for line in lines:
        spot = line.spot
        name = f"{spot.channel}/{spot.bot}" if spot.bot else spot.channel
        key = (name, spot.side, line.result.verdict, reason(line, words))
        alike.setdefault(key, []).append(words(ITEMS[spot.item]))
    return [
        words(
            Key.SMOKE_ALIKE,
            mark=MARKS[verdict],
            bot=name,
            side=words(SIDES[side]),
            result=words(VERDICTS[verdict]),
            why=why,
            items="\n".join(f"    {item}" for item in items),
        )
        for (name, side, verdict, why), items in alike.items()
    ]


def _iso(time: float | None) -> str | None:
    return None if time is None else datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")

"""The last page of a run, in plain words: what was live, what was simulated, and what did not run and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

_LIVE = {
    "live": "the real embedded Harness",
    "legacy_live": "a real legacy Harness",
    "pi_live": "a real Pi",
}


def write(reporter: pytest.TerminalReporter) -> None:
    """Print the page."""
    reporter.section("live, simulated, not run")
    called = [report for kind in ("passed", "failed") for report in _reports(reporter, kind) if report.when == "call"]
    skipped = [report for report in _reports(reporter, "skipped") if report.skipped]
    ran, left = (Counter(map(_side, group)) for group in (called, skipped))
    for marker, words in _LIVE.items():
        reporter.line(f"live, against {words}: {ran[marker]} ran, {left[marker]} did not run")
    simulated = ran[None]
    reporter.line(f"simulated or without any other side: {simulated} ran (fakes on real sockets of this machine)")
    if not skipped:
        reporter.line("not run: none")
    for reason, count in sorted(Counter(map(_reason, skipped)).items()):
        reporter.line(f"not run: {count} because: {reason}")


def _side(report: pytest.TestReport) -> str | None:
    """Return the marker of the real other side. The folder of the live tests is a keyword too: the longer one wins."""
    return next((marker for marker in sorted(_LIVE, key=len, reverse=True) if marker in report.keywords), None)


def _reports(reporter: pytest.TerminalReporter, kind: str) -> Iterator[pytest.TestReport]:
    for report in reporter.stats.get(kind, []):
        if isinstance(report, pytest.TestReport):
            yield report


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return text.removeprefix("Skipped: ")

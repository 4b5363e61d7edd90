"""Print the branch coverage of the packages that promise one, and fail below the reach.

Usage: branches.py COVERAGE_JSON PACKAGE…
"""

import json
import sys
from pathlib import Path

REACH = 95.0


def main(report: str, *packages: str) -> int:
    """Return the exit code: 0 when every package reaches, 1 otherwise."""
    files = json.loads(Path(report).read_text())["files"]
    failed = False
    for package in packages:
        summaries = [entry["summary"] for name, entry in files.items() if name.startswith(f"{package}/")]
        covered = sum(summary["covered_branches"] for summary in summaries)
        total = sum(summary["num_branches"] for summary in summaries)
        percent = 100.0 * covered / total if total else 100.0
        reached = percent >= REACH and bool(summaries)
        failed |= not reached
        print(f"branches of {package}: {covered} of {total}, {percent:.1f} %", "" if reached else f"(below {REACH} %)")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

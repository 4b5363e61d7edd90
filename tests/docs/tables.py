"""The words of generated tables: ``docs/tables/*.toml``, both languages beside each other."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Sequence

from i18n import Language
from tests.guards.sources import ROOT


@functools.cache
def told(name: str) -> dict[str, dict[Language, list[str]]]:
    """Return the entries of one file, ``TABLE.ENTRY``, each with its cells in both languages."""
    tree = tomllib.loads((ROOT / "docs" / "tables" / f"{name}.toml").read_text("utf-8"))
    return {
        f"{table}.{entry}": {Language(language): cells for language, cells in both.items()}
        for table, entries in tree.items()
        for entry, both in entries.items()
    }


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(headings), f"|{'---|' * len(headings)}", *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"

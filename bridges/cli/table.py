"""Tables for people to read in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE: Final = 500
"""Columns where no terminal sets a limit: one row, one line."""


def console(*, stderr: bool = False) -> Console:
    """Return a console that shows text as it is, as wide as the terminal."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = _WIDE
    return made


def rendered(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without a frame; the last column takes what room there is, the others keep their words whole."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, no_wrap=heading is not headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    paper = console()
    with paper.capture() as captured:
        paper.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())

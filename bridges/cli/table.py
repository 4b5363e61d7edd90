"""Tables for people to read in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from io import StringIO
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


def rendered(headings: Sequence[str], rows: Iterable[Sequence[str]], *, folds: Collection[int] = ()) -> str:
    """Return a table without a frame; the last column takes what room there is, the others keep their words whole.

    The columns ``folds``, counted from 0, take a third of the width at most and go on in the next line.
    """
    screen, paper = console(), StringIO()
    table = Table(box=None, pad_edge=False)
    for index, heading in enumerate(headings):
        last, widest = heading is headings[-1], screen.width // 3 if index in folds else None
        table.add_column(heading, no_wrap=not last and widest is None, overflow="fold", max_width=widest)
    for row in rows:
        table.add_row(*map(Text, row))
    screen.file = paper
    screen.print(table)
    return "\n".join(line.rstrip() for line in paper.getvalue().splitlines())

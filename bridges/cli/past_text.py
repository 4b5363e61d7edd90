"""The archive's answers for reading in a terminal: tables, with what was searched for highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from archive.answers import Child, Parent, ReadAnswer, SearchAnswer, Warned
from archive.fold import fold, spans
from bridges.cli.table import console as _console
from commands import archive_words
from commands.cleaning import clean, one_line
from i18n import Key, Words

_HIT: Final = "bold reverse"
_GAP: Final = "  "
_PREVIEW: Final = 40
"""Columns that a preview needs beside the rest of its row."""


def search(answer: SearchAnswer, query: str, words: Words) -> None:
    """Print a page of results, or why there is none."""
    console = _console()
    if answer.reason is not None:
        console.print(archive_words.reason(answer.reason, words))
    else:
        _results(console, answer, query, words)
    if answer.next_offset is not None:
        console.print(words(Key.PAST_NEXT_PAGE, offset=answer.next_offset))
    warnings(answer.warnings, words)


def _results(console: Console, answer: SearchAnswer, query: str, words: Words) -> None:
    """Print a table; where no room is left for previews, each result on two lines."""
    rows: list[tuple[list[str], Text]] = []
    for result in answer.results:
        marks = archive_words.marks(
            completed=result.completed, written=result.ready, shared=result.shared is True, words=words
        )
        what = " · ".join([archive_words.kind(result.kind, words), *marks])
        facts = [archive_words.local(result.end), result.host, what, result.id]
        rows.append((facts, highlighted(one_line(result.preview), query)))
    taken = sum(max(map(cell_len, column)) + len(_GAP) for column in zip(*(facts for facts, _ in rows), strict=True))
    if console.width - taken < _PREVIEW:
        for facts, preview in rows:
            console.print(Text(_GAP.join(facts), style="bold"), Padding(preview, (0, 0, 1, 2)), sep="\n")
        return
    table = Table(box=None, pad_edge=False)
    for key in (Key.PAST_COLUMN_WHEN, Key.PAST_COLUMN_SOURCE, Key.PAST_COLUMN_WHAT):
        table.add_column(words(key), no_wrap=True)
    table.add_column(words(Key.PAST_COLUMN_PREVIEW), overflow="fold")
    table.add_column(words(Key.PAST_COLUMN_ID), no_wrap=True)
    for (when, source, what, name), preview in rows:
        table.add_row(when, source, what, preview, name)
    console.print(table)


def highlighted(text: str, query: str) -> Text:
    """Return one line with every place that the query stands in marked."""
    shown = Text(text)
    wanted = fold(query)
    if wanted and not wanted.isspace():
        data = text.encode("utf-16-le")
        for start, end in spans(text, wanted):
            before, hit = data[: 2 * start].decode("utf-16-le"), data[2 * start : 2 * end].decode("utf-16-le")
            shown.stylize(_HIT, len(before), len(before) + len(hit))
    return shown


def read(answer: ReadAnswer, words: Words) -> None:
    """Print a node: what it is, its text, what is above and below it."""
    console = _console()
    marks = archive_words.marks(
        completed=answer.completed, written=answer.ready, shared=answer.shared is True, words=words
    )
    span = dict.fromkeys(map(archive_words.local, (answer.start, answer.end)))
    head = [archive_words.kind(answer.kind, words), answer.host, " – ".join(span), *marks]
    console.print(Text(" · ".join(head), style="bold"))
    if answer.text:
        console.print(Text(f"\n{clean(answer.text)}"))
    if answer.next_offset is not None:
        console.print(words(Key.PAST_NEXT_TEXT, offset=answer.next_offset))
    for key, nodes in ((Key.PBOT_ABOVE, answer.parents), (Key.PBOT_BELOW, answer.children)):
        _neighbours(console, words(key), nodes)
    if answer.next_children_offset is not None:
        console.print(words(Key.PAST_NEXT_CHILDREN, offset=answer.next_children_offset))
    warnings(answer.warnings, words)


def _neighbours(console: Console, title: str, nodes: Sequence[Parent | Child]) -> None:
    if nodes:
        console.print(f"\n{title}")
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for node in nodes:
            table.add_row(node.id, one_line(node.preview))
        console.print(table)


def warnings(given: Sequence[Warned], words: Words) -> None:
    """Print warnings beside the answer."""
    console = _console(stderr=True)
    for each in given:
        console.print(words(Key.PBOT_WARNED, warning=archive_words.warning(each, words)), style="yellow")

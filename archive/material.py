"""What a summary is made of, as JSON lines for the model, in batches it can take (spec ARCHIVE 5).

The whole text is kept where it is; only the copy for the model is cut. What needs more than one batch is summarised
batch by batch, and the results once more together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Final

import msgspec

from archive.body import texts
from archive.model import Node, NodeId, Pair
from archive.times import Instant
from archive.tree import first_pair, last_pair, unfinished
from archive.writers import Writer

BATCH: Final = 48_000
"""Characters of texts in one call."""
LONGEST: Final = 8_000
"""Characters of a summary; a longer one is cut. Far less than a batch, so that merging comes to an end."""


class _Record(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    item: int
    start: Instant
    end: Instant
    completed: bool
    end_reason: str | None = None
    source: str = msgspec.field(name="from")
    part: str | None = None
    text: str


def instructions() -> str:
    """Return the prompt that goes with every batch."""
    return resources.files("archive.prompts").joinpath("history-summary.md").read_text("utf-8")


def records(nodes: Mapping[NodeId, Node], children: Iterable[NodeId]) -> Iterator[_Record]:
    """Yield the texts of four children, long ones in parts."""
    for item, name in enumerate(children, 1):
        node = nodes[name]
        start, end = first_pair(nodes, name).start, last_pair(nodes, name).end
        whole = not unfinished(nodes, name)
        reason = node.end_reason.value if isinstance(node, Pair) and not whole else None
        for where, text in texts(node):
            yield from _in_parts(
                _Record(item=item, start=start, end=end, completed=whole, end_reason=reason, source=where, text=text)
            )


def _in_parts(record: _Record) -> Iterator[_Record]:
    pieces = [record.text[at : at + BATCH] for at in range(0, len(record.text), BATCH)]
    for number, piece in enumerate(pieces, 1):
        part = f"{number}/{len(pieces)}" if len(pieces) > 1 else None
        yield msgspec.structs.replace(record, text=piece, part=part)


def _batches(given: Iterable[_Record]) -> list[list[_Record]]:
    batches: list[list[_Record]] = []
    room = 0
    for record in given:
        if len(record.text) > room:
            batches.append([])
            room = BATCH
        batches[-1].append(record)
        room -= len(record.text)
    return batches


async def summarise(writer: Writer, prompt: str, given: Iterable[_Record]) -> str:
    """Have the model summarise the records. Raises WriterFailed."""
    batches = _batches(given)
    written = [await _one(writer, prompt, batch) for batch in batches]
    if len(written) == 1:
        return written[0]
    covered = (
        _covering(number, batch, text) for number, (batch, text) in enumerate(zip(batches, written, strict=True), 1)
    )
    return await summarise(writer, prompt, covered)


async def _one(writer: Writer, prompt: str, batch: list[_Record]) -> str:
    material = "\n".join(msgspec.json.encode(record).decode() for record in batch)
    return (await writer.write(prompt, material))[:LONGEST]


def _covering(number: int, batch: list[_Record], text: str) -> _Record:
    return _Record(
        item=number,
        start=min(record.start for record in batch),
        end=max(record.end for record in batch),
        completed=all(record.completed for record in batch),
        source="summary",
        text=text,
    )

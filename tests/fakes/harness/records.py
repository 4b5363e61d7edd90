"""Records of a modern page: one per event, and on 0.1.2 one per run of chunks. Source: facts HARNESS 4.3."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.fakes.harness.dialect import Obj

PACKED = {
    "text-delta": "chunkrow/text-chunks",
    "reasoning-delta": "chunkrow/reasoning-chunks",
    "tool-call-delta": "chunkrow/tool-call-chunks",
}
LEAST_RUN = 3


def plain(events: Sequence[Obj]) -> list[Obj]:
    """Return one record per event."""
    return [{"type": "event", "event": event} for event in events]


def packed(events: Sequence[Obj]) -> list[Obj]:
    """Return records with every run of at least three deltas of one block folded into one."""
    records: list[Obj] = []
    run: list[Obj] = []
    for event in events:
        if run and _key(event) != _key(run[0]):
            records.extend(_fold(run))
            run = []
        if _key(event) is None:
            records.extend(plain([event]))
        else:
            run.append(event)
    return records + _fold(run)


def _chunk(event: Obj) -> Obj | None:
    data = event.get("data")
    chunk = data.get("chunk") if isinstance(data, dict) else None
    return chunk if isinstance(chunk, dict) and chunk.get("type") in PACKED else None


def _key(event: Obj) -> tuple[object, ...] | None:
    """Return what all events of a run have in common, None for an event that is never packed."""
    chunk, data = _chunk(event), event.get("data")
    if chunk is None or not isinstance(data, dict):
        return None
    return chunk["type"], chunk["index"], chunk.get("id"), data["turn"], data["step"]


def _fold(run: Sequence[Obj]) -> list[Obj]:
    if len(run) < LEAST_RUN:
        return plain(run)
    first, chunks = run[0], [chunk for event in run if (chunk := _chunk(event)) is not None]
    times = [int(str(event["time"])) for event in run]
    head, data = chunks[0], first["data"]
    assert isinstance(data, dict)
    row: Obj = {"turn": data["turn"], "step": data["step"], "index": head["index"]}
    row["dt"] = [later - earlier for earlier, later in pairwise(times)]
    if head["type"] == "tool-call-delta":
        row |= {"id": head["id"], "name": head["name"], "args": [chunk["argumentsDelta"] for chunk in chunks]}
    else:
        row["texts"] = [chunk["text"] for chunk in chunks]
    kind = PACKED[str(head["type"])]
    return [{"type": "chunks", "event": {"type": kind, "seq": first["seq"], "time": first["time"], "data": row}}]

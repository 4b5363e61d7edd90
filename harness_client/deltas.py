"""Streamed answer text, in the two shapes hosts know: logged chunks (v0 logs) and the assistant stream (0.1.5 on)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Final

from harness_client.carrier import decode
from harness_client.events import (
    AssistantMessage,
    ChunkFinish,
    Event,
    StreamReset,
    TextDelta,
    TurnEnd,
    TurnStart,
    Unknown,
    parse_event,
)
from harness_client.streams import Page
from harness_client.wire import Wire

CHUNK_EVENT: Final = "assistant/chunk"
_BREATH: Final = 128
"""Records read between two turns of the event loop."""


class _Reason(Wire):
    kind: str | None = None


class _Chunk(Wire):
    type: str
    text: str = ""
    reason: _Reason | None = None

    def item(self, turn: int, step: int) -> TextDelta | StreamReset | None:
        """Return what the chunk says of the answer text. A failed attempt ends with ``finish error``."""
        if self.type == "text-delta":
            return TextDelta(turn, step, self.text)
        if self.type == "finish" and self.reason is not None and self.reason.kind == "error":
            return StreamReset(turn, step)
        return None


class _ChunkData(Wire):
    turn: int
    step: int
    chunk: _Chunk


class _ChunkEvent(Wire):
    data: _ChunkData


class _Record(Wire):
    event: object


def logged(event: Event, raw: object) -> Iterator[TextDelta | StreamReset | Event]:
    """Return what a followed event says: the streamed text a logged chunk holds, then the event itself."""
    if isinstance(event, ChunkFinish) or (isinstance(event, Unknown) and event.type == CHUNK_EVENT):
        data = decode(raw, _ChunkEvent, CHUNK_EVENT).data
        said = data.chunk.item(data.turn, data.step)
        if said is not None:
            yield said
    yield event


async def partial(page: Page) -> TextDelta | None:
    """Return what the running step has said so far, from the chunks at the end of a page of a v0 log."""
    told = [event.seq for event in page.events if isinstance(event, AssistantMessage | TurnStart | TurnEnd)]
    said: TextDelta | None = None
    for count, seq in enumerate(sorted(seq for seq in page.sources if seq > max(told, default=-1)), 1):
        if count % _BREATH == 0:
            await asyncio.sleep(0)
        raw = decode(json.loads(page.sources[seq]), _Record, CHUNK_EVENT).event
        for item in logged(parse_event(raw), raw):
            said = _joined(said, item)
    return said


def _joined(said: TextDelta | None, item: TextDelta | StreamReset | Event) -> TextDelta | None:
    match item:
        case StreamReset():
            return None
        case TextDelta(turn=turn, step=step, text=text):
            same = said is not None and (said.turn, said.step) == (turn, step)
            return TextDelta(turn, step, said.text + text if said and same else text)
        case _:
            return said


class _Packed(Wire):
    """One entry of a packed stream: a run of text pieces, or a single chunk."""

    type: str
    texts: tuple[str, ...] = ()
    chunk: _Chunk | None = None

    def text(self) -> str:
        if self.type == "text-chunks":
            return "".join(self.texts)
        return self.chunk.text if self.chunk is not None and self.chunk.type == "text-delta" else ""


class _Attempt(Wire):
    attempt_id: str
    turn: int
    step: int
    stream: tuple[_Packed, ...] = ()


class AssistantStream(Wire):
    """``assistantStream`` of a follow's snapshot."""

    active_attempt: _Attempt | None = None


class _Outcome(Wire):
    kind: str
    event_type: str | None = None


class Frame(Wire):
    """One ``assistant-stream`` frame: start, chunk or end of an attempt."""

    type: str
    attempt_id: str
    turn: int = 0
    step: int = 0
    chunk: _Chunk | None = None
    outcome: _Outcome | None = None


class Attempts:
    """The attempt that streams now: frames name it by id only."""

    def __init__(self, stream: AssistantStream | None) -> None:
        """Begin where the snapshot left off."""
        active = stream.active_attempt if stream is not None else None
        self._id = active.attempt_id if active else None
        self._turn = active.turn if active else 0
        self._step = active.step if active else 0
        self.partial = (
            TextDelta(active.turn, active.step, "".join(each.text() for each in active.stream)) if active else None
        )

    def take(self, frame: Frame) -> TextDelta | StreamReset | None:
        """Take the next frame; return what it says of the answer text."""
        if frame.type == "start":
            self._id, self._turn, self._step = frame.attempt_id, frame.turn, frame.step
        elif frame.attempt_id != self._id:
            return None  # an attempt whose start we never saw says nothing about its turn
        elif frame.type == "chunk" and frame.chunk is not None:
            return frame.chunk.item(self._turn, self._step)
        elif frame.type == "end":
            self._id = None
            if frame.outcome is None or frame.outcome.event_type != "assistant/message":
                return StreamReset(self._turn, self._step)
        return None

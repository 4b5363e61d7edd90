"""One attempt of the model at a step: its chunks, in the log or beside it. Source: facts HARNESS 4.5, 5."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.fakes.harness import events
from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.model import Piece, Step, Tool
from tests.fakes.harness.notices import Streamed

if TYPE_CHECKING:
    from tests.fakes.harness.live import LiveSession

DELTAS = {"text-delta": "text-chunks", "reasoning-delta": "reasoning-chunks", "tool-call-delta": "tool-call-chunks"}


def pack(chunks: Sequence[tuple[int, Obj]]) -> list[Obj]:
    """Fold runs of deltas of one block into one record each, as formats 3 and 4 keep them."""
    packed: list[Obj] = []
    times: list[int] = []
    run: tuple[object, object] | None = None
    for time, chunk in chunks:
        kind = DELTAS.get(str(chunk["type"]))
        if kind is None:
            packed.append({"type": "chunk", "time": time, "chunk": chunk})
            run = None
            continue
        piece = chunk["argumentsDelta"] if kind == "tool-call-chunks" else chunk["text"]
        if run == (kind, chunk["index"]):
            record = packed[-1]
            record["dt"] = [*_list(record["dt"]), time - times[-1]]
            key = "args" if kind == "tool-call-chunks" else "texts"
            record[key] = [*_list(record[key]), piece]
        else:
            packed.append(_first_of_run(kind, time, chunk, piece))
            run = (kind, chunk["index"])
        times.append(time)
    return packed


def _first_of_run(kind: str, time: int, chunk: Obj, piece: object) -> Obj:
    record: Obj = {"type": kind, "time0": time, "index": chunk["index"], "dt": []}
    if kind == "tool-call-chunks":
        return record | {"id": chunk["id"], "name": chunk["name"], "args": [piece]}
    return record | {"texts": [piece]}


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


class Attempt:
    """Streams one step's answer and remembers what was said, so that a cancelled step keeps its partial text."""

    def __init__(self, session: LiveSession, turn: int, step: int) -> None:
        self._session, self._turn, self._step = session, turn, step
        self._kept: list[tuple[int, Obj]] = []
        self._ends: list[Obj] = []
        self.blocks: list[Obj] = []
        self.seqs: list[int] = []
        session.attempts += 1
        self.id = f"{session.id}:{session.attempts}"
        self.started_after = session.log.cursor
        self._delivered = False
        if self._beside:
            self._frame("start", {"turn": turn, "step": step, "startedAfterSeq": self.started_after})

    @property
    def _beside(self) -> bool:
        return not self._session.world.dialect.chunks_in_log

    @property
    def packed(self) -> list[Obj]:
        """The chunks so far, folded."""
        return pack(self._kept)

    @property
    def snapshot(self) -> Obj:
        """What somebody who begins to follow now is told of the attempt."""
        return {
            "attemptId": self.id,
            "startedAfterSeq": self.started_after,
            "turn": self._turn,
            "step": self._step,
            "nextIndex": len(self._kept),
            "stream": self.packed,
        }

    async def say(self, step: Step, calls: Sequence[tuple[str, Tool]]) -> None:
        """Stream reasoning, text and tool calls."""
        await self._block("reasoning", step.reasoning)
        await self._block("text", step.pieces)
        for call, tool in calls:
            await self._call(call, tool)
        for end in self._ends:
            self._chunk(end)
        dialect = self._session.world.dialect
        self._chunk({"type": "usage", "usage": events.usage(dialect, len(self.blocks))})
        self._finish("tool-calls" if calls else step.finish)

    async def fail(self, failure: Obj) -> None:
        """End in an error before any text."""
        await asyncio.sleep(0)
        self._chunk({"type": "finish", "reason": {"kind": "error", "failure": failure}})

    async def _block(self, kind: str, pieces: Sequence[Piece]) -> None:
        block: Obj | None = None
        for piece in pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            if block is None:
                block = {"type": kind, "text": ""}
                self._open(block, kind)
            block["text"] = f"{block['text']}{piece}"
            self._chunk({"type": f"{kind}-delta", "index": len(self.blocks) - 1, "text": piece})
            await asyncio.sleep(0)
        if block is not None:
            self._close()

    async def _call(self, call: str, tool: Tool) -> None:
        block: Obj = {"type": "tool-call", "id": call, "name": tool.name, "arguments": tool.arguments}
        self._open(block, "tool-call")
        delta: Obj = {"type": "tool-call-delta", "index": len(self.blocks) - 1, "id": call, "name": tool.name}
        self._chunk({**delta, "argumentsDelta": ""})
        self._chunk({**delta, "argumentsDelta": tool.arguments})
        await asyncio.sleep(0)
        self._close()

    def _open(self, block: Obj, kind: str) -> None:
        self.blocks.append(block)
        self._chunk({"type": "block-start", "index": len(self.blocks) - 1, "blockType": kind})

    def _close(self) -> None:
        index = len(self.blocks) - 1
        end: Obj = {"type": "block-end", "index": index, "block": dict(self.blocks[index])}
        if self._beside:
            self._chunk(end)
        else:
            self._ends.append(end)  # the chat/completions wire closes all blocks at its end

    def _finish(self, reason: str) -> None:
        self._chunk({"type": "finish", "reason": {"kind": reason}})

    def _chunk(self, chunk: Obj) -> None:
        session = self._session
        if not self._beside:
            data: Obj = {"turn": self._turn, "step": self._step, "chunk": chunk}
            self.seqs.append(session.write({"type": "assistant/chunk", "data": data}))
            return
        if not self._delivered and chunk["type"] != "finish":  # an answer at all: the provider has the request
            self._delivered = True
            session.deliver_log()
        time = session.world.mint.now()
        index = len(self._kept)
        self._kept.append((time, chunk))
        self._frame("chunk", {"index": index, "time": time, "chunk": chunk})

    def commit(self, event_type: str, seq: int) -> None:
        """Tell followers which event now holds what streamed."""
        outcome: Obj = {"kind": "committed", "eventType": event_type, "seq": seq}
        self._end(outcome)

    def _end(self, outcome: Obj) -> None:
        if self._beside:
            self._frame("end", {"index": len(self._kept), "outcome": outcome})

    def _frame(self, kind: str, more: Obj) -> None:
        session = self._session
        session.revision += 1
        frame: Obj = {"type": kind, "attemptId": self.id, "revision": session.revision, **more}
        session.world.publish(Streamed(session, frame))

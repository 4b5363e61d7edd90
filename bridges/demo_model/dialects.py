"""One step as a stream of server-sent events, in the two dialects hosts speak (facts HARNESS 1).

A dialect gives the bytes up to the end of what is said, and the bytes of an orderly end; in between a script may cut
the line or fall silent.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from bridges.demo_model.script import Step


class Dialect(Protocol):
    """How one answer is written."""

    def said(self) -> Iterator[bytes]:
        """Yield the beginning and the pieces."""
        ...

    def ending(self) -> Iterator[bytes]:
        """Yield the orderly end."""
        ...


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Messages:
    """``POST /v1/messages``: hosts from 0.2."""

    step: Step
    model: str
    tokens: int

    def said(self) -> Iterator[bytes]:
        """See :meth:`Dialect.said`."""
        usage = {"input_tokens": self.tokens, "output_tokens": 0}
        message = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": self.model}
        yield _event("message_start", message={**message, "content": [], "stop_reason": None, "usage": usage})
        for index, (start, field, text) in enumerate(self._blocks()):
            kind = {"thinking": "thinking_delta", "text": "text_delta", "partial_json": "input_json_delta"}[field]
            yield _event("content_block_start", index=index, content_block=start)
            for piece in _pieces(text, self.step.piece):
                yield _event("content_block_delta", index=index, delta={"type": kind, field: piece})
            if field == "thinking":
                signature = {"type": "signature_delta", "signature": "demo"}
                yield _event("content_block_delta", index=index, delta=signature)
            yield _event("content_block_stop", index=index)

    def ending(self) -> Iterator[bytes]:
        """See :meth:`Dialect.ending`."""
        reason = "tool_use" if self.step.tools else {"stop": "end_turn", "length": "max_tokens"}[self.step.finish]
        usage = {"output_tokens": len(self.step.text) // 4 + 1}
        yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
        yield _event("message_stop")

    def _blocks(self) -> Iterator[tuple[dict[str, object], str, str]]:
        if self.step.reasoning:
            yield {"type": "thinking", "thinking": "", "signature": ""}, "thinking", self.step.reasoning
        if self.step.text:
            yield {"type": "text", "text": ""}, "text", self.step.text
        for tool in self.step.tools:
            start: dict[str, object] = {
                "type": "tool_use",
                "id": f"call_{uuid.uuid4().hex}",
                "name": tool.name,
                "input": {},
            }
            yield start, "partial_json", tool.json


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {_json({'type': kind, **fields})}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Completions:
    """``POST /chat/completions``: hosts of 0.1."""

    step: Step
    model: str
    tokens: int

    def said(self) -> Iterator[bytes]:
        """See :meth:`Dialect.said`."""
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in _pieces(self.step.reasoning, self.step.piece):
            yield self._chunk({"reasoning_content": piece})
        for piece in _pieces(self.step.text, self.step.piece):
            yield self._chunk({"content": piece})
        for index, tool in enumerate(self.step.tools):
            function = {"name": tool.name, "arguments": ""}
            call = {"index": index, "id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}
            yield self._chunk({"tool_calls": [call]})
            for piece in _pieces(tool.json, self.step.piece):
                yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def ending(self) -> Iterator[bytes]:
        """See :meth:`Dialect.ending`."""
        output = len(self.step.text) // 4 + 1
        usage = {"prompt_tokens": self.tokens, "completion_tokens": output, "total_tokens": self.tokens + output}
        yield self._chunk({}, "tool_calls" if self.step.tools else self.step.finish, usage)
        yield b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, object], finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "demo", "object": "chat.completion.chunk", "created": 0, "model": self.model}
        return f"data: {_json({**chunk, 'choices': [choice], 'usage': usage})}\n\n".encode()

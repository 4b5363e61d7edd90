"""Events of the log as each log format spells them, without seq and time. Source: facts HARNESS 5, 5.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.fakes.harness.dialect import Dialect, Obj

INJECTED_BEFORE_V4 = {
    "runtime-context": {"kind": "plugin", "plugin": "@deepseek-ai/dsh-system-prompt", "form": "snapshot"},
    "compact-checkpoint": {"kind": "plugin", "plugin": "compact"},
    "tool-jobs": {"kind": "plugin", "plugin": "tool-jobs", "form": "notice"},
}
FORMS = {"runtime-context": "snapshot", "time-context": "snapshot", "tool-jobs": "notice", "subagent-settled": "notice"}


def text(words: str) -> Obj:
    """Return a text block."""
    return {"type": "text", "text": words}


def draft(kind: str, **data: object) -> Obj:
    """Return an event that is no message."""
    return {"type": kind, "data": data}


def injected_source(dialect: Dialect, kind: str, **extra: object) -> Obj:
    """Return the source of a message no human wrote, by its name in format 4."""
    if dialect.log_version < 4 and kind in INJECTED_BEFORE_V4:
        return {**INJECTED_BEFORE_V4[kind], **extra}
    form: Obj = {"form": FORMS[kind]} if kind in FORMS else {}
    return {"kind": kind, **form, **extra}


def message(id_: str, content: Sequence[Obj], source: Mapping[str, object]) -> Obj:
    """Return a user message as it lies in the queue and in the log."""
    return {"content": list(content), "source": dict(source), "role": "user", "id": id_}


def user_message(data: Obj, surface: object = "append") -> Obj:
    """Return the event of a user message; ``surface`` None leaves the field out."""
    event: Obj = {"type": "user/message", "data": data}
    return event if surface is None else {**event, "surfaceOp": surface}


def is_human(event: Obj) -> bool:
    """Whether an event is the message of a human."""
    data = event.get("data")
    source = data.get("source") if isinstance(data, dict) and event.get("type") == "user/message" else None
    return isinstance(source, dict) and source.get("kind") == "user"


def model_source(dialect: Dialect, model: str, blocks: Sequence[Obj], *, complete: bool) -> Obj:
    """Return the source of an assistant message; format 4 adds what it needs to replay a complete one."""
    source: Obj = {"kind": "model", "provider": "deepseek-official", "model": model}
    if dialect.log_version == 4 and complete:
        source["replayState"] = {
            "response": {"kind": "deepseek-messages", "version": 1, "model": model},
            "blocks": [{"type": block["type"]} for block in blocks],
        }
    return source


def usage(dialect: Dialect, tokens: int) -> Obj:
    """Return token counts."""
    counts: Obj = {"inputTokens": 300, "outputTokens": tokens, "cacheReadTokens": 0}
    return {**counts, "cacheWriteTokens": 0, "totalTokens": 300 + tokens} if dialect.log_version == 4 else counts


def assistant_message(
    dialect: Dialect,
    *,
    turn: int,
    step: int,
    id_: str,
    blocks: Sequence[Obj],
    model: str,
    stream: Sequence[Obj] = (),
    chunks: Sequence[int] = (),
    interrupted: bool = False,
    surface: object = "append",
) -> Obj:
    """Return one whole step of the model; ``chunks`` are the seqs of its pieces where the log keeps them."""
    source = model_source(dialect, model, blocks, complete=not interrupted)
    data: Obj = {
        "turn": turn,
        "step": step,
        "message": {"role": "assistant", "content": list(blocks), "source": source, "id": id_},
    }
    data |= {"interrupted": True} if interrupted else {"usage": usage(dialect, len(blocks))}
    event: Obj = {"type": "assistant/message", "data": data}
    if dialect.chunks_in_log:
        if chunks:
            event["sourceEventSeqs"] = list(chunks)
    else:
        data["stream"] = list(stream)
    return event if surface is None else {**event, "surfaceOp": surface}


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool says at its end; ``error`` is told beside the words for some failures only."""

    words: str
    failed: bool = False
    error: Obj | None = None


def tool_result(dialect: Dialect, result: Result, *, turn: int, step: int, call: str, id_: str, call_seq: int) -> Obj:
    """Return a tool's answer; format 4 gives it a role of its own."""
    source: Obj = {"kind": "tool", "callId": call}
    content: list[Obj] = [text(result.words)]
    said: Obj = {"toolCallId": call, "content": content, "isError": result.failed}
    if dialect.log_version == 4:
        body: Obj = {"role": "tool", "source": source, **said, "id": id_}
    else:
        body = {"source": source, "content": [{"type": "tool-result", **said}], "role": "user", "id": id_}
    data: Obj = {"turn": turn, "step": step, "message": body}
    if result.error is not None:
        data["error"] = result.error
    return {"type": "tool/result", "data": data, "sourceEventSeqs": [call_seq], "surfaceOp": "append"}


def replaced(dialect: Dialect, first: int, last: int) -> Obj:
    """Return the surface of a message that takes the place of a range, in the model's eyes only."""
    if dialect.log_version == 0:
        return {"op": "replace", "start": first, "end": last}
    return {"op": "replace", "startSeq": first, "endSeq": last}


def title(words: str, kind: str, seqs: Sequence[int], model: str) -> Obj:
    """Return a title event; ``kind`` is fallback, provider or user."""
    source: Obj = {"kind": kind}
    if kind == "provider":
        source |= {
            "provider": "session-title-first-prompt-llm",
            "model": {"provider": "deepseek-official", "model": model},
        }
    return draft("session/title", title=words, messageSeqs=list(seqs), source=source)


def spliced(target: str, start: int, *, removed: int = 0, inserted: Sequence[Obj] = (), canceled: bool = False) -> Obj:
    """Return a change of the queue."""
    data: Obj = {"target": target, "start": start}
    if removed:
        data["removedCount"] = removed
    data["inserted"] = list(inserted)
    if canceled:
        data["outcome"] = "canceled"
    return {"type": "agent/inbox/spliced", "data": data}


def tool_view(event: Obj, name: str) -> Obj | None:
    """Return the ``view`` a legacy host puts beside a tool event, None beside any other."""
    data = event["data"]
    if not isinstance(data, dict) or name == "ask_user_question":
        return None
    if event["type"] == "tool/call":
        return {"for": "call", "view": {"card": "generic", "title": name, "kind": "other", "rawInput": {}}}
    if event["type"] == "tool/result":
        return {"for": "result", "view": {"card": "generic", "content": []}}
    return None

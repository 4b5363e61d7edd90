"""Events of a session's log as a host writes them, and the answer that carries a page of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

Obj = dict[str, object]


def text(words: str) -> Obj:
    return {"type": "text", "text": words}


def user(seq: object, *content: str | Obj, **changes: object) -> Obj:
    """A human message; ``changes`` replace keys of the event (``surfaceOp``) or of its data (``source``)."""
    data: Obj = {
        "id": f"m{seq}",
        "role": "user",
        "content": [text(part) if isinstance(part, str) else part for part in content],
        "source": {"kind": "user", "rpcId": f"r{seq}"},
    }
    return _changed({"type": "user/message", "seq": seq, "time": 1, "data": data, "surfaceOp": "append"}, changes)


def assistant(seq: object, turn: object, *content: str | Obj, step: int = 1, **changes: object) -> Obj:
    """What a model call said."""
    message = {"id": f"m{seq}", "role": "assistant", "content": [text(p) if isinstance(p, str) else p for p in content]}
    data: Obj = {"turn": turn, "step": step, "message": message}
    return _changed({"type": "assistant/message", "seq": seq, "time": 1, "data": data, "surfaceOp": "append"}, changes)


def start(seq: object, turn: object) -> Obj:
    return {"type": "turn/start", "seq": seq, "time": 1, "data": {"turn": turn}}


def end(seq: object, turn: object, reason: object = "completed") -> Obj:
    """The end of a turn; a string becomes ``{"kind": …}``, anything else stays as it is."""
    return {"type": "turn/end", "seq": seq, "time": 1, "data": {"turn": turn, "reason": _kind(reason)}}


def other(seq: object, kind: str = "step/end", **data: object) -> Obj:
    return {"type": kind, "seq": seq, "time": 1, "data": data}


def dialogue(turns: int) -> list[Obj]:
    """Turn k: prompt ``u<k>`` at 10k, answer ``a<k>`` at 10k+1, its end at 10k+2."""
    return [
        event
        for k in range(1, turns + 1)
        for event in (user(10 * k, f"u{k}"), assistant(10 * k + 1, k, f"a{k}"), end(10 * k + 2, k))
    ]


def answer(value: object) -> bytes:
    """The body of a proper answer."""
    return json.dumps({"type": "server-response", "rpcId": "1", "result": {"ok": True, "value": value}}).encode()


def page_body(events: Sequence[object], more: object = False) -> bytes:
    """The body of a page in the legacy shape."""
    return answer({"events": [{"event": event} for event in events], "hasMore": more})


def _kind(reason: object) -> object:
    return {"kind": reason} if isinstance(reason, str) else reason


def _changed(event: Obj, changes: dict[str, object]) -> Obj:
    data = event["data"]
    assert isinstance(data, dict)
    for key, value in changes.items():
        holder = event if key in {"surfaceOp", "type", "data"} else data
        if value is ...:
            del holder[key]
        else:
            holder[key] = value
    return event

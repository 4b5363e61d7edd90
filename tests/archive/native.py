"""Native session files as the two hosts write them, and a look at a whole tree of files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import zstandard

Line = dict[str, object]
Tree = dict[str, tuple[bytes, int, int]]

PI_TIME = "2026-03-01T10:00:00.000Z"
DSH_TIME = 1_772_359_200_000
"""The same moment in milliseconds."""


def pi_header(session: str, cwd: Path | str, **more: object) -> Line:
    return {"type": "session", "version": 3, "id": session, "timestamp": PI_TIME, "cwd": str(cwd), **more}


def pi_user(entry: str, parent: str | None, content: object, **more: object) -> Line:
    return _pi_message(entry, parent, {"role": "user", "content": content}, **more)


def pi_assistant(entry: str, parent: str | None, text: str, stop: str = "stop", **more: object) -> Line:
    content = [{"type": "text", "text": text}]
    return _pi_message(entry, parent, {"role": "assistant", "content": content, "stopReason": stop}, **more)


def _pi_message(entry: str, parent: str | None, message: Line, **more: object) -> Line:
    return {"type": "message", "id": entry, "parentId": parent, "timestamp": PI_TIME, "message": message, **more}


def pi_session(session: str, cwd: Path | str, pairs: int = 1) -> list[Line]:
    """A plain session: ``q1`` is answered by ``a1``, and so on."""
    lines = [pi_header(session, cwd)]
    parent: str | None = None
    for number in range(1, pairs + 1):
        lines.append(pi_user(f"q{number}", parent, f"question {number}"))
        parent = f"a{number}"
        lines.append(pi_assistant(parent, f"q{number}", f"answer {number}"))
    return lines


def jsonl(lines: Sequence[Line]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def write(path: Path, lines: Sequence[Line]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jsonl(lines))
    return path


def dsh_header(session: str, cwd: Path | str, **more: object) -> Line:
    return {"type": "session", "version": 4, "id": session, "createdAt": DSH_TIME, "cwd": str(cwd), **more}


class DshLines:
    """Builds a log with dense ``seq``; every method adds one event."""

    def __init__(self, session: str, cwd: Path | str, **more: object) -> None:
        self.lines: list[Line] = [dsh_header(session, cwd, **more)]
        self.turn = 0

    def add(self, kind: str, data: object, **more: object) -> DshLines:
        seq = len(self.lines) - 1
        self.lines.append({"type": kind, "seq": seq, "time": DSH_TIME + seq, "data": data, **more})
        return self

    def start(self) -> DshLines:
        self.turn += 1
        return self.add("turn/start", {"turn": self.turn})

    def end(self, reason: str = "completed") -> DshLines:
        return self.add("turn/end", {"turn": self.turn, "reason": {"kind": reason}})

    def user(self, text: str, *blocks: Line, **source: object) -> DshLines:
        content = [*blocks, {"type": "text", "text": text}]
        data = {"id": f"u{len(self.lines)}", "role": "user", "content": content, "source": source}
        return self.add("user/message", data, surfaceOp="append")

    def human(self, text: str, *blocks: Line) -> DshLines:
        return self.user(text, *blocks, kind="user", rpcId=f"r{len(self.lines)}")

    def answer(self, text: str, finish: str | None = "stop", *, calls: int = 0, **more: object) -> DshLines:
        content: list[Line] = [{"type": "text", "text": text}]
        content += [{"type": "tool-call", "id": f"c{call}", "name": "bash", "arguments": "{}"} for call in range(calls)]
        stream = [{"type": "chunk", "chunk": {"type": "finish", "reason": {"kind": finish}}}] if finish else []
        message = {"id": f"m{len(self.lines)}", "role": "assistant", "content": content}
        data = {"turn": self.turn, "step": 1, "message": message, "stream": stream, **more}
        return self.add("assistant/message", data, surfaceOp="append")

    def pair(self, question: str, answer: str) -> DshLines:
        return self.start().human(question).answer(answer).end()

    def save(self, home: Path, folder: str = "--ws--", name: str = "session.v4.jsonl.zstd") -> Path:
        """Write the file; a compressed one gets a frame for every three lines."""
        path = home / "sessions" / folder / str(self.lines[0]["id"]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".zstd"):
            chunks = [self.lines[index : index + 3] for index in range(0, len(self.lines), 3)]
            path.write_bytes(b"".join(zstandard.compress(jsonl(chunk)) for chunk in chunks))
        else:
            path.write_bytes(jsonl(self.lines))
        return path


def tree(root: Path) -> Tree:
    """Everything a writer could have changed: names, bytes, times, modes."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (data, stat.st_mtime_ns, stat.st_mode)
    return found

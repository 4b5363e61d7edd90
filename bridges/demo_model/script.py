"""What the demo model is told to say: ``#demo {"steps": [{"reasoning": "…", "tools": […]}, {"text": "done"}]}``.

The script stands anywhere in a prompt. Its first step answers the prompt, the next one answers the first step's tool
results, and so on. Which step is due is counted from the conversation alone, so restarts, forks and parallel sessions
each play their own. Scripts inside a script (a subagent's prompt) are left to whoever is prompted with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

_MARKED = re.compile(r"#demo\s*(?=\{)")
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=600)]


class BadScript(ValueError):
    """The text after the mark is no script; the message says where and why."""


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call. ``arguments`` is an object, or JSON text as it is (broken, too)."""

    name: str
    arguments: dict[str, object] | str = {}

    @property
    def json(self) -> str:
        """The arguments as the model writes them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer. Reasoning, text and tool calls are streamed in this order, then the rest happens."""

    reasoning: str = ""
    text: str = ""
    tools: tuple[Tool, ...] = ()
    piece: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 12
    """Characters in one piece of the stream."""
    wait: _Seconds = 0.0
    """Seconds before the first byte."""
    delay: _Seconds = 0.0
    """Seconds between two pieces."""
    status: Annotated[int, msgspec.Meta(ge=400, le=599)] | None = None
    """Fail with this HTTP status instead of streaming."""
    end: Literal["finish", "drop", "hang"] = "finish"
    """After the pieces: end in order, cut the connection, or stay silent until the caller leaves."""
    finish: Literal["stop", "length"] = "stop"
    """Why an orderly end came: the model was done, or ran into its length limit."""


class _Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: tuple[Step, ...]


def last_script(text: str) -> tuple[Step, ...] | None:
    """Return the steps of the last script in ``text``, None when there is none. Raises BadScript."""
    steps = None
    for value in _values_after_marks(text):
        try:
            steps = msgspec.convert(value, _Script).steps
        except msgspec.ValidationError as error:
            raise BadScript(str(error)) from None
    return steps


def _values_after_marks(text: str) -> Iterator[object]:
    decoder = json.JSONDecoder()
    at = 0
    while found := _MARKED.search(text, at):
        try:
            value, at = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError) as error:
            raise BadScript(str(error)) from None
        yield value

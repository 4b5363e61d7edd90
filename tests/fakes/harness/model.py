"""What the fake model says. Pieces stream in order; an ``asyncio.Event`` among them holds the stream until set."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.fakes.harness.dialect import Obj

Piece = str | asyncio.Event


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call with the result it will have; ``until`` keeps the tool running."""

    name: str
    args: Mapping[str, object] = field(default_factory=dict)
    result: str = "done"
    error: bool = False
    until: asyncio.Event | None = None
    approval: str | None = None
    """The reason to ask a person for, None when none is asked."""

    @property
    def arguments(self) -> str:
        """The arguments as the model writes them."""
        return json.dumps(dict(self.args))


def ask(*questions: Obj) -> Tool:
    """Return a call of the tool that asks a person; see :func:`question`."""
    return Tool("ask_user_question", {"questions": list(questions)})


def question(id_: str, words: str, *labels: str, header: str | None = None, multiple: bool = False) -> Obj:
    """Return one question; without labels it is answered in free text."""
    asked: Obj = {"id": id_, "question": words}
    if header is not None:
        asked["header"] = header
    if labels:
        asked["options"] = [{"label": label} for label in labels]
    return asked | ({"multiSelect": True} if multiple else {})


@dataclass(frozen=True, slots=True)
class Failure:
    """How a step of the model fails: the host gives up at once, or tries again ``retries`` times first."""

    message: str = "fake: bad request shape"
    code: str = "INVALID_REQUEST"
    status: int = 400
    retries: int = 0
    recovers: bool = False
    """Whether the last retry succeeds."""

    @property
    def wire(self) -> Obj:
        """The failure as it lies in the log."""
        return {"message": self.message, "code": self.code, "status": self.status}


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model: reasoning, then text, then tool calls. ``finish`` is stop or max-tokens."""

    pieces: Sequence[Piece] = ()
    reasoning: Sequence[Piece] = ()
    tools: Sequence[Tool] = ()
    failure: Failure | None = None
    finish: str = "stop"


def say(*pieces: Piece, reasoning: Sequence[Piece] = (), tools: Sequence[Tool] = ()) -> Step:
    """Return a step that says these pieces."""
    return Step(pieces, reasoning, tools)


Script = Sequence[Step]


def _echo(prompt: str) -> Script:
    return (say(f"You said: {prompt}"),)


class Model:
    """The scripts of the coming turns, then :attr:`default` for every later one."""

    def __init__(self) -> None:
        self._scripts: deque[Script] = deque()
        self._by_prompt: dict[str, Script] = {}
        self.default: Callable[[str], Script] = _echo
        self.title = "Fake title"

    def script(self, *steps: Step | str, prompt: str | None = None) -> None:
        """Say what the next turn answers, or every turn whose prompt has exactly this text."""
        script = tuple(say(step) if isinstance(step, str) else step for step in steps)
        if prompt is None:
            self._scripts.append(script)
        else:
            self._by_prompt[prompt] = script

    def answer(self, prompt: str) -> Script:
        """Take the script for a turn that this prompt opens."""
        if prompt in self._by_prompt:
            return self._by_prompt[prompt]
        return self._scripts.popleft() if self._scripts else self.default(prompt)

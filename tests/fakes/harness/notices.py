"""What the engine tells whoever listens; the two faces turn it into frames."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tests.fakes.harness.dialect import Obj

if TYPE_CHECKING:
    from tests.fakes.harness.live import LiveSession


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """A business refusal under its legacy code; the modern face spells the code its own way."""

    code: str
    message: str
    details: Obj = field(default_factory=dict)


def no_such_item(item: str) -> Refused:
    """Return the refusal of a queue item that is not, or no longer, there."""
    return Refused("queue-item-not-found", "queued item is no longer pending", {"itemId": item})


@dataclass(eq=False, slots=True)
class Pending:
    """A question or an approval that blocks a turn. ``answer`` gets the outcome."""

    id: str
    kind: Literal["question", "approval"]
    session: LiveSession
    request: Obj
    approval_id: str
    answer: asyncio.Future[Outcome]
    passed_by: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an interaction ended: the answers or the decision, or an error code of the asking tool."""

    word: str
    """answered, cancelled, allowed-once, rejected or unavailable."""
    answers: Obj | None = None
    error: str | None = None
    by: str | None = None
    """The client that answered, so that it alone is not told to forget the question."""


@dataclass(frozen=True, slots=True)
class Appended:
    """An event entered a log."""

    session: LiveSession
    event: Obj


@dataclass(frozen=True, slots=True)
class Streamed:
    """A frame of the text that streams beside the log."""

    session: LiveSession
    frame: Obj


@dataclass(frozen=True, slots=True)
class Running:
    """A session began or stopped running."""

    session: LiveSession
    running: bool


@dataclass(frozen=True, slots=True)
class Added:
    """A session came into being."""

    session: LiveSession


@dataclass(frozen=True, slots=True)
class Projected:
    """A projection changed with the event of this seq."""

    session: LiveSession
    key: str
    value: object
    seq: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is asked."""

    pending: Pending


@dataclass(frozen=True, slots=True)
class Settled:
    """A question or an approval is over."""

    pending: Pending
    outcome: Outcome


Notice = Appended | Streamed | Running | Added | Projected | Asked | Settled

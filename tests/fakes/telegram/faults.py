"""What can go wrong with one call, scripted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TypedDict

from tests.fakes.telegram.updates import Obj


class How(TypedDict, total=False):
    """The fields of :class:`Fault`, by keyword."""

    status: int
    description: str
    parameters: Obj
    page: str
    effect: bool
    drop: bool
    hold: asyncio.Event
    after: int
    times: int | None


@dataclass(slots=True)
class Fault:
    """Spoils calls of ``method``: the first ``after`` pass, then ``times`` are spoilt (None: all).

    ``status`` with ``description`` is the server's refusal; a ``page`` comes in its place, as it is. ``effect`` lets
    the call do its work first; ``drop`` cuts the connection instead of an answer; ``hold`` answers nothing until it
    is set.
    """

    method: str
    status: int = 200
    description: str = ""
    parameters: Obj = field(default_factory=dict)
    page: str | None = None
    effect: bool = False
    drop: bool = False
    hold: asyncio.Event | None = None
    after: int = 0
    times: int | None = 1

    def hits(self, method: str) -> bool:
        """Count a call; return whether it is to be spoilt."""
        if method != self.method or self.times == 0:
            return False
        if self.after:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True

    @property
    def body(self) -> Obj:
        """The refusal as the Bot API words it."""
        body: Obj = {"ok": False, "error_code": self.status, "description": self.description}
        return body | ({"parameters": self.parameters} if self.parameters else {})

"""What can go wrong with one call of the Web API, scripted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TypedDict


class How(TypedDict, total=False):
    """The fields of :class:`Fault`, by keyword."""

    error: str
    status: int
    headers: dict[str, str]
    page: str
    effect: bool
    drop: bool
    hold: asyncio.Event
    after: int
    times: int | None


@dataclass(slots=True)
class Fault:
    """Spoils calls of ``method``: the first ``after`` pass, then ``times`` are spoilt (None: all).

    ``error`` is Slack's word for a refusal; without one a ``status`` other than 200 comes as a page of HTML, and a
    ``page`` comes as it is. ``effect`` lets the call do its work first; ``drop`` cuts the connection instead of an
    answer; ``hold`` answers nothing until it is set.
    """

    method: str
    error: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
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

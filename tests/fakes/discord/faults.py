"""What can go wrong with one REST call, scripted."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TypedDict

from tests.fakes.discord.payloads import Obj


class How(TypedDict, total=False):
    """The fields of :class:`Fault`, by keyword."""

    status: int
    code: int
    body: Obj
    headers: dict[str, str]
    html: str
    effect: bool
    drop: bool
    hold: asyncio.Event
    after: int
    times: int | None


@dataclass(slots=True)
class Fault:
    """Spoils calls whose "METHOD /path" matches ``call``: the first ``after`` pass, then ``times`` do not (None: all).

    ``effect`` lets the call do its work first; ``drop`` cuts the connection in the place of an answer; ``hold``
    answers nothing until it is set; ``html`` is what the network in front of the API answers itself.
    """

    call: re.Pattern[str]
    status: int = 200
    code: int = 0
    body: Obj = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    html: str = ""
    effect: bool = False
    drop: bool = False
    hold: asyncio.Event | None = None
    after: int = 0
    times: int | None = 1

    def hits(self, call: str) -> bool:
        """Count a call; return whether it is to be spoilt."""
        if self.times == 0 or not self.call.search(call):
            return False
        if self.after:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True

    @property
    def refusal(self) -> Obj:
        """The refusal as the API words it."""
        return {"message": "refused", "code": self.code, **self.body}

"""What a check found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from commands.cleaning import one_line


class Check(StrEnum):
    """What is looked at, in the order of the report."""

    INSTALLATION = "installation"
    CONFIGURATION = "configuration"
    SECRET = "secret"  # noqa: S105 - the name of a check
    STATE = "state"
    HARNESS = "harness"
    ENDPOINT = "endpoint"
    PLATFORM = "platform"
    CLOCK = "clock"
    PACKAGE = "package"


class Level(StrEnum):
    """How good it is; only WRONG makes the exit code 1."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


MARKS: Final = {Level.OK: "✓", Level.NOTE: "·", Level.WRONG: "✗"}
"""How a level looks at the beginning of a line."""


LONGEST: Final = 2_000
"""Characters of a line that are shown: names of platforms may have any length."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``text`` is for people, ``code`` for programs, where there is one."""

    check: Check
    subject: str
    level: Level
    text: str
    code: str = ""

    def shown(self, redact: Callable[[str], str]) -> Finding:
        """Return what may be shown of it, whatever a platform or a Harness said: one line each, no secret in it.

        Do it before anything is folded or quoted: a secret that was cut in two is not known for one any more.
        """
        subject, text = (redact(one_line(each))[:LONGEST] for each in (self.subject, self.text))
        return replace(self, subject=subject, text=text)

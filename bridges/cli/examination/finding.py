"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``text`` is for people, ``code`` for programs, where there is one."""

    check: Check
    subject: str
    level: Level
    text: str
    code: str = ""

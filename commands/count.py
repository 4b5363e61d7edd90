"""The count of ``/history [count]`` (spec HISTORY 1)."""

from __future__ import annotations

from typing import Final

DEFAULT: Final = 3
MAXIMUM: Final = 5


def parse_count(argument: str) -> int | None:
    """Return how many messages are asked for, in 1 … 5; None for anything that is no positive ASCII integer.

    Decided by the number of digits, never by ``int`` of unbounded text.
    """
    if not argument:
        return DEFAULT
    if not (argument.isascii() and argument.isdigit()):
        return None
    digits = argument.lstrip("0")
    if not digits:
        return None
    return min(int(digits), MAXIMUM) if len(digits) == 1 else MAXIMUM

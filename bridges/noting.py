"""Writes down how the bots are while they run, so that another program of the operator can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import structlog

from bridges.state import Health, Healths, Noted, StateError
from harness_client.clock import Clock

LOOK_SECONDS: Final = 1.0
"""How soon a change is noted."""
NOTE_SECONDS: Final = 10.0
"""How often the bots are noted though nothing changed: the sign that the program lives."""
STALE_SECONDS: Final = 3 * NOTE_SECONDS
"""A note older than this was left behind by a program that was killed."""


def is_fresh(at: float, now: float) -> bool:
    """Whether a note made at ``at`` says that a program lives. One of the future does not: a clock was set back."""
    return abs(now - at) <= STALE_SECONDS


def newest(notes: Iterable[Noted], now: float) -> Noted | None:
    """Return the last note that says that a program lives."""
    return max((note for note in notes if is_fresh(note.at, now)), key=lambda note: note.at, default=None)


async def keep_noted(healths: Healths, read: Callable[[], Sequence[Health]], clock: Clock) -> None:
    """Note what ``read`` returns until cancelled, and one last time then.

    A state that cannot be written stops nothing.
    """
    seen: Sequence[Health] = ()
    noted = clock.monotonic()
    try:
        while True:
            present = read()
            if present != seen or clock.monotonic() - noted >= NOTE_SECONDS:
                seen, noted = present, clock.monotonic()
                await _note(healths, present)
            await clock.sleep(LOOK_SECONDS)
    finally:
        await _note(healths, read())


async def _note(healths: Healths, present: Sequence[Health]) -> None:
    try:
        await healths.note(present)
    except StateError as error:
        structlog.get_logger(__name__).warning("health not noted", trouble=error.trouble)

"""Faults a test scripts for one frame."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one frame in the place of its acknowledgement."""

    code: int = 0
    accepted: bool = False
    """Whether the frame takes effect all the same."""
    silent: bool = False
    """Never acknowledged."""
    reset: bool = False
    """The connection is reset in its place."""

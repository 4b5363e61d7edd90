"""What differs between the hosts that exist: transport, log format, and a few habits. Source: facts HARNESS 1."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Literal

from harness_client.types import Generation

Obj = dict[str, object]
"""A JSON object on its way to or from the wire."""

Flavour = Literal["0.1.0", "0.1.2", "0.1.5", "0.2"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One release line. ``log_version`` is ``header.version`` of its session logs."""

    flavour: Flavour
    generation: Generation
    log_version: int
    model: str
    presets: tuple[str, ...]

    @property
    def chunks_in_log(self) -> bool:
        """Whether streaming text is part of the log (``assistant/chunk``) instead of a stream beside it."""
        return self.log_version == 0

    @property
    def has_projections(self) -> bool:
        """Whether the endpoint ``session/projections`` exists."""
        return self.flavour == "0.2"


LEGACY_PRESETS = ("standard", "code", "minimal", "cordis")
MODERN_PRESETS = ("standard", "ptc", "minimal", "cordis")

DIALECTS = {
    "0.1.0": Dialect("0.1.0", Generation.LEGACY, 0, "deepseek-v4-flash", LEGACY_PRESETS),
    "0.1.2": Dialect("0.1.2", Generation.MODERN, 0, "deepseek-v4-flash", LEGACY_PRESETS),
    "0.1.5": Dialect("0.1.5", Generation.MODERN, 3, "deepseek-v4-flash", LEGACY_PRESETS),
    "0.2": Dialect("0.2", Generation.MODERN, 4, "deepseek-flash", MODERN_PRESETS),
}


class Mint:
    """Ids and times that are new at every call and the same in every run."""

    def __init__(self) -> None:
        self._count = 0
        self._now = 1_796_000_000_000

    def uuid(self) -> str:
        """Return an id that looks like the host's."""
        self._count += 1
        return str(uuid.UUID(int=(0xFACE << 112) + self._count, version=4))

    def now(self) -> int:
        """Return epoch milliseconds, one later at every call."""
        self._now += 1
        return self._now

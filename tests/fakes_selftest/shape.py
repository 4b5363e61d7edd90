"""Comparing answers by shape: keys and types, not values."""

from __future__ import annotations

from collections.abc import Iterator

LOOSE = ("contextPressure", "event", "issues")
"""Keys below which the fake may tell less than a real host does: its wording of a schema, sums, whole events."""


def differences(real: object, fake: object, path: str = "") -> Iterator[str]:
    """Yield where the fake's answer has other keys or types than the recorded one."""
    if _kind(real) != _kind(fake):
        if real is not None and fake is not None:
            yield f"{path}: {_kind(real)} recorded, {_kind(fake)} faked"
    elif isinstance(real, dict) and isinstance(fake, dict):
        for key in sorted((real.keys() ^ fake.keys()) - OPTIONAL):
            yield f"{path}/{key}: only {'recorded' if key in real else 'faked'}"
        for key in sorted(real.keys() & fake.keys() - set(LOOSE)):
            yield from differences(real[key], fake[key], f"{path}/{key}")
    elif isinstance(real, list) and isinstance(fake, list) and real and fake:
        yield from differences(real[0], fake[0], f"{path}[0]")


OPTIONAL = frozenset({"description", "parentSessionId", "origin"})
"""Keys that depend on the data and not on the host."""


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__

"""Times in one form only, so that their text order is their order in time."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NewType

Instant = NewType("Instant", str)
"""ISO 8601, UTC, milliseconds: ``2026-11-30T16:17:56.770Z``."""

EPOCH = Instant("1970-01-01T00:00:00.000Z")
"""Stands for a time that the log does not tell."""

PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
"""What every Instant looks like."""

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def from_millis(millis: float | None) -> Instant | None:
    """Convert epoch milliseconds; None for None and for what no calendar holds."""
    if millis is None:
        return None
    try:
        return _format(_ZERO + timedelta(milliseconds=millis))
    except (OverflowError, ValueError):
        return None


def from_iso(text: str | None) -> Instant | None:
    """Convert an ISO 8601 time as a log writes it; without an offset it counts as UTC. None when it is none."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return _format(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (OverflowError, ValueError):
        return None


def range_start(text: str) -> Instant | None:
    """Convert the beginning of a range as a person writes it; without an offset it is local. None when it is none."""
    return _moment(text, time.min)


def range_end(text: str) -> Instant | None:
    """Do as :func:`range_start` does; a date alone means the end of that day."""
    return _moment(text, time.max)


def _moment(text: str, in_day: time) -> Instant | None:
    try:
        moment = datetime.combine(date.fromisoformat(text), in_day)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
    try:
        return _format(moment)  # one without an offset is taken as local by the conversion to UTC
    except (OSError, OverflowError, ValueError):
        return None


def _format(moment: datetime) -> Instant:
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return Instant(utc.isoformat(timespec="milliseconds") + "Z")

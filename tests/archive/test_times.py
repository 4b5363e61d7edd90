from __future__ import annotations

import pytest

from archive.times import from_iso, from_millis


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-30T16:17:56.770Z", "2026-11-30T16:17:56.770Z"),
        ("2026-11-30T16:17:56", "2026-11-30T16:17:56.000Z"),
        ("2026-12-01T00:17:56.7705+08:00", "2026-11-30T16:17:56.770Z"),
        ("2026-11-30", "2026-11-30T00:00:00.000Z"),
        ("yesterday", None),
        ("", None),
        (None, None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_iso_times_take_one_form(text: str | None, instant: str | None) -> None:
    assert from_iso(text) == instant


@pytest.mark.parametrize(
    ("millis", "instant"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_796_055_477_081, "2026-11-30T16:17:57.081Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1e30, None),
        (float("nan"), None),
        (None, None),
    ],
)
def test_epoch_milliseconds_take_the_same_form(millis: float | None, instant: str | None) -> None:
    assert from_millis(millis) == instant

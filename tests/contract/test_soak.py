"""Two hours of the soak; the whole day is ``python -m tests.perf.soak``."""

from __future__ import annotations

import pytest

from tests.contract.soak import OLD_CLAIMS
from tests.perf.soak import soak

HOURS = 2
MOST_TASKS = 200
MOST_DESCRIPTORS = 150
STATE_BYTES = 8_000_000


@pytest.mark.timeout(180)
def test_two_hours_of_all_channels_with_all_that_goes_wrong() -> None:
    result = soak(HOURS)
    assert result.lost == []
    assert result.doubled == []
    assert result.answered + result.missing + result.cut == result.questions >= 100
    assert all(result.troubles.values())
    assert result.old_claims_left < OLD_CLAIMS
    for sample in result.samples:
        assert sample.tasks < MOST_TASKS
        assert sample.descriptors < MOST_DESCRIPTORS
        assert sample.state < STATE_BYTES

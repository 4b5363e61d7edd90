"""The real program on all nine platforms at once: what the figures are measured on works, and leaves no channel out."""

from __future__ import annotations

import pytest

from tests.contract.test_table import CHANNELS
from tests.fakes.harness import FakeHarness
from tests.perf.channels import ROWS, running_on
from tests.perf.platforms import STAGES


def test_every_channel_has_its_figures() -> None:
    assert set(ROWS) == set(STAGES) == CHANNELS


@pytest.mark.timeout(120)
async def test_every_bot_of_one_program_answers() -> None:
    async with FakeHarness() as host, running_on(host.url, *ROWS) as run:
        for name in ROWS:
            assert await run.platforms.ask(name, "/version", 1, 2) > 0
        assert run.moments.keys() == ROWS.keys()
        assert run.held() > 0

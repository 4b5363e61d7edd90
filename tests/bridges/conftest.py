"""The two host generations every test of the conversation runs on, and a platform for those of the whole program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness_client.types import Generation
from tests.bridges.bench import Bench, bench
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import FakeTelegram


@pytest.fixture(params=list(Generation))
async def host(request: pytest.FixtureRequest) -> AsyncIterator[FakeHarness]:
    async with FakeHarness(request.param) as host:
        yield host


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as made:
        yield made


@pytest.fixture
async def desk(host: FakeHarness, tmp_path: Path) -> AsyncIterator[Bench]:
    """A bot on a channel that can only send."""
    async with bench(host, tmp_path) as made:
        yield made

"""The two host generations every command is tested on, through the whole path."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness_client.types import Generation
from tests.bridges.bench import Bench, bench
from tests.fakes.harness import FakeHarness


@pytest.fixture(params=list(Generation))
async def host(request: pytest.FixtureRequest) -> AsyncIterator[FakeHarness]:
    async with FakeHarness(request.param) as host:
        yield host


@pytest.fixture
async def desk(host: FakeHarness, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(host, tmp_path) as made:
        yield made

"""A state file of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges.state import State, open_state
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "state.db"


@pytest.fixture
async def state(path: Path, clock: FakeClock) -> AsyncIterator[State]:
    async with open_state(path, clock=clock) as opened:
        yield opened

"""Rules that hold for every test. Order is random (pytest-randomly prints the seed), warnings are errors."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.guards import environment, leaks, network, summary

_HOME = Path(tempfile.mkdtemp(prefix="harness-im-tests-"))

environment.scrub(_HOME)
network.install()

# How long an example takes, or is drawn, says more about the machine than about the code.
hypothesis.settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("house")


def pytest_unconfigure() -> None:
    shutil.rmtree(_HOME, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    summary.write(terminalreporter)


@pytest.fixture(autouse=True)
def _loopback_only() -> Iterator[None]:
    network.take_attempts()
    yield
    attempts = network.take_attempts()
    assert not attempts, attempts


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    before = leaks.running()
    yield
    left = leaks.remaining(before)
    assert not left, f"left running by this test: {sorted(left)}"

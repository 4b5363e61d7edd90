"""One real host with the demo model behind it, shared by all live tests but those that kill it."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from bridges.demo_model import DemoModel
from harness_client.client import HarnessClient
from harness_client.embedded import EmbeddedHost, EmbeddedSpec, RuntimeMissing, bundled_command
from tests.live.talk import Talk

_PATH = os.environ["PATH"]

live_fixture = functools.partial(pytest_asyncio.fixture, loop_scope="session")


@pytest.fixture(scope="session")
def command() -> Path:
    """Return the real ``dsh``, or skip, counted, where the extra is not installed."""
    try:
        return bundled_command()
    except RuntimeMissing as missing:
        pytest.skip(str(missing))


@live_fixture(scope="session")
async def shared_model() -> AsyncIterator[DemoModel]:
    async with DemoModel() as model:
        yield model


@pytest.fixture
def model(shared_model: DemoModel) -> DemoModel:
    """Return the model of every live host, with nothing left over from another test."""
    shared_model.queue.clear()
    return shared_model


@pytest.fixture(scope="session")
def new_spec(
    command: Path, shared_model: DemoModel, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], EmbeddedSpec]:
    """Return a maker of specs, each with a data directory and a workspace of its own."""

    def make() -> EmbeddedSpec:
        place = tmp_path_factory.mktemp("host")
        (place / "workspace").mkdir()
        return EmbeddedSpec(
            data=place / "data",
            workspace=place / "workspace",
            model_url=shared_model.url,
            model_key="not-a-real-key",
            environment={"PATH": _PATH},
            command=command,
        )

    return make


@pytest.fixture(scope="session")
def shared_spec(new_spec: Callable[[], EmbeddedSpec]) -> EmbeddedSpec:
    return new_spec()


@live_fixture(scope="session")
async def client(shared_spec: EmbeddedSpec) -> AsyncIterator[HarnessClient]:
    """Return a client of the shared host."""
    async with EmbeddedHost(shared_spec) as host, HarnessClient(await host.address()) as client:
        yield client


@pytest.fixture
def workspace(shared_spec: EmbeddedSpec) -> Path:
    return shared_spec.workspace


@live_fixture()
async def talk(client: HarnessClient, model: DemoModel, workspace: Path) -> AsyncIterator[Talk]:
    """Return a new session on the shared host; nothing runs in it afterwards."""
    talk = Talk(client, model, await client.create_session(cwd=str(workspace)))
    yield talk
    with contextlib.suppress(TimeoutError):
        await talk.stop()

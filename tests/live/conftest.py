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
from harness_client.types import Generation
from tests.live.talk import Talk

_PATH = os.environ["PATH"]
_LEGACY = os.environ.get("LEGACY_HOST") or None

live_fixture = functools.partial(pytest_asyncio.fixture, loop_scope="session")


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(Generation.MODERN, marks=pytest.mark.live),
        pytest.param(Generation.LEGACY, marks=pytest.mark.legacy_live),
    ],
)
def generation(request: pytest.FixtureRequest) -> Generation:
    """Return the generation of the host; every live test runs on both."""
    return Generation(request.param)


@pytest.fixture(scope="session")
def command(generation: Generation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the host's command, or skip, counted, where it is not installed."""
    if generation is Generation.LEGACY:
        if _LEGACY is None:
            pytest.skip("no legacy host: LEGACY_HOST=$(sh scripts/legacy-host) names one")
        return _seeing(_LEGACY, tmp_path_factory.mktemp("legacy"))
    try:
        return bundled_command()
    except RuntimeMissing as missing:
        pytest.skip(str(missing))


def _seeing(command: str, place: Path) -> Path:
    """Return ``command`` with a model that takes images, as later generations have by default."""
    models = "[{id: deepseek-v4-flash, name: F, contextWindow: 1000000, inputModalities: [text, image]}]"
    (place / "patch.yml").write_text(f"- id: llm-deepseek\n  config: {{models: {models}}}\n")
    script = place / "dsh"
    script.write_text(f'#!/bin/sh\nshift\nexec "{command}" web --patch "{place}/patch.yml" "$@"\n')
    script.chmod(0o700)
    return script


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

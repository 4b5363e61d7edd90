"""Models, presets, workspaces and the host's own commands, on every release line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_client.client import HarnessClient
from harness_client.errors import Refused, Unsupported
from harness_client.types import ModelChoice
from tests.fakes.harness import FakeHarness
from tests.harness_client.conftest import connect


async def test_models(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    catalog = await client.models()
    assert [model.id for model in catalog.models] == list(host.world.models)
    assert catalog.default is not None
    assert catalog.default.model == host.dialect.model
    assert {effort.id for model in catalog.models for effort in model.efforts} >= {"low", "high"}
    chosen = await client.select_model(session, ModelChoice("deepseek-official", "deepseek-v4-pro", "low"))
    assert chosen == ModelChoice("deepseek-official", "deepseek-v4-pro", "low")
    current = (await client.models(session)).default
    assert current is not None
    assert current.model == chosen.model
    with pytest.raises(Refused, match="model-unavailable"):
        await client.select_model(session, ModelChoice("nobody", "nothing"))


async def test_presets(host: FakeHarness, client: HarnessClient) -> None:
    presets = await client.presets()
    assert [preset.id for preset in presets] == list(host.dialect.presets)
    assert [preset.id for preset in presets if preset.default] == ["standard"]
    assert all(preset.name for preset in presets)
    session = await client.create_session()
    assert await client.select_preset(session, "minimal") == "minimal"


async def test_workspaces(host: FakeHarness, client: HarnessClient, tmp_path: Path) -> None:
    assert (await client.workspaces()).workspaces == ()
    made = await client.create_workspace(str(tmp_path))
    session = await client.create_session(workspace=made.id)
    host.world.archived.append(session)
    listed = await client.workspaces()
    (workspace,) = listed.workspaces
    assert (workspace.id, workspace.path, workspace.sessions) == (made.id, str(tmp_path), (session,))
    assert listed.archived == {session}


async def test_host_commands(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    assert "compact" in {command.name for command in await client.commands(session)}
    done = await client.run_command(session, "/permission read-only")
    assert (done.known, done.ok) == (True, True)
    assert done.text
    wrong = await client.run_command(session, "/permission nope")
    assert (wrong.known, wrong.ok) == (True, False)


async def test_a_host_with_older_argument_names_gets_them(modern: FakeHarness) -> None:
    modern.fail("commands/execute", error={"code": "gateway/arguments-invalid", "message": "x"}, times=1)
    async with connect(modern) as client:
        session = await client.create_session()
        with pytest.raises(Refused):  # the fake knows the newer names only
            await client.run_command(session, "/plan")
    asked = [call.payload for call in modern.calls if call.name == "commands/execute"]
    assert [sorted(payload["args"]) for payload in asked if isinstance(payload, dict)] == [
        ["agentId", "line", "submittedAttachments"],
        ["agentId", "images", "line"],
    ]


async def test_another_refusal_of_a_command_is_not_asked_twice(modern: FakeHarness) -> None:
    modern.fail("commands/execute", error={"code": "session/agent-busy", "message": "x"})
    async with connect(modern) as client:
        session = await client.create_session()
        with pytest.raises(Refused, match="agent-busy"):
            await client.run_command(session, "/plan")
    assert [call.name for call in modern.calls].count("commands/execute") == 1


async def test_a_workspace_must_exist(modern: FakeHarness, tmp_path: Path) -> None:
    async with connect(modern) as client:
        with pytest.raises(Refused, match="no such folder"):
            await client.create_workspace(str(tmp_path / "missing"))
    assert modern.calls == []


async def test_a_host_without_workspaces_says_so(modern: FakeHarness) -> None:
    modern.fail("workspace/follow", error={"code": "gateway/invocation-unavailable", "message": "x"})
    async with connect(modern) as client:
        with pytest.raises(Unsupported):
            await client.workspaces()

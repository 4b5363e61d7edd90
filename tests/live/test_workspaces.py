"""Workspaces on the real host; the packed one cannot load them without our stand-in for a missing package."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.demo_model import Step, Tool
from harness_client.client import HarnessClient
from harness_client.errors import Refused
from tests.live.talk import Talk

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_folder_becomes_a_workspace_with_sessions(client: HarnessClient, tmp_path: Path) -> None:
    workspace = await client.create_workspace(str(tmp_path))
    assert (workspace.path, workspace.title) == (str(tmp_path), tmp_path.name)
    again = await client.create_workspace(str(tmp_path))
    assert again.id == workspace.id
    session = await client.create_session(workspace=workspace.id)
    listed = {each.id: each for each in (await client.workspaces()).workspaces}
    assert session in listed[workspace.id].sessions
    row = next(row for row in await client.sessions() if row.id == session)
    assert row.cwd == str(tmp_path)


async def test_a_missing_folder_is_refused_and_not_made(client: HarnessClient, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(Refused, match="no such folder"):
        await client.create_workspace(str(missing))
    assert not missing.exists()


async def test_programs_of_a_session_do_not_inherit_the_hook(talk: Talk, workspace: Path) -> None:
    await talk.client.run_command(talk.session, "/permission danger-full-access")
    command = "env > environment"
    await talk.ask("look", Step(tools=(Tool("bash", {"command": command, "description": "x"}),)), Step(text="ok"))
    names = [line.partition("=")[0] for line in (workspace / "environment").read_text().splitlines()]
    assert "PATH" in names
    assert "NODE_OPTIONS" not in names

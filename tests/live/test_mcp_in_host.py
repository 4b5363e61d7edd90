"""The MCP server registered in a real host the way the README says: its model calls the tool by itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bridges.demo_model import DemoModel, Step, Tool
from harness_client.client import HarnessClient
from harness_client.embedded import EmbeddedHost, EmbeddedSpec
from harness_client.types import Generation
from tests.archive.libraries import pair, publish, session
from tests.guards.sources import texts
from tests.live.talk import Talk

pytestmark = pytest.mark.asyncio(loop_scope="session")


def patch(workspace: Path) -> str:
    """Return the README's patch, with this machine's paths in it."""
    block = re.search(r"```yaml\n(.*?)```", texts()["README.md"], re.DOTALL)
    assert block is not None
    ours = str(block[1]).replace("command: harness-im", f"command: {sys.executable}")
    return ours.replace("args: [mcp,", "args: [-m, bridges.cli, mcp,").replace("/path/to/workspace", str(workspace))


async def test_the_host_s_model_calls_the_tool(
    generation: Generation, new_spec: Callable[[], EmbeddedSpec], model: DemoModel, tmp_path: Path
) -> None:
    if generation is Generation.LEGACY:
        pytest.skip("the patch is tried on the current host")
    spec = new_spec()
    publish(spec.workspace, session("s", [pair(0, "what is the needle?", answer="made of steel")]))
    file = tmp_path / "cordis.patch.yml"
    file.write_text(patch(spec.workspace))
    script = tmp_path / "dsh"
    script.write_text(f'#!/bin/sh\nshift\nexec "{spec.command}" web --patch "{file}" "$@"\n')
    script.chmod(0o700)
    asked = Tool("mcp__pbot__pbot_history", {"action": "search", "query": "NEEDLE"})
    async with EmbeddedHost(replace(spec, command=script)) as host, HarnessClient(await host.address()) as client:
        talk = Talk(client, model, await client.create_session(cwd=str(spec.workspace)))
        await talk.ask("look it up", Step(tools=(asked,)), Step(text="found"))
        log = (await client.page(talk.session)).sources.values()
    results = [record for record in log if "made of steel" in record]
    assert results, "the tool's answer is in the log"
    assert all("what is the needle?" in record for record in results)

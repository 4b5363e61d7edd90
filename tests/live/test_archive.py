"""What real hosts did, found in the archive: read over HTTP, and read cold from the files they wrote."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from archive.files import ArchiveFolder
from archive.model import EndReason, Host, Origin, Pair, Parentage, SessionArchive
from archive.refresh import refresh_dsh, refresh_remote
from bridges.demo_model import Step, Tool
from harness_client.client import HarnessClient
from harness_client.embedded import EmbeddedSpec
from harness_client.types import SessionId
from tests.live.talk import Talk, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

TASK = '#demo {"steps": [{"text": "The expert counts 7."}]} count'


async def test_far_and_near_read_the_same_pairs(
    talk: Talk, client: HarnessClient, workspace: Path, shared_spec: EmbeddedSpec, tmp_path: Path
) -> None:
    await talk.ask("what is it?", Step(text="It is a test."))
    await talk.say("fail", Step(status=400))
    subagent = Tool("subagent", {"description": "count", "prompt": TASK, "run_in_background": False})
    script = json.dumps(
        {"steps": [{"tools": [{"name": subagent.name, "arguments": subagent.arguments}]}, {"text": "done"}]}
    )
    await talk.say(f"delegate #demo {script}")
    await talk.stop()
    fork = await client.fork_session(talk.session)
    far, near = ArchiveFolder(tmp_path, Host.DSH), ArchiveFolder(workspace, Host.DSH)

    async def settled() -> bool:
        rows = await client.sessions()
        expert = [row for row in rows if row.parent == talk.session and row.subagent]
        return bool(expert) and not any(row.running for row in rows)

    await until(settled)

    async def the_same() -> bool:
        """Whether both came to the same; the host may take a moment to write its files."""
        await refresh_remote(far, workspace, client)
        await asyncio.to_thread(refresh_dsh, near, workspace, shared_spec.data / "dsh")
        return contents(far, talk.session) == contents(near, talk.session) and len(contents(near, talk.session)) == 3

    await until(the_same)
    own = list(archive_of(near, talk.session).pairs.values())
    assert [(pair.answer, pair.end_reason) for pair in own[:2]] == [
        ("It is a test.", EndReason.STOP),
        ("", EndReason.ERROR),
    ]
    assert own[2].completed
    (expert,) = (
        each
        for each in near.load().archives.values()
        if each.lineage.origin is Parentage.SUBAGENT and each.lineage.parent == talk.session
    )
    (task,) = expert.pairs.values()
    assert (task.inputs[0].origin, task.inputs[0].text, task.answer) == (
        Origin.DELEGATION,
        TASK,
        "The expert counts 7.",
    )
    assert contents(far, expert.session) == contents(near, expert.session)
    assert archive_of(near, fork).lineage.parent == talk.session


def archive_of(folder: ArchiveFolder, session: SessionId) -> SessionArchive:
    (archive,) = (each for each in folder.load().archives.values() if each.session == session)
    return archive


def contents(folder: ArchiveFolder, session: SessionId) -> list[Pair]:
    return [pair for each in folder.load().archives.values() if each.session == session for pair in each.pairs.values()]

"""The archive from a chat on a real host: asked with ``/pbot history``, summarised when the workspace is idle."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from archive.files import ArchiveFolder
from archive.model import Host, Summary
from bridges import idle
from bridges.app import open_parts
from bridges.config import Config, Harness, HarnessMode, StateFile, Summaries
from bridges.delivery import Delivery
from bridges.intake import Intake, Policy
from bridges.log import Redactor
from bridges.message import Acceptance, EventId, InboundMessage, ReplyTarget
from bridges.secret import Secret
from bridges.split import split_lossless
from commands.model import ChatKind, SenderId
from harness_client.client import HarnessClient
from i18n import Language
from tests.archive.test_writers import completion, endpoint
from tests.bridges.bench import BOT, CHAT, OPEN, PlainChannel
from tests.live.talk import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


class _Over(Exception):
    """Ends the tasks of a chat."""


class Chat:
    """An owner's private chat."""

    def __init__(self, intake: Intake, channel: PlainChannel) -> None:
        self._intake = intake
        self._channel = channel

    async def ask(self, text: str) -> str:
        before = len(self._channel.sent)
        event = EventId(str(uuid.uuid4()))
        target = ReplyTarget(CHAT, "route")
        message = InboundMessage(event, CHAT, ChatKind.DIRECT, SenderId("owner"), text, target)
        assert await self._intake.accept(message) is Acceptance.ACCEPTED
        await self._channel.until(lambda: len(self._channel.sent) > before, 30)
        return "".join(self._channel.texts[before:])


@asynccontextmanager
async def chat(client: HarnessClient, root: Path, workspace: Path, summaries: Summaries) -> AsyncIterator[Chat]:
    token = client.address.token
    address = Secret(f"{client.address.base}/?token={token}" if token else client.address.base)
    config = Config(
        language=Language.EN,
        harness=Harness(mode=HarnessMode.HTTP, url=address, workspace=str(workspace)),
        state=StateFile(path=root / "state.db"),
        summaries=summaries,
    )
    channel = PlainChannel()
    async with open_parts(config, {}, Redactor(frozenset())) as parts:
        delivery = Delivery(channel, split_lossless, clock=parts.clock)
        try:
            async with asyncio.TaskGroup() as tasks:
                yield Chat(Intake(parts.bot(BOT, channel, delivery), Policy(lambda: OPEN), tasks), channel)
                raise _Over
        except* _Over:
            pass
        finally:
            await delivery.close(1)


async def test_what_was_said_is_found_and_summarised(
    client: HarnessClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "GRACE_SECONDS", 0.05)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    asked = itertools.count(1)

    async def scribe(_request: web.Request) -> web.Response:
        return completion(f"digest {next(asked)} of it all")

    async with endpoint(scribe) as url, chat(client, tmp_path, workspace, Summaries(url=url, model="m")) as said:
        for number in range(4):
            assert f"数据库 {number}" in await said.ask(f"tell me of 数据库 {number}")
        reply = await said.ask("/pbot history 据库 2")
        assert reply.startswith("History search | 据库 2 | 1–1\n\n1. Question and answer · dsh · ")
        assert "tell me of 数据库 2" in reply

        async def written() -> bool:
            folder = ArchiveFolder(workspace, Host.DSH)
            archives = (await asyncio.to_thread(folder.load)).archives.values()
            return any(isinstance(node, Summary) and node.ready for each in archives for node in each.nodes.values())

        await until(written)
        assert "1. Digest · dsh" in await said.ask("/pbot history DIGEST 1 OF")
        assert (await said.ask("/pbot history {")).startswith("request: not valid JSON")
    assert next(asked) == 2

"""A client that only reads, before a real host: ``/history`` works as ever, and nothing else gets through."""

from __future__ import annotations

import uuid

import pytest

from bridges.demo_model import DemoModel
from harness_client.client import HarnessClient
from harness_client.errors import Forbidden
from harness_client.transcript import Role
from harness_client.types import SessionId, TextPart
from tests.live.reading import shown
from tests.live.talk import Talk, new_request

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_history_is_read_and_nothing_else_is_done(talk: Talk, client: HarnessClient, model: DemoModel) -> None:
    await talk.ask("one")
    await talk.ask("two")
    asked, before = dict(model.asked), {each.id for each in await client.sessions()}
    async with HarnessClient(client.address, only_reads=True) as reader:
        assert [role for role, _ in (await shown(reader, talk.session, 5)).entries] == [Role.USER, Role.ASSISTANT] * 2
        with pytest.raises(Forbidden):
            await reader.create_session(session=SessionId(str(uuid.uuid4())), cwd="/")
        with pytest.raises(Forbidden):
            await reader.prompt(talk.session, [TextPart("three")], request=new_request())
        with pytest.raises(Forbidden):
            async with reader.follow(talk.session):
                pass
    assert {each.id for each in await client.sessions()} == before
    assert dict(model.asked) == asked

"""Long sessions on the real host: pages join, and reading calls nobody."""

from __future__ import annotations

import json

import pytest

from bridges.demo_model import DemoModel, Step
from harness_client.client import HarnessClient
from harness_client.embedded import EmbeddedSpec
from harness_client.events import AssistantMessage, TurnEnd, UserMessage
from harness_client.transcript import Role
from harness_client.types import TextPart
from i18n import Key
from tests.live.conftest import live_fixture
from tests.live.reading import WORDS, shown, whole_log
from tests.live.talk import Talk, new_request

pytestmark = pytest.mark.asyncio(loop_scope="session")

TURNS = 105


@live_fixture(scope="module")
async def long_talk(client: HarnessClient, shared_model: DemoModel, shared_spec: EmbeddedSpec) -> Talk:
    """Return a session of more than 200 messages; its turns were queued all at once."""
    talk = Talk(client, shared_model, await client.create_session(cwd=str(shared_spec.workspace)))
    shared_model.queue.clear()
    async with client.follow(talk.session) as items:
        await anext(items)
        for number in range(TURNS):
            shared_model.queue.append(Step(text=f"answer {number}"))
            await client.prompt(talk.session, [TextPart(f"question {number}")], request=new_request())
            talk.expected += [(Role.USER, f"question {number}"), (Role.ASSISTANT, f"answer {number}")]
        ended = 0
        async for item in items:
            ended += isinstance(item, TurnEnd)
            if ended == TURNS:
                break
    return talk


async def test_pages_join_without_gap_or_overlap(long_talk: Talk) -> None:
    pages = await whole_log(long_talk.client, long_talk.session)
    assert len(pages) >= 5
    counted = [sum(isinstance(event, UserMessage | AssistantMessage) for event in page) for page in pages[1:]]
    assert all(count <= 50 for count in counted)
    await long_talk.check()


async def test_the_page_size_changes_nothing(long_talk: Talk) -> None:
    client, session = long_talk.client, long_talk.session
    by_7 = [event for page in await whole_log(client, session, limit=7) for event in page]
    by_300 = [event for page in await whole_log(client, session, limit=300) for event in page]
    assert by_7 == by_300


async def test_reading_calls_no_model(long_talk: Talk, shared_model: DemoModel) -> None:
    before = dict(shared_model.asked)
    await whole_log(long_talk.client, long_talk.session)
    await long_talk.client.projections(long_talk.session)
    await long_talk.client.sessions()
    assert dict(shared_model.asked) == before


async def test_a_turn_too_long_for_three_pages_shows_its_answer_and_says_so(talk: Talk) -> None:
    read = {"name": "read", "arguments": {"file_path": "none"}}
    steps: list[dict[str, object]] = [{"text": "on", "tools": [read]}] * 155
    await talk.ask("#demo " + json.dumps({"steps": [*steps, {"text": "the end"}]}))
    reply = await shown(talk.client, talk.session, 3)
    assert reply.entries == talk.expected[-1:]
    assert reply.notes == [WORDS(Key.HISTORY_BOUNDED, count=1)]


async def test_a_turn_of_many_steps_lies_on_several_pages(talk: Talk) -> None:
    await talk.ask("before")
    steps: list[dict[str, object]] = [
        {"text": f"step {number}", "tools": [{"name": "read", "arguments": {"file_path": f"none-{number}"}}]}
        for number in range(70)
    ]
    script = "#demo " + json.dumps({"steps": [*steps, {"text": "the end"}]})
    await talk.ask(script)
    assert len(await whole_log(talk.client, talk.session)) >= 2
    asked, answer = talk.expected[-2:]
    reply = await shown(talk.client, talk.session, 4)
    assert reply.entries[:2] == talk.expected[:2]
    assert reply.entries[2][1].startswith(asked[1][:100])
    assert reply.entries[3:] == [answer]

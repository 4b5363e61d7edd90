"""Every trap of the hosts that is known, by its number in the facts (HARNESS 12)."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path

import pytest

from harness_client.carrier import KEEPALIVE_SECONDS
from harness_client.client import Address, HarnessClient
from harness_client.errors import Refused, SessionNotFound, Unreachable
from harness_client.events import AssistantMessage, Text, TurnEnd, UserMessage
from harness_client.streams import QuestionAsked, RunningChanged, Snapshot
from harness_client.types import (
    Answer,
    Generation,
    ModelChoice,
    QueueAction,
    Receipt,
    RequestId,
    SessionId,
    SessionSummary,
    TextPart,
)
from tests.fakes.harness import FakeHarness, ask, question, say
from tests.fakes.harness.dialect import Flavour
from tests.harness_client.conftest import FLAVOURS, MODERN, connect, serve, wait_for


async def prompt(client: HarnessClient, session: SessionId, words: str) -> None:
    await client.prompt(session, [TextPart(words)], request=RequestId(f"r-{words}"))


async def said(client: HarnessClient, session: SessionId) -> list[str]:
    """Return what humans said, oldest first."""
    return [
        block.text
        for event in (await client.page(session)).events
        if isinstance(event, UserMessage) and event.source is not None and event.source.kind == "user"
        for block in event.blocks
        if isinstance(block, Text)
    ]


async def test_01_the_protocol_is_no_matter_of_the_version() -> None:
    for flavour in FLAVOURS:
        generation = Generation.MODERN if flavour in MODERN else Generation.LEGACY
        async with serve(flavour) as host, connect(host) as client:
            assert (await client.health()).generation is generation


async def test_02_a_login_holds_for_the_address_as_written(modern: FakeHarness) -> None:
    for name in ("127.0.0.1", "localhost"):
        async with HarnessClient(Address(f"http://{name}:{modern.port}", modern.login.token)) as client:
            await client.sessions()
    assert [call.name for call in modern.calls].count("login") == 2


@pytest.mark.parametrize("flavour", MODERN)
async def test_03_a_cursor_past_the_end_is_an_error_and_never_guessed(flavour: Flavour) -> None:
    async with serve(flavour) as host, connect(host) as client:
        session = host.session()
        session.dialogue(2)
        with pytest.raises(Refused):
            await client.page(SessionId(session.id), through=session.log.cursor + 1)
        assert (await client.page(SessionId(session.id))).through == session.log.cursor


async def test_04_a_value_may_be_absent(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    assert not (await client.run_command(session, "/no-such-command")).known
    assert not (await client.run_command(session, "no command at all")).known


async def test_05_a_business_error_is_http_200(host: FakeHarness, client: HarnessClient) -> None:
    with pytest.raises(SessionNotFound) as refused:
        await client.rename_session(SessionId("nope"), "x")
    assert refused.value.reason in {"session-not-found", "session/not-found"}


async def test_06_nothing_is_ever_sent_on_a_legacy_socket(legacy: FakeHarness) -> None:
    """The fake closes at the first frame it gets, as the host does."""
    async with connect(legacy) as client:
        session = await client.create_session()
        async with client.follow(session) as items, client.host_events() as events:
            await prompt(client, session, "go")
            async for item in items:
                if isinstance(item, TurnEnd):
                    break
            assert await anext(aiter(events)) == RunningChanged(session, running=True)
            async with client.follow(session) as again:
                assert isinstance(await anext(aiter(again)), Snapshot)


def test_07_an_idle_connection_is_given_up_before_the_host_does() -> None:
    assert KEEPALIVE_SECONDS < 5


async def test_08_cancelling_parks_the_queue_until_the_next_prompt(host: FakeHarness, client: HarnessClient) -> None:
    host.model.script(say("a", asyncio.Event()))
    session = await client.create_session()
    async with client.host_events():  # a legacy host tells its queue to listeners only
        await prompt(client, session, "one")
        await host.until(lambda: bool(host.session(session).partial))
        for words in ("two", "three"):
            await prompt(client, session, words)
        await client.cancel(session)
        await host.settle()
        assert await said(client, session) == ["one"]
        parked = (await client.projections(session)).queue
        if parked is None:
            assert host.dialect.flavour == "0.1.2"  # it tells nobody
        else:
            assert [item.request for item in parked] == ["r-two", "r-three"]
            await client.update_queue(session, parked[0].id, QueueAction.REMOVE)
        await prompt(client, session, "four")
        await host.settle()
        assert await said(client, session) == ["one", *(["two"] if parked is None else []), "three", "four"]


async def test_09_injected_messages_are_told_apart_and_count_in_pages(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    session.dialogue(1)
    session.inject("tool-jobs", "a job ended", summary="done")
    page = await client.page(SessionId(session.id), limit=1)
    (injected,) = page.events
    assert isinstance(injected, UserMessage)
    assert injected.source is not None
    assert injected.source.kind != "user"
    assert page.has_more


def test_10_blank_is_not_believed() -> None:
    assert "blank" not in {field.name for field in fields(SessionSummary)}


async def test_11_an_end_seed_is_no_fork(host: FakeHarness) -> None:
    session = host.session()
    session.dialogue(1)
    await host.restart()
    session.wake()
    async with connect(host) as client:
        page = await client.page(SessionId(session.id))
        assert [type(event) for event in page.events][-1] is TurnEnd
        (summary,) = await client.sessions()
        assert summary.parent is None


async def test_12_a_crashed_turn_reads_as_interrupted(host: FakeHarness) -> None:
    host.model.script(say("half", asyncio.Event()))
    async with connect(host) as client:
        session = await client.create_session()
        await prompt(client, session, "go")
        await host.until(lambda: bool(host.session(session).partial))
    await host.restart()
    async with connect(host) as client:
        ends = [event.reason for event in (await client.page(session)).events if isinstance(event, TurnEnd)]
        assert ends == ["interrupted"]
        assert not await client.running(session)


async def test_13_messages_carry_the_id_that_survives_migrations(host: FakeHarness, client: HarnessClient) -> None:
    session = host.session()
    session.dialogue(2)
    messages = [
        event
        for event in (await client.page(SessionId(session.id))).events
        if isinstance(event, UserMessage | AssistantMessage)
    ]
    assert len({message.id for message in messages} - {None}) == 4


async def test_14_a_fork_at_the_end_of_a_turn_means_the_same_everywhere(
    host: FakeHarness, client: HarnessClient
) -> None:
    session = host.session()
    session.dialogue(3)
    ends = [e.seq for e in (await client.page(SessionId(session.id))).events if isinstance(e, TurnEnd)]
    child = await client.fork_session(SessionId(session.id), ends[1])
    assert await said(client, child) == ["u1", "u2"]


async def test_15_answers_are_checked_here_and_a_modern_host_gives_no_receipt(modern: FakeHarness) -> None:
    modern.model.script(say("?", tools=[ask(question("q", "Which?", "A", "B"))]), "thanks")
    async with connect(modern) as client, client.host_events() as events:
        session = await client.create_session()
        await prompt(client, session, "go")
        asked = await wait_for(events, QuestionAsked)
        assert await client.answer(asked, {"q": Answer("q", ("Made up",))}) is Receipt.INVALID
        assert modern.world.pending
        assert await client.answer(asked, {"q": Answer("q", ("A",))}) is Receipt.UNKNOWN
        await modern.settle()


async def test_16_a_prompt_is_sent_once_and_looked_for_in_the_log(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    for method in ("session.prompt", "session/prompt"):
        host.fail(method, drop="mid", effect=True)
    with pytest.raises(Unreachable):
        await prompt(client, session, "once")
    await host.settle()
    assert await said(client, session) == ["once"]
    requests = [
        e.source.request for e in (await client.page(session)).events if isinstance(e, UserMessage) and e.source
    ]
    assert requests.count(RequestId("r-once")) == 1


async def test_17_choosing_a_model_changes_the_default_of_all_later_sessions(
    host: FakeHarness, client: HarnessClient
) -> None:
    session = await client.create_session()
    await client.select_model(session, ModelChoice("deepseek-official", "deepseek-v4-pro"))
    default = (await client.models()).default
    assert default is not None
    assert default.model == "deepseek-v4-pro"


async def test_18_a_command_as_a_prompt_is_plain_text(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    await prompt(client, session, "/permission read-only")
    await host.settle()
    assert await said(client, session) == ["/permission read-only"]
    assert (await client.run_command(session, "/permission read-only")).known
    assert await said(client, session) == ["/permission read-only"]


def test_19_there_is_no_way_to_delete_a_session() -> None:
    assert not [name for name in dir(HarnessClient) if "delete" in name or "remove" in name]


async def test_20_titles_come_late_and_change(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    assert (await client.projections(session)).title is None
    host.model.title = ""
    await prompt(client, session, "first words")
    await host.settle()
    assert (await client.projections(session)).title == "first words"
    host.session(session).rename("Made later")
    assert (await client.projections(session)).title == "Made later"


async def test_21_subagents_are_in_the_list_and_marked(host: FakeHarness, client: HarnessClient) -> None:
    parent = host.session()
    child = host.session("a-child", parent=parent.id, origin="subagent")
    marked = {summary.id: summary.subagent for summary in await client.sessions()}
    assert marked == {parent.id: False, child.id: True}


async def test_22_host_events_name_their_session(host: FakeHarness, client: HarnessClient) -> None:
    one, two = await client.create_session(), await client.create_session()
    async with client.host_events() as events:
        await prompt(client, one, "go")
        await host.settle()
        await prompt(client, two, "go")
        await host.settle()
        stream = aiter(events)
        told = [await anext(stream) for _ in range(4)]
    assert [event.session for event in told] == [one, one, two, two]


async def test_23_a_pending_question_holds_the_turn_until_somebody_answers(
    host: FakeHarness, client: HarnessClient
) -> None:
    host.model.script(say("?", tools=[ask(question("q", "Which?", "A", "B"))]))
    session = await client.create_session()
    await prompt(client, session, "go")
    await host.until(lambda: bool(host.world.pending))
    async with client.host_events() as events:  # listening alone settles nothing
        await wait_for(events, QuestionAsked)
    assert host.world.pending
    assert await client.running(session)
    await client.cancel(session)
    await host.settle()


async def test_24_a_missing_folder_is_not_made_by_registering_it(modern: FakeHarness, tmp_path: Path) -> None:
    async with connect(modern) as client:
        with pytest.raises(Refused):
            await client.create_workspace(str(tmp_path / "missing"))
    assert not [call for call in modern.calls if call.name == "workspace/create"]

"""Following a session: a snapshot, then everything later, streamed text in between, and a clear end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from harness_client.client import HarnessClient
from harness_client.errors import Unreachable
from harness_client.events import AssistantMessage, StreamReset, Text, TextDelta, TurnEnd, UserMessage
from harness_client.streams import FollowItem, Snapshot
from harness_client.types import RequestId, SessionId, TextPart
from tests.fakes.harness import Failure, FakeHarness, Obj, Step, Tool, say
from tests.harness_client.conftest import connect, seqs


async def prompt(client: HarnessClient, session: SessionId, words: str) -> None:
    await client.prompt(session, [TextPart(words)], request=RequestId(f"r-{words}"))


async def to_the_end(items: AsyncIterator[FollowItem]) -> list[FollowItem]:
    taken: list[FollowItem] = []
    async for item in items:
        taken.append(item)
        if isinstance(item, TurnEnd):
            break
    return taken


def _text(words: str) -> Obj:
    return {"type": "text-delta", "index": 0, "text": words}


def streamed(items: list[FollowItem]) -> str:
    text = ""
    for item in items:
        if isinstance(item, StreamReset):
            text = ""
        elif isinstance(item, TextDelta):
            text += item.text
    return text


async def test_a_turn_streams_and_no_event_is_missing(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    host.model.script(say("one ", "two", reasoning=["hm"], tools=[Tool("bash")]), "three")
    async with client.follow(session) as items:
        first = await anext(aiter(items))
        assert isinstance(first, Snapshot)
        assert (first.cursor, first.partial, first.page.has_more) == (2, None, False)
        await prompt(client, session, "go")
        taken = await to_the_end(items)
    assert seqs(taken) == list(range(3, taken[-1].seq + 1 if isinstance(taken[-1], TurnEnd) else 0))
    assert streamed(taken) == "one twothree"
    said = [b.text for e in taken if isinstance(e, AssistantMessage) for b in e.blocks if isinstance(b, Text)]
    assert "".join(said) == "one twothree"
    deltas = [(item.turn, item.step) for item in taken if isinstance(item, TextDelta)]
    assert sorted(set(deltas)) == [(1, 1), (1, 2)]


async def test_the_text_of_a_failed_attempt_is_taken_back(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    host.model.script(Step(["half an answer"], failure=Failure(status=503, retries=1, recovers=True)))
    async with client.follow(session) as items:
        await prompt(client, session, "go")
        taken = await to_the_end(items)
    assert any(isinstance(item, StreamReset) for item in taken)
    (said,) = [e for e in taken if isinstance(e, AssistantMessage)]
    assert said.blocks[-1] == Text(streamed(taken))


async def test_the_snapshot_holds_what_is_already_said(host: FakeHarness, client: HarnessClient) -> None:
    session = SessionId(host.session().id)
    host.session(session).dialogue(2)
    hold = asyncio.Event()
    host.model.script(say("al", "read", "y ", "said ", hold, "and more"))
    await prompt(client, session, "go")
    await host.until(lambda: host.session(session).partial == "already said ")
    async with client.follow(session) as items:
        snapshot = await anext(aiter(items))
        assert isinstance(snapshot, Snapshot)
        assert snapshot.cursor == host.session(session).log.cursor
        assert [e.turn for e in snapshot.page.events if isinstance(e, TurnEnd)] == [1, 2]
        hold.set()
        taken = await to_the_end(items)
    assert snapshot.partial == TextDelta(3, 1, "already said ")
    assert streamed(taken) == "and more"


async def test_another_session_is_not_heard(host: FakeHarness, client: HarnessClient) -> None:
    mine, other = await client.create_session(), await client.create_session()
    async with client.follow(mine) as items:
        await prompt(client, other, "not mine")
        await host.settle()
        await prompt(client, mine, "mine")
        taken = await to_the_end(items)
    assert seqs(taken)[0] == 3
    assert "not mine" not in streamed(taken)


async def test_streams_share_one_socket_and_the_last_closes_it(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    for round_ in (1, 2):
        async with client.follow(session), client.follow(session), client.host_events():
            pass
        sockets = [call.name for call in host.calls if call.name in {"remote.mux", "events.mux", "events.host"}]
        assert len(sockets) == len(set(sockets)) * round_


async def test_what_a_failed_attempt_said_is_no_part_of_the_snapshot(legacy: FakeHarness) -> None:
    session = legacy.session()
    for chunk in (_text("void"), {"type": "finish", "reason": {"kind": "error"}}, _text("good")):
        session.raw(type="assistant/chunk", data={"turn": 1, "step": 1, "chunk": chunk})
    for _ in range(300):
        session.raw(type="assistant/chunk", data={"turn": 1, "step": 2, "chunk": _text(".")})
    async with connect(legacy) as client, client.follow(SessionId(session.id)) as items:
        snapshot = await anext(aiter(items))
        assert isinstance(snapshot, Snapshot)
        assert snapshot.partial == TextDelta(1, 2, "." * 300)


async def test_a_broken_link_ends_every_stream_and_a_new_one_takes_over(
    host: FakeHarness, client: HarnessClient
) -> None:
    session = await client.create_session()
    async with client.follow(session) as items, client.host_events() as events:
        assert isinstance(await anext(aiter(items)), Snapshot)
        host.cut()
        for stream in (items, events):
            with pytest.raises(Unreachable):
                await anext(aiter(stream))
        async with client.follow(session) as again:
            assert isinstance(await anext(aiter(again)), Snapshot)
            await prompt(client, session, "go")
            assert await to_the_end(again)


async def test_a_cold_legacy_session_that_wakes_is_followed_without_a_gap(legacy: FakeHarness) -> None:
    session = legacy.session()
    session.dialogue(2)
    await legacy.restart()
    async with connect(legacy) as client, client.follow(SessionId(session.id)) as items:
        snapshot = await anext(aiter(items))
        assert isinstance(snapshot, Snapshot)
        listeners, legacy.world.listeners = legacy.world.listeners, set()
        session.wake()  # its first events come before anybody is subscribed
        session.user("missed")
        legacy.world.listeners = listeners
        await prompt(client, SessionId(session.id), "go")
        taken = await to_the_end(items)
    assert seqs(taken)[-1] == session.log.cursor
    assert [e.blocks for e in taken if isinstance(e, UserMessage)][:2] == [(Text("missed"),), (Text("go"),)]


async def test_a_legacy_gap_too_wide_to_fill_ends_the_stream(legacy: FakeHarness) -> None:
    session = legacy.session()
    async with connect(legacy) as client, client.follow(SessionId(session.id)) as items:
        assert isinstance(await anext(aiter(items)), Snapshot)
        session.dialogue(200)
        session.user("after the gap")
        with pytest.raises(Unreachable, match="missed"):
            await anext(aiter(items))


async def test_a_follow_that_is_left_leaves_nothing_behind(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    for _ in range(3):
        async with client.follow(session) as items:
            assert isinstance(await anext(aiter(items)), Snapshot)
    tasks = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("harness ")]
    assert tasks == []


async def test_what_a_legacy_page_already_had_is_not_told_again(legacy: FakeHarness) -> None:
    session = legacy.session()
    hold = asyncio.Event()
    legacy.fail("session.history", delay=hold)
    async with connect(legacy) as client:
        following = client.follow(SessionId(session.id))
        entering = asyncio.create_task(following.__aenter__())
        await legacy.until_called("session.history")
        session.user("said between subscription and page")
        hold.set()
        items = await entering
        try:
            snapshot = await anext(aiter(items))
            assert isinstance(snapshot, Snapshot)
            last = session.user("said after the page")
            later = await anext(aiter(items))
            assert snapshot.cursor == last - 1
            assert seqs([later]) == [last]
        finally:
            await following.__aexit__(None, None, None)


async def test_a_connection_under_way_is_left_to_nobody_however_often_it_is_cancelled(
    modern: FakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, never = asyncio.Event(), asyncio.Event()
    connecting: list[asyncio.Task[object]] = []

    async def hang(*_: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        connecting.append(task)
        begun.set()
        await never.wait()

    async def follow() -> None:
        async with client.follow(session):
            pass

    async with connect(modern) as client:
        session = await client.create_session()
        monkeypatch.setattr("harness_client.carrier.Carrier.connect", hang)
        following = asyncio.create_task(follow())
        await begun.wait()
        for _ in range(2):
            following.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([following])
        await asyncio.wait(connecting)
    assert connecting[0].cancelled()

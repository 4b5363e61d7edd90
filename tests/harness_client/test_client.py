"""The calls of the client mean the same on every release line."""

from __future__ import annotations

import asyncio
import base64

import pytest

from harness_client.client import CALL_SECONDS, Address, HarnessClient
from harness_client.errors import (
    Conflict,
    HarnessError,
    Malformed,
    Refused,
    SessionNotFound,
    TimedOut,
    Unreachable,
)
from harness_client.events import AssistantMessage, Text, TurnEnd, UserMessage
from harness_client.streams import Snapshot
from harness_client.types import (
    AttachmentId,
    Generation,
    ImagePart,
    PromptMode,
    QueueAction,
    QueueItemId,
    RequestId,
    SessionId,
    TextPart,
)
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, How, Session, say
from tests.harness_client.conftest import connect

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def past(host: FakeHarness, turns: int = 2) -> Session:
    session = host.session()
    session.dialogue(turns)
    return session


async def test_health_tells_the_generation(host: FakeHarness, client: HarnessClient) -> None:
    assert (await client.health()).generation is host.dialect.generation


@pytest.mark.parametrize(
    ("page", "version"),
    [
        ('boot = {"rev":"5fa","release":{"version":"0.2.1-rc.2","commit":"332895e"}}', "0.2.1-rc.2"),
        ('boot = {"version":"5"}', None),
        ('"release":{"version":"<script>"}', None),
    ],
)
async def test_health_tells_the_version_where_the_start_page_does(
    modern: FakeHarness, page: str, version: str | None
) -> None:
    async with connect(modern) as client:
        await client.sessions()
        modern.fail("login", body=page.encode())
        assert (await client.health()).version == version


async def test_health_notices_that_the_host_is_gone(host: FakeHarness, client: HarnessClient) -> None:
    await client.health()
    await host.stop()
    with pytest.raises(Unreachable):
        await client.health()


async def test_a_session_is_created_listed_renamed(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session(cwd="/srv/project", preset="minimal")
    assert await client.create_session(session=session, cwd="/srv/project") == session
    with pytest.raises(Conflict):
        await client.create_session(session=session, cwd="/srv/other")
    assert await client.rename_session(session, "  My  title ") == "My title"
    (summary,) = await client.sessions()
    assert (summary.id, summary.title, summary.cwd) == (session, "My title", "/srv/project")
    assert (summary.preset, summary.running, summary.subagent) == ("minimal", False, False)


async def test_sessions_come_newest_first_and_subagents_are_marked(host: FakeHarness, client: HarnessClient) -> None:
    old = host.session()
    child = host.session("child", parent=old.id, origin="subagent")
    newest, oldest = await client.sessions()
    assert (newest.id, newest.parent, newest.subagent) == (child.id, old.id, True)
    assert (oldest.id, oldest.parent, oldest.subagent) == (old.id, None, False)


async def test_pages_join_without_gap_or_overlap(host: FakeHarness, client: HarnessClient) -> None:
    session = SessionId(past(host, 60).id)
    page = await client.page(session, limit=50)
    pages = [page]
    while page.has_more:
        page = await client.page(session, before=page.oldest, through=page.through, limit=50)
        pages.append(page)
    seqs = [seq for page in reversed(pages) for seq in sorted(page.sources)]
    assert seqs == list(range(len(seqs)))
    assert len(pages) == 3
    words = [e.blocks for page in reversed(pages) for e in page.events if isinstance(e, UserMessage)]
    assert words == [(Text(f"u{k}"),) for k in range(1, 61)]


async def test_reading_is_nothing_but_reading(host: FakeHarness) -> None:
    session = past(host)
    await host.restart()
    async with connect(host) as client:
        await client.page(SessionId(session.id))
        await client.projections(SessionId(session.id))
        await client.running(SessionId(session.id))
    assert host.writes == []
    assert not session.attached


async def test_a_cold_session_is_read_to_its_true_end(host: FakeHarness) -> None:
    session = past(host)
    await host.restart()
    session.cached_as_of = 3
    async with connect(host) as client:
        page = await client.page(SessionId(session.id))
    assert page.newest == session.log.cursor


async def test_an_unknown_session_is_not_found(host: FakeHarness, client: HarnessClient) -> None:
    nope = SessionId("nope")
    for call in (
        client.page(nope),
        client.projections(nope),
        client.running(nope),
        client.cancel(nope),
        client.fork_session(nope),
        client.rename_session(nope, "x"),
        client.prompt(nope, [TextPart("x")], request=RequestId("r")),
    ):
        with pytest.raises(SessionNotFound):
            await call
    with pytest.raises(SessionNotFound):
        async with client.follow(nope):
            pass


async def test_a_prompt_runs_and_is_found_by_its_request(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    host.model.script("an answer")
    await client.prompt(session, [TextPart("hello")], request=RequestId("mine"))
    await host.settle()
    page = await client.page(session)
    (prompt,) = [e for e in page.events if isinstance(e, UserMessage) and e.source and e.source.request == "mine"]
    assert prompt.blocks == (Text("hello"),)
    (said,) = [e for e in page.events if isinstance(e, AssistantMessage)]
    assert said.blocks[-1] == Text("an answer")


async def test_half_a_surrogate_pair_goes_both_ways(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    host.model.script("cut \ud83d")
    await client.prompt(session, [TextPart("half \ude00")], request=RequestId("mine"))
    await host.settle()
    page = await client.page(session)
    blocks = [e.blocks for e in page.events if isinstance(e, UserMessage | AssistantMessage)]
    assert (Text("half \ude00"),) in blocks
    assert (Text("cut \ud83d"),) in blocks
    await client.rename_session(session, "title \ud83d")
    assert (await client.projections(session)).title == "title \ud83d"


async def test_an_image_goes_up_and_comes_back(host: FakeHarness, client: HarnessClient) -> None:
    host.world.image_models |= {host.world.default_model}
    session = await client.create_session()
    await client.prompt(session, [TextPart("look"), ImagePart("image/png", PNG, "a.png")], request=RequestId("r"))
    await host.settle()
    (known,) = host.session(session).attachments
    attachment = await client.attachment(session, AttachmentId(known))
    assert (attachment.media_type, attachment.name, attachment.data) == ("image/png", "a.png", PNG)
    with pytest.raises(Refused) as refused:
        await client.attachment(session, AttachmentId("nope"))
    assert refused.value.reason in {"attachment-error", "session/attachment-invalid"}


async def test_an_image_no_model_can_see_is_refused(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    with pytest.raises(Refused):
        await client.prompt(session, [ImagePart("image/png", b"no image")], request=RequestId("r"))


async def test_running_and_cancel(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    assert not await client.running(session)
    host.model.script(say("a", asyncio.Event()))
    await client.prompt(session, [TextPart("go")], request=RequestId("r"))
    assert await client.running(session)
    assert (await client.projections(session)).running
    await client.cancel(session)
    await host.settle()
    assert [e.reason for e in (await client.page(session)).events if isinstance(e, TurnEnd)] == ["aborted"]
    await client.cancel(session)  # also when idle


async def test_cancelling_a_cold_session_is_nothing(host: FakeHarness, client: HarnessClient) -> None:
    session = past(host)
    host.fail("session.cancel", error={"code": "session-not-found", "message": "x (not attached)"})
    host.fail("session/cancel", error={"code": "session/not-found", "message": "x (not attached)"})
    await client.cancel(SessionId(session.id))


async def test_fork_at_the_end_of_a_turn_takes_the_whole_turn(host: FakeHarness, client: HarnessClient) -> None:
    session = SessionId(past(host, 3).id)
    ends = [e.seq for e in (await client.page(session)).events if isinstance(e, TurnEnd)]
    child = await client.fork_session(session, ends[0])
    answers = [e.blocks for e in (await client.page(child)).events if isinstance(e, AssistantMessage)]
    assert answers == [(Text("a1"),)]


async def test_queue_is_seen_and_changed(modern: FakeHarness) -> None:
    modern.model.script(say("a", asyncio.Event()))
    async with connect(modern) as client:
        session = await client.create_session()
        await client.prompt(session, [TextPart("one")], request=RequestId("r1"))
        await modern.until(lambda: bool(modern.session(session).partial))
        await client.prompt(session, [TextPart("two")], request=RequestId("r2"))
        await client.prompt(session, [TextPart("three")], request=RequestId("r3"), mode=PromptMode.STEER)
        queue = (await client.projections(session)).queue
        assert queue is not None
        assert [(item.request, item.placement) for item in queue] == [("r3", "steering"), ("r2", "queued")]
        await client.update_queue(session, queue[0].id, QueueAction.REMOVE)
        await client.update_queue(session, queue[1].id, QueueAction.STEER)
        queue = (await client.projections(session)).queue
        assert queue is not None
        assert [(item.request, item.placement) for item in queue] == [("r2", "steering")]
        with pytest.raises(Refused, match="queue-item-not-found"):
            await client.update_queue(session, QueueItemId("nope"), QueueAction.REMOVE)
        await client.cancel(session)


async def test_legacy_queue_is_known_while_somebody_listens(legacy: FakeHarness) -> None:
    legacy.model.script(say("a", asyncio.Event()))
    async with connect(legacy) as client:
        session = await client.create_session()
        await client.prompt(session, [TextPart("one")], request=RequestId("r1"))
        await legacy.until(lambda: bool(legacy.session(session).partial))
        await client.prompt(session, [TextPart("two")], request=RequestId("r2"))
        assert (await client.projections(session)).queue is None
        async with client.follow(session) as items:
            assert isinstance(await anext(aiter(items)), Snapshot)
            queue = (await client.projections(session)).queue
            assert queue is not None
            assert [(item.request, item.placement) for item in queue] == [("r2", "queued")]
            await client.update_queue(session, queue[0].id, QueueAction.REMOVE)
            assert legacy.session(session).queues["next-turn"] == []
        assert (await client.projections(session)).queue is None
        await client.cancel(session)


async def test_projections_of_an_attached_session(host: FakeHarness, client: HarnessClient) -> None:
    session = past(host)
    session.rename("A title")
    found = await client.projections(SessionId(session.id))
    assert (found.title, found.running, found.as_of_seq) == ("A title", False, session.log.cursor)


async def test_a_cold_row_is_a_cache_and_not_believed_where_the_host_has_better(modern: FakeHarness) -> None:
    session = past(modern)
    await modern.restart()
    session.cached_as_of = 3
    async with connect(modern) as client:
        assert (await client.projections(SessionId(session.id))).as_of_seq == session.log.cursor


async def test_a_call_that_does_not_end_times_out(modern: FakeHarness) -> None:
    clock = FakeClock()
    modern.fail("session/list", delay=asyncio.Event())
    async with HarnessClient(Address.parse(modern.url), clock=clock) as client:
        call = asyncio.create_task(client.sessions())
        await clock.sleeping()
        await clock.advance(CALL_SECONDS)
        with pytest.raises(TimedOut):
            await call


async def test_the_client_is_of_no_use_outside_its_context(modern: FakeHarness) -> None:
    client = HarnessClient(Address.parse(modern.url))
    with pytest.raises(RuntimeError):
        await client.sessions()
    async with client:
        await client.health()
    with pytest.raises(RuntimeError):
        await client.sessions()


async def test_a_log_that_waits_for_migration_is_read_by_the_bound(modern: FakeHarness) -> None:
    session = past(modern)
    modern.fail("session/projections", value={"kind": "migration-required", "values": {}})
    async with connect(modern) as client:
        assert (await client.page(SessionId(session.id))).newest == session.log.cursor


@pytest.mark.parametrize(
    ("how", "error"),
    [
        (How(error={"code": "gateway/bad-request", "message": "no"}), Refused),
        (How(error={"code": "session/not-found", "message": "no"}), SessionNotFound),
        (How(value={"records": [], "hasMore": False}), Malformed),
    ],
)
async def test_a_host_that_names_no_bound_fails_the_page(
    modern: FakeHarness, how: How, error: type[HarnessError]
) -> None:
    session = past(modern)
    modern.fail("session/projections", status=404)
    modern.fail("session/page", **how)
    async with connect(modern) as client:
        with pytest.raises(error):
            await client.page(SessionId(session.id))


async def test_a_missing_endpoint_is_asked_for_once(modern: FakeHarness) -> None:
    session = SessionId(past(modern).id)
    modern.fail("session/projections", status=404)
    async with connect(modern) as client:
        await client.page(session)
        await client.page(session)
    assert [call.name for call in modern.calls].count("session/projections") == 1


def test_the_generation_is_found_out_and_never_given() -> None:
    assert {member.value for member in Generation} == {"legacy", "modern"}
    assert set(Address.__dataclass_fields__) == {"base", "token"}

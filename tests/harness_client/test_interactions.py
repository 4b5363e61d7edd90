"""Questions, approvals and run states of all sessions, on both generations."""

from __future__ import annotations

import pytest

from harness_client.client import HarnessClient
from harness_client.errors import Malformed, Refused
from harness_client.events import ApprovalDecided, TurnEnd
from harness_client.legacy_streams import PENDING_LIMIT, _keep
from harness_client.streams import ApprovalAsked, InteractionClosed, QuestionAsked, RunningChanged
from harness_client.types import (
    Answer,
    Decision,
    Generation,
    InteractionId,
    Receipt,
    RequestId,
    SessionId,
    TextPart,
)
from tests.fakes.harness import FakeHarness, Tool, ask, question, say
from tests.harness_client.conftest import connect, wait_for
from tests.harness_client.raw import Wire, raw_host

ASK = say("I ask.", tools=[ask(question("color", "Which?", "Red", "Blue"), question("free", "Words?"))])
TRY = say("I try.", tools=[Tool("bash", {"command": "ls"}, approval="escalate: need it")])
RED = {"color": Answer("color", ("Red",)), "free": Answer("free", (), "words")}


async def start(client: HarnessClient) -> SessionId:
    session = await client.create_session()
    await client.prompt(session, [TextPart("go")], request=RequestId("r"))
    return session


async def ending(host: FakeHarness, client: HarnessClient, session: SessionId) -> str:
    await host.settle()
    (end,) = [e for e in (await client.page(session)).events if isinstance(e, TurnEnd)]
    return end.reason


def accepted(host: FakeHarness) -> Receipt:
    return Receipt.ACCEPTED if host.dialect.generation is Generation.LEGACY else Receipt.UNKNOWN


async def test_a_question_is_answered(host: FakeHarness, client: HarnessClient) -> None:
    host.model.script(ASK, "thanks")
    async with client.host_events() as events:
        session = await start(client)
        asked = await wait_for(events, QuestionAsked)
        assert asked.session == session
        assert [(q.id, [o.label for o in q.options], q.multiple) for q in asked.questions] == [
            ("color", ["Red", "Blue"], False),
            ("free", [], False),
        ]
        before = len(host.calls)
        assert await client.answer(asked, {"color": Answer("color", ("Green",))}) is Receipt.INVALID
        assert len(host.calls) == before
        assert await client.answer(asked, RED) is accepted(host)
        assert await ending(host, client, session) == "completed"


async def test_a_question_is_declined_and_the_turn_goes_on(host: FakeHarness, client: HarnessClient) -> None:
    host.model.script(ASK, "never mind")
    async with client.host_events() as events:
        session = await start(client)
        assert await client.decline(await wait_for(events, QuestionAsked)) is accepted(host)
        assert await ending(host, client, session) == "completed"


@pytest.mark.parametrize("decision", Decision)
async def test_an_approval_is_decided(host: FakeHarness, client: HarnessClient, decision: Decision) -> None:
    host.model.script(TRY, "done")
    async with client.host_events() as events:
        session = await start(client)
        asked = await wait_for(events, ApprovalAsked)
        assert (asked.session, asked.tool, asked.reason) == (session, "bash", "escalate: need it")
        assert await client.decide(asked, decision) is accepted(host)
        assert await ending(host, client, session) == "completed"
    decided = [e for e in (await client.page(session)).events if isinstance(e, ApprovalDecided)]
    assert [e.outcome for e in decided] == [decision]
    if asked.approval is not None:
        assert decided[0].approval == asked.approval


async def test_what_is_pending_comes_first_to_whoever_listens_late(host: FakeHarness, client: HarnessClient) -> None:
    host.model.script(ASK, "thanks")
    session = await start(client)
    await host.until(lambda: bool(host.world.pending))
    async with client.host_events() as first:
        asked = await wait_for(first, QuestionAsked)
        async with client.host_events() as second:  # on a link that already stands
            again = await wait_for(second, QuestionAsked)
            assert again == asked
    assert await client.answer(asked, RED) is accepted(host)  # also when nobody listens any more
    assert await ending(host, client, session) == "completed"


async def test_a_cancelled_turn_closes_its_question(host: FakeHarness, client: HarnessClient) -> None:
    host.model.script(ASK)
    async with client.host_events() as events:
        session = await start(client)
        asked = await wait_for(events, QuestionAsked)
        await client.cancel(session)
        closed = await wait_for(events, InteractionClosed)
        assert (closed.id, closed.session) == (asked.id, session)
        async with client.host_events() as later:
            await client.prompt(session, [TextPart("again")], request=RequestId("r2"))
            assert isinstance(await anext(aiter(later)), RunningChanged)


async def test_a_cancelled_turn_closes_its_approval(host: FakeHarness, client: HarnessClient) -> None:
    host.model.script(TRY)
    async with client.host_events() as events:
        session = await start(client)
        asked = await wait_for(events, ApprovalAsked)
        await client.cancel(session)
        closed = await wait_for(events, InteractionClosed)
        assert (closed.id, closed.session) == (asked.id, session)


async def test_run_states(host: FakeHarness, client: HarnessClient) -> None:
    async with client.host_events() as events:
        session = await start(client)
        assert await wait_for(events, RunningChanged) == RunningChanged(session, running=True)
        assert await wait_for(events, RunningChanged) == RunningChanged(session, running=False)


async def test_the_second_answer_gets_a_receipt_that_says_so_on_legacy(legacy: FakeHarness) -> None:
    legacy.model.script(ASK, "thanks")
    async with connect(legacy) as client, client.host_events() as events:
        await start(client)
        asked = await wait_for(events, QuestionAsked)
        assert await client.answer(asked, RED) is Receipt.ACCEPTED
        closed = await wait_for(events, InteractionClosed)
        assert (closed.id, closed.outcome) == (asked.id, "answered")
        assert await client.answer(asked, RED) is Receipt.NOT_PENDING


async def test_an_answer_the_legacy_host_does_not_take_is_invalid(legacy: FakeHarness) -> None:
    legacy.model.script(TRY)
    async with connect(legacy) as client, client.host_events() as events:
        await start(client)
        asked = await wait_for(events, ApprovalAsked)
        made_up = ApprovalAsked(asked.id, asked.session, asked.tool, asked.call, asked.reason, "another")
        assert await client.decide(made_up, Decision.ALLOW_ONCE) is Receipt.INVALID
        await client.cancel(asked.session)


async def test_a_modern_answer_by_a_client_the_host_forgot_is_refused(modern: FakeHarness) -> None:
    async with connect(modern) as client, client.host_events():
        modern.modern.clients.clear()
        with pytest.raises(Refused, match="gateway/internal"):
            await client.decline(QuestionAsked(InteractionId("x"), SessionId("y"), ()))


# -- frame by frame -------------------------------------------------------------------------------------------------

READY = {"type": "ready", "clientId": "client-1", "host": {"home": "/home/alice"}}


def waterfall(event: str, **request: object) -> dict[str, object]:
    return {"type": "waterfall", "event": event, "eventId": f"id-{event}", "agentId": "session-raw", "request": request}


async def test_what_we_cannot_put_to_a_person_is_passed_on() -> None:
    """Else the turn would wait for ever: nobody else may be listening."""
    results: list[object] = []
    news = [
        waterfall("plan/review"),
        waterfall("user-questions/request", questions="none"),
        waterfall("approval/request"),
    ]
    status = {"type": "emit", "event": "api-session/status", "args": ["session-raw", True]}

    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), READY, *news, {"type": "emit", "event": "other"}, {"type": "x"}, status)
        await wire.closed()

    async with raw_host(talk, results) as address, HarnessClient(address) as client, client.host_events() as events:
        assert await anext(aiter(events)) == RunningChanged(SessionId("session-raw"), running=True)
    assert results == [
        {"clientId": "client-1", "eventId": event["eventId"], "outcome": {"kind": "next"}} for event in news
    ]


@pytest.mark.parametrize("args", [[], ["session-raw"], ["session-raw", "yes"], [5, True]])
async def test_a_status_that_says_nothing_is_malformed(args: list[object]) -> None:
    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), READY, {"type": "emit", "event": "api-session/status", "args": args})
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client, client.host_events() as events:
        with pytest.raises(Malformed):
            await anext(aiter(events))


async def test_a_close_of_something_never_asked_names_no_session() -> None:
    async def talk(wire: Wire) -> None:
        await wire.send(await wire.opened(), READY, {"type": "cancel", "eventId": "unheard"})
        await wire.closed()

    async with raw_host(talk) as address, HarnessClient(address) as client, client.host_events() as events:
        assert await anext(aiter(events)) == InteractionClosed(InteractionId("unheard"), None, None)


async def test_a_broken_legacy_question_does_not_break_the_link(
    legacy: FakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonsense = {"sessionId": "s", "questions": "none"}
    monkeypatch.setattr(
        "tests.fakes.harness.downlink._asked", lambda pending: ("question/requested", nonsense, pending.id)
    )
    legacy.model.script(ASK)
    async with connect(legacy) as client, client.host_events() as events:
        session = await start(client)
        await legacy.until(lambda: bool(legacy.world.pending))
        await client.cancel(session)
        assert [type(await wait_for(events, kind)) for kind in (InteractionClosed, RunningChanged)]


def test_what_a_legacy_link_keeps_is_bounded() -> None:
    kept: dict[int, int] = {}
    for number in range(PENDING_LIMIT + 10):
        _keep(kept, number, number)
    assert len(kept) == PENDING_LIMIT
    assert min(kept) == 10

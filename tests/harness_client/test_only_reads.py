"""A client that only reads cannot be made to do anything else: whatever is called, nothing of it leaves."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from harness_client.client import Address, ApprovalAsked, HarnessClient, QuestionAsked
from harness_client.errors import Forbidden
from harness_client.types import (
    AttachmentId,
    Generation,
    ModelChoice,
    QueueAction,
    QueueItemId,
    RequestId,
    SessionId,
    TextPart,
)
from tests.fakes.harness import FakeHarness

Act = Callable[[HarnessClient, SessionId], Awaitable[object] | AbstractAsyncContextManager[object]]

READS: dict[str, Act] = {
    "health": lambda client, _: client.health(),
    "sessions": lambda client, _: client.sessions(),
    "running": lambda client, session: client.running(session),
    "page": lambda client, session: client.page(session),
    "projections": lambda client, session: client.projections(session),
}
ACTS: dict[str, Act] = {
    "models": lambda client, session: client.models(session),
    "select_model": lambda client, session: client.select_model(session, ModelChoice("p", "m")),
    "presets": lambda client, _: client.presets(),
    "select_preset": lambda client, session: client.select_preset(session, "p"),
    "workspaces": lambda client, _: client.workspaces(),
    "create_workspace": lambda client, _: client.create_workspace("/"),
    "create_session": lambda client, session: client.create_session(session=session, cwd="/"),
    "rename_session": lambda client, session: client.rename_session(session, "t"),
    "fork_session": lambda client, session: client.fork_session(session),
    "attachment": lambda client, session: client.attachment(session, AttachmentId("a")),
    "prompt": lambda client, session: client.prompt(session, [TextPart("x")], request=RequestId("r")),
    "cancel": lambda client, session: client.cancel(session),
    "update_queue": lambda client, session: client.update_queue(session, QueueItemId("q"), QueueAction.REMOVE),
    "commands": lambda client, session: client.commands(session),
    "run_command": lambda client, session: client.run_command(session, "/compact"),
    "follow": lambda client, session: client.follow(session),
    "host_events": lambda client, _: client.host_events(),
}
"""Every method of the client but those below, and what is no call of the host."""

NEEDS_AN_EVENT = {"answer": QuestionAsked, "decline": QuestionAsked, "decide": ApprovalAsked}
"""They take what only :meth:`HarnessClient.host_events` hands out, which is refused."""


def test_every_method_is_tried() -> None:
    methods = {name for name, _ in inspect.getmembers(HarnessClient, inspect.isfunction) if name[0] != "_"}
    assert methods - {"move"} == {*READS, *ACTS, *NEEDS_AN_EVENT}


async def _do(act: Act, client: HarnessClient, session: SessionId) -> None:
    doing = act(client, session)
    if isinstance(doing, AbstractAsyncContextManager):
        async with doing:
            return
    await doing


@pytest.mark.parametrize("generation", Generation)
@pytest.mark.parametrize("name", ACTS)
async def test_what_is_no_read_is_refused_here(name: str, generation: Generation) -> None:
    async with FakeHarness(generation) as host, HarnessClient(Address.parse(host.url), only_reads=True) as client:
        session = SessionId(host.session().id)
        await client.health()
        before = len(host.calls)
        with pytest.raises(Forbidden):
            await _do(ACTS[name], client, session)
        assert host.calls[before:] == []


@pytest.mark.parametrize("generation", Generation)
@pytest.mark.parametrize("name", READS)
async def test_what_is_read_is_read(name: str, generation: Generation) -> None:
    async with FakeHarness(generation) as host, HarnessClient(Address.parse(host.url), only_reads=True) as client:
        await _do(READS[name], client, SessionId(host.session().id))
        assert host.calls
        assert host.writes == []


def test_a_decision_is_made_of_what_the_stream_hands_out() -> None:
    for name, event in NEEDS_AN_EVENT.items():
        first = list(inspect.signature(getattr(HarnessClient, name)).parameters.values())[1]
        assert first.annotation == event.__name__

"""The real host asks a person: questions and approvals, answered, declined, rejected."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bridges.demo_model import Step, Tool
from harness_client.client import ApprovalAsked, FollowItem, HostEvent, QuestionAsked
from harness_client.events import ToolCall, TurnEnd
from harness_client.transcript import Role
from harness_client.types import Answer, Decision, Receipt
from tests.live.talk import BOUND, Talk, answers, reason

pytestmark = pytest.mark.asyncio(loop_scope="session")

COLOURS = {
    "id": "colour",
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}],
}
FREE = {"id": "words", "question": "Any words?"}
ASK = Step(tools=(Tool("ask_user_question", {"questions": [COLOURS, FREE]}),))


async def next_asked(talk: Talk) -> HostEvent:
    """Return the first thing this session asks a person."""
    async with asyncio.timeout(BOUND), talk.client.host_events() as events:
        async for event in events:
            if isinstance(event, QuestionAsked | ApprovalAsked) and event.session == talk.session:
                return event
    raise AssertionError("the stream ended")


async def run(
    talk: Talk, text: str, *steps: Step, then: Callable[[HostEvent], Awaitable[None]]
) -> tuple[list[FollowItem], str]:
    """Run a turn that asks; return its items and the raw log."""
    async with asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(talk.say(text, *steps))
        await then(await next_asked(talk))
    page = await talk.client.page(talk.session)
    return turn.result(), "\n".join(page.sources.values())


async def test_a_question_is_answered(talk: Talk) -> None:
    async def answer(asked: HostEvent) -> None:
        assert isinstance(asked, QuestionAsked)
        first, second = asked.questions
        assert (first.text, first.header, [option.label for option in first.options]) == (
            "Which colour?",
            "Colour",
            ["Red", "Blue"],
        )
        assert (second.text, second.options) == ("Any words?", ())
        # What this host would accept unchecked never reaches it.
        made_up = {"colour": Answer("colour", ("Green",)), "words": Answer("words", custom="x")}
        assert await talk.client.answer(asked, made_up) is Receipt.INVALID
        # While a question waits, reading goes on and the question stays.
        talk.expected.append((Role.USER, "ask me"))
        await talk.check(running=True)
        good = {"colour": Answer("colour", ("Blue",)), "words": Answer("words", custom="just words")}
        await talk.client.answer(asked, good)

    items, log = await run(talk, "ask me", ASK, Step(text="Blue it is."), then=answer)
    assert answers(items)[-1] == "Blue it is."
    assert all(word in log for word in ("Blue", "just words"))
    assert "Green" not in log


async def test_a_question_is_declined_and_the_turn_goes_on(talk: Talk) -> None:
    async def decline(asked: HostEvent) -> None:
        assert isinstance(asked, QuestionAsked)
        await talk.client.decline(asked)

    items, log = await run(talk, "ask me", ASK, Step(text="Then not."), then=decline)
    assert (reason(items), answers(items)[-1]) == ("completed", "Then not.")
    assert "ASK_CANCELLED" in log


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap, the host's sandbox, is not installed")
@pytest.mark.parametrize("decision", Decision)
async def test_an_approval_is_decided(talk: Talk, workspace: Path, decision: Decision) -> None:
    await talk.client.run_command(talk.session, "/permission read-only")
    target = workspace / f"written-{decision}"
    write: dict[str, object] = {"description": "write a file", "command": f"echo x > {target}"}
    wider: dict[str, object] = {"sandbox_permissions": "workspace-write", "justification": "It must be written."}

    async def decide(asked: HostEvent) -> None:
        assert isinstance(asked, ApprovalAsked)
        assert asked.tool == "bash"
        assert "It must be written." in asked.reason
        assert not target.exists()
        await talk.client.decide(asked, decision)

    denied, again = Step(tools=(Tool("bash", write),)), Step(tools=(Tool("bash", {**write, **wider}),))
    items, _ = await run(talk, "write", denied, again, Step(text="Tried."), then=decide)
    assert reason(items) == "completed"
    assert target.exists() is (decision is Decision.ALLOW_ONCE)
    assert [item.name for item in items if isinstance(item, ToolCall)] == ["bash", "bash"]


async def test_a_finished_job_opens_a_turn_of_its_own(talk: Talk) -> None:
    await talk.client.run_command(talk.session, "/permission danger-full-access")
    job: dict[str, object] = {"description": "a job", "command": "sleep 0.3", "run_in_background": True}
    async with asyncio.timeout(BOUND), talk.client.follow(talk.session) as followed:
        await anext(followed)
        await talk.say("start", Step(tools=(Tool("bash", job),)), Step(text="Started."), Step(text="It is over."))
        ended = 0
        async for item in followed:
            ended += isinstance(item, TurnEnd)
            if ended == 2:
                break
    talk.expected += [(Role.USER, "start"), (Role.ASSISTANT, "Started."), (Role.ASSISTANT, "It is over.")]
    await talk.check()

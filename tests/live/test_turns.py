"""Turns of every kind on the real host, and what a person sees of them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from bridges.demo_model import DemoModel, Step, Tool
from bridges.demo_model.request import Purpose
from harness_client.client import FollowItem, HarnessClient
from harness_client.events import StreamReset, TextDelta, ToolCall, TurnStart, UserMessage
from harness_client.transcript import Role
from harness_client.types import AttachmentId, ImagePart, QueueAction, QueuedPrompt, RequestId, TextPart
from tests.live.talk import Talk, answers, reason, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def bash(command: str) -> Tool:
    return Tool("bash", {"command": command, "description": "a test"})


async def test_a_simple_turn(talk: Talk) -> None:
    assert await talk.ask("say hi") == "This is a demo, not a model: it can only repeat. You said: say hi"
    await talk.check()


async def test_a_history_command_that_became_a_prompt_is_not_shown(talk: Talk) -> None:
    await talk.ask("before")
    await talk.say("/history 4", Step(text="I am a model and know no commands."))
    talk.expected.append((Role.ASSISTANT, "I am a model and know no commands."))
    await talk.check()


async def test_the_answer_streams_in_pieces(talk: Talk) -> None:
    items = await talk.say("stream", Step(text="one two three four five six", piece=4))
    pieces = [item.text for item in items if isinstance(item, TextDelta)]
    assert len(pieces) > 1
    assert "".join(pieces) == "one two three four five six" == answers(items)[-1]


async def test_tools_run_and_only_the_last_text_is_the_answer(talk: Talk, workspace: Path) -> None:
    await talk.client.run_command(talk.session, "/permission danger-full-access")
    items = await talk.say(
        "look around",
        Step(text="I look.", tools=(bash("echo ran > made-by-a-tool"), bash("exit 3"))),
        Step(text="And again.", tools=(bash("true"),)),
        Step(text="All done."),
    )
    assert [item.name for item in items if isinstance(item, ToolCall)] == ["bash"] * 3
    assert (workspace / "made-by-a-tool").read_text() == "ran\n"
    talk.expected += [(Role.USER, "look around"), (Role.ASSISTANT, "All done.")]
    await talk.check()


async def test_reasoning_is_never_seen(talk: Talk) -> None:
    assert await talk.ask("think", Step(reasoning="my secret thoughts", text="42")) == "42"
    await talk.check()


async def test_a_turn_cancelled_midway_leaves_the_question_alone(talk: Talk) -> None:
    cancelled = False

    async def cancel(item: FollowItem) -> None:
        nonlocal cancelled
        if isinstance(item, TextDelta) and not cancelled:
            cancelled = True
            await talk.client.cancel(talk.session)

    items = await talk.say("long", Step(text="half an answer " * 20, delay=0.02), on=cancel)
    assert reason(items) == "aborted"
    talk.expected.append((Role.USER, "long"))
    await talk.check()
    await talk.ask("short")
    await talk.check()


async def test_a_failed_turn_leaves_the_question_alone(talk: Talk) -> None:
    items = await talk.say("fail", Step(status=400))
    assert reason(items) == "error"
    talk.expected.append((Role.USER, "fail"))
    await talk.check()
    await talk.ask("again")
    await talk.check()


async def test_an_answer_at_its_length_limit_is_none(talk: Talk) -> None:
    items = await talk.say("write a book", Step(text="Chapter one", finish="length"))
    assert reason(items) == "max-tokens"
    talk.expected.append((Role.USER, "write a book"))
    await talk.check()


async def test_a_dropped_line_is_tried_again_and_its_text_is_void(talk: Talk) -> None:
    items = await talk.say("drop", Step(text="void " * 10, end="drop"), Step(text="second attempt"))
    assert reason(items) == "completed"
    reset = next(at for at, item in enumerate(items) if isinstance(item, StreamReset))
    assert "".join(item.text for item in items[reset:] if isinstance(item, TextDelta)) == "second attempt"
    talk.expected += [(Role.USER, "drop"), (Role.ASSISTANT, "second attempt")]
    await talk.check()


async def test_a_running_turn_shows_its_question_only(talk: Talk) -> None:
    await talk.ask("first")

    async def look(item: FollowItem) -> None:
        if isinstance(item, TextDelta) and item.text:
            talk.expected.append((Role.USER, "second"))
            await talk.check(running=True)
            assert await talk.client.running(talk.session)
            await talk.client.cancel(talk.session)

    items = await talk.say("second", Step(text="begun", piece=100, end="hang"), on=look)
    assert reason(items) == "aborted"
    await talk.check()


async def test_steering_joins_the_running_turn(talk: Talk, workspace: Path) -> None:
    await talk.client.run_command(talk.session, "/permission danger-full-access")
    gate = workspace / "go-on"

    async def steer(item: FollowItem) -> None:
        if isinstance(item, ToolCall):
            await talk.steer("and in blue")
            gate.touch()

    items = await talk.say(
        "paint",
        Step(tools=(bash(f"while ! [ -e {gate} ]; do sleep 0.05; done"),)),
        Step(text="Painted in blue."),
        on=steer,
    )
    assert len([item for item in items if isinstance(item, TurnStart)]) == 1
    talk.expected += [(Role.USER, "paint"), (Role.USER, "and in blue"), (Role.ASSISTANT, "Painted in blue.")]
    await talk.check()


async def test_a_queued_prompt_is_removed_and_another_parked_until_the_next_one(talk: Talk) -> None:
    client, session = talk.client, talk.session
    started = False

    async def queued(count: int) -> tuple[QueuedPrompt, ...]:
        async def so_many() -> bool:
            return len((await client.projections(session)).queue or ()) == count

        await until(so_many)
        return (await client.projections(session)).queue or ()

    async def queue_and_cancel(item: FollowItem) -> None:
        nonlocal started
        if isinstance(item, TextDelta) and item.text and not started:
            started = True
            for words in ("removed", "parked"):
                await client.prompt(session, [TextPart(words)], request=RequestId(f"{session}-{words}"))
            removed, parked = await queued(2)
            assert [removed.request, parked.request] == [f"{session}-removed", f"{session}-parked"]
            await client.update_queue(session, removed.id, QueueAction.REMOVE)
            assert await queued(1) == (parked,)
            await client.cancel(session)

    items = await talk.say("first", Step(text="begun", piece=100, end="hang"), on=queue_and_cancel)
    assert reason(items) == "aborted"
    talk.expected.append((Role.USER, "first"))
    await talk.check()
    await talk.say("last", Step(text="to the parked one"), Step(text="to the last one"))
    talk.expected += [(Role.USER, "parked"), (Role.ASSISTANT, "to the parked one")]
    talk.expected += [(Role.USER, "last"), (Role.ASSISTANT, "to the last one")]
    await talk.check()


async def test_compaction_changes_nothing_a_person_sees(talk: Talk, model: DemoModel) -> None:
    for question in ("one", "two", "three"):
        await talk.ask(question)
    before = model.asked[Purpose.COMPACTION]
    outcome = await talk.client.run_command(talk.session, "/compact")
    assert (outcome.known, outcome.ok) == (True, True)
    assert model.asked[Purpose.COMPACTION] == before + 1
    await talk.check()
    await talk.ask("four")
    await talk.check()


async def test_what_the_host_injects_is_not_seen(talk: Talk, client: HarnessClient, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("INJECTED: always be brief.")
    other = Talk(client, talk.model, await client.create_session(cwd=str(tmp_path)))
    items = await other.say("hello", Step(text="hi"))
    injected = [item for item in items if isinstance(item, UserMessage) and item.source and item.source.kind != "user"]
    assert injected, "a real host injects context"
    assert "INJECTED" in str(injected)
    other.expected += [(Role.USER, "hello"), (Role.ASSISTANT, "hi")]
    await other.check()


async def test_images_go_in_and_can_be_fetched_but_are_not_shown(talk: Talk) -> None:
    image = ImagePart("image/png", PIXEL, "pixel.png")
    items = await talk.say([TextPart("what is this?"), image], Step(text="A pixel."))
    assert reason(items) == "completed"
    talk.expected += [(Role.USER, "what is this?\n[image]"), (Role.ASSISTANT, "A pixel.")]
    await talk.check()
    page = await talk.client.page(talk.session)
    names = {part.split('"')[0] for raw in page.sources.values() for part in raw.split('"attachmentId":"')[1:]}
    fetched = await talk.client.attachment(talk.session, AttachmentId(names.pop()))
    assert fetched.media_type == "image/png"
    assert fetched.data.startswith(b"\x89PNG")


async def test_a_title_comes_and_can_be_changed(talk: Talk) -> None:
    await talk.ask("hello")

    async def titled() -> bool:
        return (await talk.client.projections(talk.session)).title == "Demo chat"

    await until(titled)
    assert await talk.client.rename_session(talk.session, "  My   talk ") == "My talk"
    listed = next(row for row in await talk.client.sessions() if row.id == talk.session)
    assert listed.title == "My talk"


async def test_a_fork_has_the_same_past_and_its_own_future(talk: Talk) -> None:
    await talk.ask("shared")
    child = Talk(talk.client, talk.model, await talk.client.fork_session(talk.session))
    child.expected = list(talk.expected)
    await child.check()
    await child.ask("mine")
    await child.check()
    await talk.check()

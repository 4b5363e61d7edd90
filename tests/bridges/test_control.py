"""What a person does to a task that runs: status, stop, steer, and what ordinary text does meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bridges import turn as turn_module
from bridges.config import Busy
from commands.model import ChatKey, Outcome
from harness_client.types import RequestId, SessionId, TextPart
from i18n import Key, Language, Words
from tests.bridges.bench import BOT, CHAT, Bench, Setup, bench, eventually
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, Session, Tool, say

WORDS = Words(Language.EN)
OTHER = ChatKey("test", "bot", "2")


def only_session(desk: Bench) -> Session:
    (session,) = desk.host.world.sessions.values()
    return session


def in_a_tool(desk: Bench) -> bool:
    return any(event["type"] == "tool/call" for session in desk.host.world.sessions.values() for event in session.log)


def told(desk: Bench) -> list[str]:
    """Return what people told the only session, in its order."""
    data = [event["data"] for event in only_session(desk).log if event["type"] == "user/message"]
    human = [each for each in data if isinstance(each, dict) and each["source"]["kind"] == "user"]
    return [str(part["text"]) for each in human for part in each["content"]]


async def working(desk: Bench, text: str = "hello") -> asyncio.Event:
    """Start a turn that is inside a tool until the event."""
    hold = asyncio.Event()
    desk.host.model.script(say("One.", tools=[Tool("bash", until=hold)]), say("Two."))
    await desk.say(text)
    await desk.host.until(lambda: in_a_tool(desk))
    await eventually(lambda: bool(begun(desk)))
    return hold


def begun(desk: Bench) -> bool:
    run = desk.intake.conversations._chats[CHAT].running
    return run is not None and run.host_turn is not None and run.host_turn.reader.begun


async def test_status_says_host_session_task_and_age(host: FakeHarness, tmp_path: Path) -> None:
    clock = FakeClock()
    async with bench(host, tmp_path, setup=Setup(clock=clock)) as desk:
        lines = (await desk.ask("/status")).splitlines()
        assert lines[0].startswith("Harness")
        assert lines[1:] == [WORDS(Key.STATUS_UNBOUND), WORDS(Key.STATUS_IDLE)]
        hold = await working(desk)
        await desk.say("next")
        await clock.advance(75)
        lines = (await desk.ask("/status")).splitlines()
        session = (await desk.state.chats.get(CHAT)).session
        assert lines[1:] == [
            WORDS(Key.STATUS_SESSION, session=session),
            WORDS(Key.STATUS_RUNNING, seconds=75, queued=1),
        ]
        hold.set()


async def test_status_of_a_host_that_is_away_still_says_the_rest(desk: Bench) -> None:
    hold = await working(desk)
    for name in ("host.describe", "*"):
        desk.host.fail(name, drop="before")
    reply = await desk.ask("/status")
    assert "Reference H-" in reply
    assert only_session(desk).id in reply
    assert "running" in reply
    desk.host.heal()
    hold.set()


@pytest.mark.parametrize("text", ["/status", "/help", "/version", "/history", "/sessions", "/models", "/steer more"])
async def test_no_command_waits_for_a_task(desk: Bench, text: str) -> None:
    hold = await working(desk)
    await asyncio.wait_for(desk.ask(text), 5)
    assert only_session(desk).running
    hold.set()
    await desk.channel.until(lambda: len(desk.outcomes) == 2)


async def test_stop_in_a_tool(desk: Bench) -> None:
    await working(desk)
    await desk.say("/stop")
    texts = await desk.channel.until_sent(2)
    assert set(texts) == {WORDS(Key.STOP_DONE), f"One.\n\n{WORDS(Key.CHAT_ABORTED)}"}
    assert await desk.ask("again") == "You said: again"


async def test_stop_takes_back_what_was_steered_and_not_read_yet(desk: Bench) -> None:
    await working(desk)
    assert await desk.ask("/steer never mind") == WORDS(Key.STEER_DONE)
    await desk.say("/stop")
    await desk.channel.until(lambda: len(desk.outcomes) == 3)
    assert await desk.ask("next") == "You said: next"
    assert told(desk) == ["hello", "next"], "a stop parks what is queued; the next prompt would have run it"


async def test_a_steer_that_came_too_late_is_answered_too(desk: Bench) -> None:
    hold = await working(desk)
    desk.host.model.script("Late answer.", prompt="more")
    run = desk.intake.conversations._chats[CHAT].running
    assert run is not None
    steered = asyncio.Event()
    desk.fail("prompt", delay=steered, times=1)
    await desk.say("/steer more")
    await eventually(lambda: len(desk.prompts) == 2)
    hold.set()
    await desk.host.until(lambda: not only_session(desk).running)
    steered.set()
    await desk.channel.until(lambda: "One.\n\nTwo.\n\nLate answer." in desk.channel.texts)
    assert told(desk) == ["hello", "more"]
    await desk.channel.until(lambda: len(desk.outcomes) == 2)


async def test_another_chats_stop_does_not_park_this_chats_message(desk: Bench) -> None:
    """Two chats of one session: the second's prompt waits on the host when the first is stopped."""
    hold = await working(desk)
    session = only_session(desk)
    await desk.state.chats.bind(OTHER, SessionId(session.id), expected=await desk.state.chats.get(OTHER))
    await desk.say("second", chat=OTHER)
    await eventually(lambda: len(desk.prompts) == 2)
    await desk.say("/stop")
    await desk.channel.until(lambda: "You said: second" in desk.channel.texts, 20)
    assert told(desk) == ["hello", "second"]
    hold.set()


async def test_stop_and_steer_reach_a_turn_that_outlived_its_wait(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_module, "ANSWER_SECONDS", 0.3)
    desk.host.model.script(say("One.", tools=[Tool("bash", until=(hold := asyncio.Event()))]), say("Two."))
    await desk.say("hello")
    await desk.channel.until_sent(1)
    assert WORDS(Key.CHAT_STILL_RUNNING) in desk.channel.texts[0]
    assert "running" in await desk.ask("/status")
    assert await desk.ask("/steer faster") == WORDS(Key.STEER_DONE)
    hold.set()
    await desk.channel.until(lambda: WORDS(Key.CHAT_LATE, text="One.\n\nTwo.") in desk.channel.texts)
    assert told(desk) == ["hello", "faster"]
    desk.host.model.script(say("part", asyncio.Event()))
    await desk.say("again")
    await desk.channel.until(lambda: WORDS(Key.CHAT_STILL_RUNNING) in desk.channel.texts[-1])
    assert await desk.ask("/stop") == WORDS(Key.STOP_DONE)
    await desk.channel.until(lambda: desk.channel.texts[-1].endswith(WORDS(Key.CHAT_ABORTED)))
    await eventually(desk.nothing_outstanding)


# -- busy = "steer" ----------------------------------------------------------------------------------------------------


async def test_text_joins_the_running_task_where_the_bot_steers(host: FakeHarness, tmp_path: Path) -> None:
    async with bench(host, tmp_path, setup=Setup(busy=Busy.STEER)) as desk:
        assert await desk.ask("first") == "You said: first"
        await desk.channel.until(lambda: len(desk.outcomes) == 1)
        hold = await working(desk)
        for text in ("and this", "and that"):
            assert await desk.ask(text) == WORDS(Key.STEER_DONE)
        hold.set()
        await desk.channel.until(lambda: desk.channel.texts[-1] == "One.\n\nTwo.")
        assert told(desk) == ["first", "hello", "and this", "and that"]
        await desk.channel.until(lambda: list(desk.outcomes.values()) == [Outcome.OK] * 4)
        assert await desk.state.turns.outstanding(BOT) == ()


async def test_text_that_cannot_join_waits_its_turn(host: FakeHarness, tmp_path: Path) -> None:
    async with bench(host, tmp_path, setup=Setup(busy=Busy.STEER)) as desk:
        made = asyncio.Event()
        desk.fail("create", delay=made, times=1)
        await desk.say("first")
        await eventually(desk.created)
        await desk.say("second")
        made.set()
        assert await desk.channel.until_sent(2) == ["You said: first", "You said: second"]
        await desk.channel.until(lambda: len(desk.outcomes) == 2)


async def test_a_join_that_fails_is_told_and_not_repeated(host: FakeHarness, tmp_path: Path) -> None:
    async with bench(host, tmp_path, setup=Setup(busy=Busy.STEER)) as desk:
        hold = await working(desk)
        desk.fail("prompt", status=500, times=1)
        assert (await desk.ask("and this")).startswith(WORDS(Key.STEER_FAILED, reference="")[:20])
        hold.set()
        await desk.channel.until(lambda: len(desk.outcomes) == 2)
        assert len(desk.prompts) == 2
        assert await desk.state.turns.outstanding(BOT) == ()


async def test_a_stop_does_not_touch_the_web(desk: Bench) -> None:
    session = desk.host.session()
    theirs = asyncio.Event()
    desk.host.model.script(say("theirs", theirs))
    await desk.harness.prompt(SessionId(session.id), [TextPart("theirs")], request=RequestId("web"))
    await desk.ask(f"/session {session.id}")
    assert await desk.ask("/stop") == WORDS(Key.STOP_IDLE)
    assert session.running
    theirs.set()

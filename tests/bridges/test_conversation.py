"""Prompts and answers, on both host generations over real sockets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bridges.conversation import CHAT_LIMIT
from bridges.message import NotSent
from bridges.state import Phase, StateError, Trouble, Turn
from bridges.state.turns import SqliteTurns
from commands.marks import wrap
from commands.model import ChatKey, Outcome
from harness_client.types import RequestId, SessionId, TextPart
from i18n import Key, Language, Words
from tests.bridges.bench import BOT, CHAT, Bench, EditingChannel, StreamingChannel, bench, eventually
from tests.fakes.harness import Failure, FakeHarness, Obj, Step, Tool, say

WORDS = Words(Language.EN)


def log_of(desk: Bench) -> list[Obj]:
    """Return the events of the only session."""
    return [event for session in desk.host.world.sessions.values() for event in session.log]


async def test_the_first_message_makes_a_session_in_the_bots_folder_and_binds_it(desk: Bench) -> None:
    assert await desk.ask("hello") == "You said: hello"
    (session,) = desk.host.world.sessions.values()
    assert session.cwd == desk.host.world.cwd
    assert (await desk.state.chats.get(CHAT)).session == session.id
    assert await desk.ask("again") == "You said: again"
    assert desk.creates == 1
    assert len(desk.prompts) == 2
    await desk.channel.until(lambda: len(desk.outcomes) == 2)
    assert await desk.state.turns.outstanding(BOT) == ()


async def test_two_messages_at_once_on_a_fresh_chat_make_one_session(desk: Bench) -> None:
    await asyncio.gather(*(desk.say(f"m{n}") for n in range(5)))
    assert await desk.channel.until_sent(5) == [f"You said: m{n}" for n in range(5)]
    assert desk.creates == 1
    assert len(desk.host.world.sessions) == 1


async def test_history_says_that_the_session_is_just_being_made(desk: Bench) -> None:
    go = asyncio.Event()
    desk.fail("create", delay=go, times=1)
    await desk.say("hello")
    assert await desk.ask("/history") == WORDS(Key.HISTORY_STARTING)
    go.set()
    assert (await desk.channel.until_sent(2))[1] == "You said: hello"
    assert "1. User\nhello" in await desk.ask("/history")
    await desk.ask("/new")
    assert await desk.ask("/history") == WORDS(Key.HISTORY_UNBOUND)
    assert desk.creates == 1


async def test_a_lost_answer_to_the_create_makes_no_second_session(desk: Bench) -> None:
    desk.fail("create", drop="before", effect=True, times=1)
    assert await desk.ask("hello") == "You said: hello"
    assert len(desk.host.world.sessions) == 1


async def test_a_lost_answer_to_the_prompt_sends_no_second_prompt(desk: Bench) -> None:
    desk.fail("prompt", drop="before", effect=True, times=1)
    assert await desk.ask("hello") == "You said: hello"
    assert len(desk.prompts) == 1


async def test_a_switch_while_the_session_is_made_is_followed(desk: Bench) -> None:
    other = desk.host.session()
    made = asyncio.Event()
    desk.fail("create", delay=made, times=1)
    await desk.say("hello")
    await eventually(desk.created)
    await desk.state.chats.bind(CHAT, SessionId(other.id), expected=await desk.state.chats.get(CHAT))
    made.set()
    assert await desk.channel.until_sent(1) == ["You said: hello"]
    assert (await desk.state.chats.get(CHAT)).session == other.id
    assert len(desk.prompts) == 1


async def test_a_session_that_is_gone_is_told_and_not_made_anew(desk: Bench) -> None:
    await desk.state.chats.bind(CHAT, SessionId("session-gone"), expected=await desk.state.chats.get(CHAT))
    assert await desk.ask("hello") == WORDS(Key.CHAT_SESSION_GONE)
    assert desk.creates == 0
    assert desk.prompts == []
    await desk.channel.until(lambda: bool(desk.outcomes))
    assert list(desk.outcomes.values()) == [Outcome.REFUSED]


@pytest.mark.parametrize(
    ("step", "reply"),
    [
        (say(), Key.CHAT_DONE),
        (Step(failure=Failure()), Key.CHAT_TURN_FAILED),
        (Step(["cut "], finish="max-tokens"), Key.CHAT_MAX_TOKENS),
    ],
)
async def test_how_a_turn_ended_is_said(desk: Bench, step: Step, reply: Key) -> None:
    desk.host.model.script(step)
    assert (await desk.ask("hello")).endswith(WORDS(reply))


async def test_reasoning_and_tool_output_stay_out_of_the_answer(desk: Bench) -> None:
    tool = Tool("bash", {"command": "SECRET"}, result="SECRET")
    desk.host.model.script(say("One.", reasoning=["SECRET"], tools=[tool]), say("Two."))
    assert await desk.ask("hello") == "One.\n\nTwo."


async def test_stop_ends_the_turn_and_the_next_message_runs(desk: Bench) -> None:
    desk.host.model.script(say("part", asyncio.Event()))
    await desk.say("hello")
    await desk.say("next")
    await desk.host.until(lambda: any(session.partial for session in desk.host.world.sessions.values()))
    await desk.say("/stop")
    texts = await desk.channel.until_sent(3)
    assert WORDS(Key.STOP_DONE) in texts
    assert any(text.endswith(WORDS(Key.CHAT_ABORTED)) for text in texts)
    assert texts[-1] == "You said: next"
    assert await desk.ask("/stop") == WORDS(Key.STOP_IDLE)


async def test_stop_before_the_prompt_is_out_takes_the_message_back(desk: Bench) -> None:
    made = asyncio.Event()
    desk.fail("create", delay=made, times=1)
    await desk.say("hello")
    await eventually(desk.created)
    assert await desk.ask("/stop") == WORDS(Key.STOP_WITHDRAWN)
    made.set()
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.CHAT_WITHDRAWN)
    assert desk.prompts == []


async def test_stop_leaves_a_turn_alone_that_this_chat_did_not_start(desk: Bench) -> None:
    theirs = asyncio.Event()
    session = desk.host.session()
    desk.host.model.script(say("theirs", theirs))
    await desk.harness.prompt(SessionId(session.id), [TextPart("theirs")], request=RequestId("web"))
    await desk.ask(f"/session {session.id}")
    await desk.say("ours")
    await eventually(lambda: len(desk.prompts) == 2)
    assert await desk.ask("/stop") in (WORDS(Key.STOP_WITHDRAWN), WORDS(Key.STOP_NOT_BEGUN))
    assert session.running
    theirs.set()
    await desk.host.settle()
    assert "theirs" in json.dumps(list(session.log))


async def test_words_that_look_like_our_own_marks_reach_the_log_as_they_were(desk: Bench) -> None:
    text = wrap(["one", "two"])
    await desk.ask(text)
    history = await desk.ask("/history 5")
    assert "[message 1 of 2]" in history


async def test_a_full_disk_before_the_prompt_sends_nothing(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object) -> None:
        raise StateError(Trouble.FULL, Path("state.db"))

    monkeypatch.setattr(type(desk.state.turns), "save", full)
    assert "cannot save its state" in await desk.ask("hello")
    assert desk.prompts == []


async def test_a_full_disk_after_the_prompt_does_not_stop_the_answer(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(desk.state.turns).save

    async def full(turns: SqliteTurns, turn: Turn) -> None:
        if turn.phase >= Phase.RUNNING:
            raise StateError(Trouble.FULL, Path("state.db"))
        await real(turns, turn)

    monkeypatch.setattr(SqliteTurns, "save", full)
    assert await desk.ask("hello") == "You said: hello"


async def test_steer_joins_the_running_turn(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say("One.", tools=[Tool("bash", until=hold)]), say("Two."))
    assert await desk.ask("/steer faster") == WORDS(Key.STEER_IDLE)
    await desk.say("hello")
    await desk.host.until(lambda: any(event["type"] == "tool/call" for event in log_of(desk)))
    assert await desk.ask("/steer faster") == WORDS(Key.STEER_DONE)
    hold.set()
    assert (await desk.channel.until_sent(3))[2] == "One.\n\nTwo."


async def test_a_full_queue_refuses_and_forgets(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(hold, "first"))
    for number in range(CHAT_LIMIT + 2):
        await desk.say(f"m{number}")
    assert (await desk.channel.until_sent(1))[0] == WORDS(Key.CHAT_FULL)
    hold.set()
    await desk.channel.until(lambda: len(desk.outcomes) == CHAT_LIMIT + 2)
    assert await desk.state.turns.outstanding(BOT) == ()


async def test_a_host_that_is_away_is_told_and_nothing_is_queued_for_it(desk: Bench) -> None:
    await desk.host.stop()
    reply = await desk.ask("hello")
    assert reply.startswith("The Harness cannot be reached")
    await desk.channel.until(lambda: bool(desk.outcomes))
    assert list(desk.outcomes.values()) == [Outcome.FAILED]
    assert await desk.state.turns.outstanding(BOT) == ()


async def test_a_host_killed_in_the_middle_of_a_turn_is_told(desk: Bench) -> None:
    desk.host.model.script(say("part", asyncio.Event()))
    await desk.say("hello")
    await desk.host.until(lambda: any(session.partial for session in desk.host.world.sessions.values()))
    await desk.host.restart()
    assert (await desk.channel.until_sent(1))[0].endswith(WORDS(Key.CHAT_INTERRUPTED))
    assert len(desk.prompts) == 1
    assert await desk.ask("again") == "You said: again"


async def test_an_undelivered_answer_points_to_history(desk: Bench) -> None:
    desk.channel.outcomes = [NotSent.REJECTED]
    assert await desk.ask("hello") == WORDS(Key.CHAT_UNDELIVERED)
    assert "/history" in desk.channel.texts[0]


async def test_an_answer_grows_in_one_message_and_is_complete_at_the_end(host: FakeHarness, tmp_path: Path) -> None:
    channel = EditingChannel()
    hold = asyncio.Event()
    host.model.script(say("Hello", hold, " there"))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: channel.texts == ["Hello"])
        (turn,) = await desk.state.turns.outstanding(BOT)
        assert turn.carrier == "0"
        hold.set()
        await channel.until(lambda: channel.texts == ["Hello there"])
        await channel.until(lambda: bool(desk.outcomes))
        assert channel.typed >= 1
        assert await desk.state.turns.outstanding(BOT) == ()


async def test_an_answer_longer_than_a_message_goes_on_in_the_next(host: FakeHarness, tmp_path: Path) -> None:
    channel = EditingChannel()
    text = "".join(f"line {number}\n" for number in range(1_000))
    host.model.script(say(text))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: bool(desk.outcomes))
        assert "".join(channel.texts) == text
        assert all(len(sent) <= channel.limits.text for sent in channel.texts)


async def test_a_refused_last_edit_sends_the_answer_anew(host: FakeHarness, tmp_path: Path) -> None:
    channel = EditingChannel()
    channel.edit_outcomes = [NotSent.REJECTED] * 9
    hold = asyncio.Event()
    host.model.script(say("Hello", hold, " there"))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: channel.texts == ["Hello"])
        hold.set()
        await channel.until(lambda: bool(desk.outcomes))
        assert channel.texts == ["Hello", "Hello there"]


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_live_carrier_ends_once_on_every_path(host: FakeHarness, tmp_path: Path, *, refuses: bool) -> None:
    channel = StreamingChannel()
    hold = asyncio.Event()
    host.model.script(say("Hello", hold, " there"))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: bool(channel.streams) and channel.streams[0].shown == ["Hello"])
        channel.streams[0].refuses = refuses
        hold.set()
        await channel.until(lambda: bool(desk.outcomes))
        assert channel.streams[0].final == "Hello there"
        assert channel.texts == (["Hello there"] if refuses else [])


async def test_many_chats_leave_nothing_behind(desk: Bench) -> None:
    chats = [ChatKey("test", "bot", str(number)) for number in range(50)]
    await asyncio.gather(*(desk.say("hello", chat=chat) for chat in chats))
    await desk.channel.until(lambda: len(desk.outcomes) == len(chats), 30)
    assert desk.channel.texts == ["You said: hello"] * len(chats)
    assert desk.intake.conversations._chats == {}
    assert desk.intake._rebinding == {}


async def test_the_end_of_the_program_ends_a_live_carrier_too(host: FakeHarness, tmp_path: Path) -> None:
    channel = StreamingChannel()
    host.model.script(say("part", asyncio.Event()))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: bool(channel.streams) and channel.streams[0].shown == ["part"])
    assert channel.streams[0].final == "part"


async def test_a_channel_that_fails_to_stream_still_gets_the_answer(
    host: FakeHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(StreamingChannel, "begin", broken)
    channel = StreamingChannel()
    async with bench(host, tmp_path, channel) as desk:
        assert await desk.ask("hi") == "You said: hi"

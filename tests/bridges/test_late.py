"""Answers that outlive their wait, or the process that asked for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bridges import late as late_module
from bridges import turn as turn_module
from bridges.conversation import LATE_LIMIT
from bridges.message import EventId, NotSent, ReplyTarget, SendOutcome, SentId
from bridges.state import Phase, Turn
from harness_client.types import RequestId, SessionId, TextPart
from i18n import Key, Language, Words
from tests.bridges.bench import ALICE, BOT, CHAT, Bench, EditingChannel, bench, eventually
from tests.fakes.harness import FakeHarness, say

WORDS = Words(Language.EN)


async def test_an_answer_past_the_wait_limit_follows_by_itself(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_module, "ANSWER_SECONDS", 0.2)
    hold = asyncio.Event()
    desk.host.model.script(say("slow", hold, " answer"))
    assert WORDS(Key.CHAT_STILL_RUNNING) in await desk.ask("hello")
    hold.set()
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.CHAT_LATE, text="slow answer")


def left_behind(phase: Phase, **values: object) -> Turn:
    return Turn(EventId("old"), ReplyTarget(CHAT, "route"), ALICE, 0.0, phase, **values)  # type: ignore[arg-type]  # a table of keywords


async def restarted(desk: Bench, turn: Turn) -> None:
    await desk.state.claims.claim(BOT, turn.event, turn=turn)
    await desk.intake.inherit()
    desk.intake.connected()


async def test_a_message_that_was_not_run_is_to_be_sent_again(desk: Bench) -> None:
    await restarted(desk, left_behind(Phase.CLAIMED))
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_SEND_AGAIN)]
    assert desk.prompts == []


async def test_a_session_that_was_being_made_is_used(desk: Bench) -> None:
    turn = left_behind(Phase.CREATING, session=SessionId("session-half"), cwd=desk.host.world.cwd)
    await restarted(desk, turn)
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_SEND_AGAIN)]
    assert await desk.ask("again") == "You said: again"
    assert list(desk.host.world.sessions) == ["session-half"]


async def test_a_message_sent_while_that_session_is_made_goes_there_too(desk: Bench) -> None:
    made = asyncio.Event()
    desk.fail("create", delay=made, times=1)
    await restarted(desk, left_behind(Phase.CREATING, session=SessionId("session-half"), cwd=desk.host.world.cwd))
    await eventually(desk.created)
    await desk.say("at once")
    made.set()
    assert (await desk.channel.until_sent(2))[1] == "You said: at once"
    assert list(desk.host.world.sessions) == ["session-half"]


async def test_a_prompt_that_arrived_is_answered_late_and_not_sent_again(desk: Bench) -> None:
    session = desk.host.session()
    binding = await desk.state.chats.bind(CHAT, SessionId(session.id), expected=await desk.state.chats.get(CHAT))
    await desk.harness.prompt(SessionId(session.id), [TextPart("hello")], request=RequestId("r"))
    await desk.host.settle()
    turn = left_behind(Phase.PROMPTING, session=SessionId(session.id), request=RequestId("r"), binding=binding)
    await restarted(desk, turn)
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_LATE, text="You said: hello")]
    assert len(desk.prompts) == 1


async def test_a_late_answer_is_dropped_when_the_chat_has_moved_on(desk: Bench) -> None:
    session = desk.host.session()
    binding = await desk.state.chats.bind(CHAT, SessionId(session.id), expected=await desk.state.chats.get(CHAT))
    await desk.harness.prompt(SessionId(session.id), [TextPart("hello")], request=RequestId("r"))
    await desk.host.settle()
    await desk.state.chats.unbind(CHAT)
    turn = left_behind(Phase.RUNNING, session=SessionId(session.id), request=RequestId("r"), binding=binding)
    await restarted(desk, turn)
    await eventually(desk.nothing_outstanding)
    assert desk.channel.sent == []


async def test_an_answer_that_was_on_its_way_is_not_sent_twice(desk: Bench) -> None:
    await restarted(desk, left_behind(Phase.DELIVERING))
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_CUT_OFF)]
    await eventually(desk.nothing_outstanding)


@pytest.mark.parametrize("phase", [Phase.CLAIMED, Phase.DELIVERING])
async def test_a_turn_is_owed_a_word_until_the_word_is_out(
    desk: Bench, monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    owed: list[Turn] = []
    send = desk.channel.send

    async def sending(target: ReplyTarget, text: str) -> SendOutcome:
        owed.extend(await desk.state.turns.outstanding(BOT))
        return await send(target, text)

    monkeypatch.setattr(desk.channel, "send", sending)
    await restarted(desk, left_behind(phase))
    await eventually(desk.nothing_outstanding)
    assert [turn.event for turn in owed] == [EventId("old")]


async def answered(desk: Bench, text: str = "hello", **values: object) -> Turn:
    """Let an earlier process have asked ``text`` in a session of its own; return what it left behind."""
    session = SessionId(desk.host.session().id)
    binding = await desk.state.chats.bind(CHAT, session, expected=await desk.state.chats.get(CHAT))
    await desk.harness.prompt(session, [TextPart(text)], request=RequestId("r"))
    await desk.host.settle()
    return left_behind(Phase.RUNNING, session=session, request=RequestId("r"), binding=binding, **values)


async def test_a_message_that_was_growing_takes_the_late_answer(host: FakeHarness, tmp_path: Path) -> None:
    channel = EditingChannel()
    async with bench(host, tmp_path, channel) as desk:
        await channel.send(ReplyTarget(CHAT, "route"), "You s")
        await restarted(desk, await answered(desk, carrier=SentId("0")))
        await eventually(desk.nothing_outstanding)
        assert channel.texts == [WORDS(Key.CHAT_LATE, text="You said: hello")]


async def test_a_late_answer_that_is_refused_points_to_history(desk: Bench) -> None:
    turn = await answered(desk)
    desk.channel.outcomes = [NotSent.BLOCKED]
    await restarted(desk, turn)
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_UNDELIVERED)]
    await eventually(desk.nothing_outstanding)


async def test_a_session_that_went_away_meanwhile_is_told(desk: Bench) -> None:
    turn = await answered(desk)
    desk.host.world.sessions.clear()
    await restarted(desk, turn)
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_SESSION_GONE)]


async def test_a_late_answer_is_not_waited_for_for_ever(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_module, "LATE_SECONDS", 0.2)
    desk.host.model.script(say("slow", asyncio.Event()))
    session = SessionId(desk.host.session().id)
    await desk.harness.prompt(session, [TextPart("hello")], request=RequestId("r"))
    binding = await desk.state.chats.get(CHAT)
    await restarted(desk, left_behind(Phase.RUNNING, session=session, request=RequestId("r"), binding=binding))
    await eventually(desk.nothing_outstanding)
    assert desk.channel.sent == []


async def test_a_half_made_session_is_given_up_without_a_host(desk: Bench) -> None:
    await desk.host.stop()
    await restarted(desk, left_behind(Phase.CREATING, session=SessionId("session-half"), cwd="/"))
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_SEND_AGAIN)]
    assert (await desk.state.chats.get(CHAT)).session is None


async def test_a_chat_has_few_late_answers_outstanding(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_module, "ANSWER_SECONDS", 0.1)
    desk.host.model.script(say("slow", asyncio.Event()))
    for number in range(LATE_LIMIT + 1):
        await desk.say(f"m{number}")
    await desk.channel.until(lambda: len(desk.outcomes) == LATE_LIMIT + 1)

    async def bounded() -> bool:
        return len(await desk.state.turns.outstanding(BOT)) == LATE_LIMIT

    await eventually(bounded)

"""Questions of the host in the chat that started the turn, on both generations."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bridges import turn as turn_module
from bridges.interactions import Dialogue
from bridges.interactions.question import understood
from bridges.message import InboundAttachment, NotSent
from commands.model import AttachmentKind, ChatKey, ChatKind, Outcome, SenderId
from harness_client.client import Address, HarnessClient
from harness_client.streams import QuestionAsked
from harness_client.types import Answer, Generation, Question, QuestionOption, RequestId, SessionId, TextPart
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Bench, Setup, bench, eventually
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, Tool, ask, question, say

WORDS = Words(Language.EN)
BOB = SenderId("bob")
COLOUR = question("colour", "Which colour?", "Red", "Blue")
EXTRAS = question("extras", "Which extras?", "A", "B", "C", multiple=True)
FREE = question("free", "Any words?")


def results(desk: Bench) -> list[str]:
    """Return what the tools of all sessions got back, as it lies in the logs."""
    events = [event for session in desk.host.world.sessions.values() for event in session.log]
    return [json.dumps(event["data"], ensure_ascii=False) for event in events if event["type"] == "tool/result"]


async def asked(desk: Bench, *questions: dict[str, object], text: str = "go", kind: ChatKind = ChatKind.DIRECT) -> str:
    """Run a turn that asks, and return what the chat reads first."""
    desk.host.model.script(say("I ask.", tools=[ask(*questions)]), say("Thanks."))
    before = len(desk.channel.sent)
    await desk.say(text, kind=kind)
    await desk.channel.until_sent(before + 1)
    await shown(desk)
    return desk.channel.texts[before]


async def shown(desk: Bench) -> None:
    """Wait until what was sent counts as shown."""
    await eventually(lambda: all(each._asked and each._asked[0].shown for each in dialogues(desk)))


def dialogues(desk: Bench) -> list[Dialogue]:
    return [each for several in desk.intake.conversations.interactions._by_chat.values() for each in several]


async def test_a_question_is_shown_answered_and_confirmed(desk: Bench) -> None:
    text = await asked(desk, COLOUR)
    assert text == "\n".join([WORDS(Key.QUESTION_ONE), "Which colour?", "1. Red", "2. Blue", WORDS(Key.QUESTION_PICK)])
    await desk.say("2")
    assert (await desk.channel.until_sent(3))[1:] == [WORDS(Key.QUESTION_DONE, answers="Blue"), "I ask.\n\nThanks."]
    (result,) = results(desk)
    assert "Blue" in result
    assert len(desk.prompts) == 1
    await desk.channel.until(lambda: list(desk.outcomes.values()) == [Outcome.OK, Outcome.OK])


async def test_several_questions_come_one_after_another_and_go_together(desk: Bench) -> None:
    await asked(desk, COLOUR, EXTRAS, FREE)
    for number, said in enumerate(("blue", "1，c；more", "just words"), 1):
        await shown(desk)
        assert f"{number}/3" in desk.channel.texts[-1]
        assert results(desk) == []
        before = len(desk.channel.sent)
        if said == "blue":
            await desk.say("Blue")
        else:
            await desk.say(said)
        await desk.channel.until_sent(before + 1)
    await desk.host.settle()
    (result,) = results(desk)
    for word in ("Blue", '\\"A\\"', '\\"c, more\\"', "just words"):
        assert word in result


async def test_a_number_nobody_offered_is_asked_again(desk: Bench) -> None:
    text = await asked(desk, COLOUR)
    await desk.say("3")
    assert (await desk.channel.until_sent(3))[1:] == [WORDS(Key.QUESTION_NO_OPTION), text]
    assert results(desk) == []


async def test_words_that_came_before_the_question_was_seen_do_not_answer_it(desk: Bench) -> None:
    desk.channel.outcomes = [NotSent.REJECTED]
    desk.host.model.script(say(tools=[ask(COLOUR)]), say("Thanks."))
    await desk.say("go")
    await eventually(lambda: desk.intake.conversations.interactions.waits(CHAT) and not desk.channel.outcomes)
    await desk.say("Red")
    assert WORDS(Key.QUESTION_ONE) in (await desk.channel.until_sent(1))[0], "shown again instead"
    assert results(desk) == []
    await shown(desk)
    await desk.say("Red")
    assert (await desk.channel.until_sent(3))[1] == WORDS(Key.QUESTION_DONE, answers="Red")


async def test_only_who_started_the_turn_answers(desk: Bench) -> None:
    text = await asked(desk, COLOUR, kind=ChatKind.GROUP)
    assert text.endswith(WORDS(Key.ASKED_IN_GROUP))
    await desk.say("Red", kind=ChatKind.GROUP, sender=BOB)
    await desk.say("Blue", kind=ChatKind.GROUP, addressed=False)
    assert await desk.ask("/status") != ""
    assert results(desk) == []
    await desk.say("Blue", kind=ChatKind.GROUP)
    await desk.channel.until(lambda: "You said: Red" in desk.channel.texts)
    assert "Blue" in results(desk)[0]


async def test_commands_and_files_are_no_answers(desk: Bench) -> None:
    await asked(desk, FREE)
    assert "go" in await desk.ask("/history")
    assert WORDS(Key.STATUS_ASKED) in await desk.ask("/status")
    assert await desk.ask("/steer faster") == WORDS(Key.STEER_ASKED)
    await desk.say("words", attachments=(InboundAttachment(AttachmentKind.IMAGE, "h"),))
    assert (await desk.channel.until_sent(5))[4] == WORDS(Key.QUESTION_TEXT_ONLY)
    assert results(desk) == []


async def test_stop_closes_the_question_and_later_words_are_a_message(desk: Bench) -> None:
    await asked(desk, FREE)
    await desk.say("/stop")
    texts = await desk.channel.until_sent(3)
    assert set(texts[1:]) == {WORDS(Key.STOP_DONE), f"I ask.\n\n{WORDS(Key.CHAT_ABORTED)}"}
    await desk.channel.until(lambda: len(desk.outcomes) == 2)
    assert await desk.ask("words") == "You said: words"


async def test_what_was_answered_elsewhere_is_told_and_late_words_are_no_prompt(desk: Bench) -> None:
    desk.host.model.script(
        say("I ask.", tools=[ask(COLOUR), Tool("bash", until=(hold := asyncio.Event()))]), say("Ok.")
    )
    await desk.say("go")
    await desk.channel.until_sent(1)
    await shown(desk)
    async with HarnessClient(Address.parse(desk.host.url)) as web, web.host_events() as events:
        async for event in events:
            if isinstance(event, QuestionAsked):
                await web.answer(event, {"colour": Answer("colour", ("Red",))})
                break
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.QUESTION_ELSEWHERE)
    hold.set()
    assert (await desk.channel.until_sent(3))[2] == "I ask.\n\nOk."
    assert len(desk.prompts) == 1


async def test_an_answer_that_came_second_is_told_so(desk: Bench) -> None:
    """The person's words and the web's meet on the host: its log decides what the chat reads."""
    desk.host.model.script(say(tools=[ask(COLOUR)]), say("Ok."))
    await desk.say("go")
    await desk.channel.until_sent(1)
    await shown(desk)
    hold = asyncio.Event()
    for name in ("respond", "$events/result"):
        desk.host.fail(name, delay=hold, times=1)
    await desk.say("Blue")
    await desk.host.until_called("respond" if desk.host.dialect.generation is Generation.LEGACY else "$events/result")
    async with HarnessClient(Address.parse(desk.host.url)) as web, web.host_events() as events:
        async for event in events:
            if isinstance(event, QuestionAsked):
                await web.answer(event, {"colour": Answer("colour", ("Red",))})
                break
    hold.set()
    await desk.channel.until(lambda: WORDS(Key.QUESTION_ELSEWHERE) in desk.channel.texts)
    assert WORDS(Key.QUESTION_DONE, answers="Blue") not in desk.channel.texts


async def test_a_submission_that_fails_is_asked_again(desk: Bench) -> None:
    text = await asked(desk, COLOUR)
    for name in ("respond", "$events/result"):
        desk.host.fail(name, status=500, times=1)
    await desk.say("Red")
    texts = await desk.channel.until_sent(3)
    assert texts[1].startswith("The answer could not be submitted")
    assert texts[2] == text
    await shown(desk)
    await desk.say("Blue")
    assert (await desk.channel.until_sent(4))[3] == WORDS(Key.QUESTION_DONE, answers="Blue")


async def test_a_question_that_cannot_be_shown_whole_is_cancelled(desk: Bench) -> None:
    desk.host.model.script(say(tools=[ask(question("long", "x" * 7_000))]), say("Then not."))
    await desk.say("go")
    assert (await desk.channel.until_sent(2))[:2] == [WORDS(Key.QUESTION_UNSHOWN), "Then not."]
    assert "ASK_CANCELLED" in results(desk)[0]


async def test_a_second_set_is_cancelled_while_the_first_waits(desk: Bench) -> None:
    await asked(desk, COLOUR)
    (session,) = desk.host.world.sessions.values()
    outcome = await desk.host.world.ask(session, "question", {"questions": [FREE]})
    assert outcome.error == "ASK_CANCELLED"
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.QUESTION_SECOND)
    await desk.say("Red")
    assert (await desk.channel.until_sent(3))[2] == WORDS(Key.QUESTION_DONE, answers="Red")


async def test_a_subagents_question_comes_to_the_chat_of_its_parent(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(tools=[Tool("bash", until=hold)]), say("Ok."))
    await desk.say("go")
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    (parent,) = desk.host.world.sessions.values()
    child = desk.host.session("child", parent=parent.id, origin="subagent")
    grandchild = desk.host.session("grandchild", parent=child.id, origin="subagent")
    asking = asyncio.create_task(desk.host.world.ask(grandchild, "question", {"questions": [COLOUR]}))
    assert "Which colour?" in (await desk.channel.until_sent(1))[0]
    await shown(desk)
    await desk.say("Blue")
    assert "Blue" in str((await asking).answers)
    hold.set()
    await desk.channel.until(lambda: "Ok." in desk.channel.texts, 20)


async def test_what_was_asked_before_a_restart_is_cancelled_and_told(host: FakeHarness, tmp_path: Path) -> None:
    host.model.script(say("I ask.", tools=[ask(COLOUR)]), say("Then not."))
    async with bench(host, tmp_path) as before:
        await before.say("go")
        await before.channel.until_sent(1)
    async with bench(host, tmp_path) as desk:
        await desk.intake.inherit()
        desk.intake.connected()
        texts = await desk.channel.until_sent(2)
        assert set(texts) == {WORDS(Key.QUESTION_RESTARTED), WORDS(Key.CHAT_LATE, text="I ask.\n\nThen not.")}
        await eventually(desk.nothing_outstanding)
        assert "ASK_CANCELLED" in results(desk)[0]


async def test_a_question_outlives_the_wait_of_its_turn(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_module, "ANSWER_SECONDS", 0.5)
    await asked(desk, COLOUR)
    await desk.channel.until(lambda: WORDS(Key.CHAT_STILL_RUNNING) in desk.channel.texts[-1])
    await desk.say("Red")
    await desk.channel.until(lambda: WORDS(Key.CHAT_LATE, text="I ask.\n\nThanks.") in desk.channel.texts)
    assert "Red" in results(desk)[0]


async def test_a_question_of_somebody_elses_turn_is_not_put_to_this_chat(desk: Bench) -> None:
    session = desk.host.session()
    desk.host.model.script(say(tools=[ask(COLOUR)]), say("theirs"))
    await desk.harness.prompt(SessionId(session.id), [TextPart("theirs")], request=RequestId("web"))
    await desk.ask(f"/session {session.id}")
    await desk.say("ours")
    await eventually(lambda: len(desk.prompts) == 2)
    async with HarnessClient(Address.parse(desk.host.url)) as web, web.host_events() as events:
        async for event in events:
            if isinstance(event, QuestionAsked):
                await web.answer(event, {"colour": Answer("colour", ("Red",))})
                break
    await desk.channel.until(lambda: desk.channel.texts[1:] == ["You said: ours"])


async def test_a_new_session_during_a_question_cancels_it_and_takes_the_next_message(desk: Bench) -> None:
    await asked(desk, COLOUR)
    for text in ("/new", "Red"):
        await desk.say(text)
    await desk.channel.until(lambda: "You said: Red" in desk.channel.texts)
    assert WORDS(Key.QUESTION_SWITCHED) in desk.channel.texts
    assert "ASK_CANCELLED" in results(desk)[0]
    assert len(desk.host.world.sessions) == 2


async def test_a_switch_by_another_chat_is_noticed_when_the_answer_comes(desk: Bench, tmp_path: Path) -> None:
    await asked(desk, COLOUR)
    await desk.say(f"/workspace {tmp_path}", chat=ChatKey("test", "bot", "2"))
    await desk.channel.until_sent(2)
    await desk.say("Red")
    await desk.channel.until(lambda: WORDS(Key.QUESTION_SWITCHED) in desk.channel.texts)
    assert "ASK_CANCELLED" in results(desk)[0]


async def test_a_cut_link_keeps_the_question(desk: Bench) -> None:
    await asked(desk, COLOUR)
    desk.host.cut()
    listens = ("events.mux", "$events")
    await eventually(lambda: sum(call.name in listens for call in desk.host.calls) >= 2)
    await desk.say("Red")
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.QUESTION_DONE, answers="Red")


async def test_what_is_not_told_again_after_a_break_is_over(host: FakeHarness, tmp_path: Path) -> None:
    clock = FakeClock()
    async with bench(host, tmp_path, setup=Setup(clock=clock)) as desk:
        hold = asyncio.Event()
        host.model.script(say(tools=[ask(COLOUR), Tool("bash", until=hold)]), say("Ok."))
        await desk.say("go")
        await desk.channel.until_sent(1)
        await shown(desk)
        listener = desk.intake.conversations.interactions
        host.cut()
        async with HarnessClient(Address.parse(host.url)) as web, web.host_events() as events:
            async for event in events:
                if isinstance(event, QuestionAsked):
                    await web.answer(event, {"colour": Answer("colour", ("Red",))})
                    break
        while not any(text == WORDS(Key.QUESTION_ELSEWHERE) for text in desk.channel.texts):
            await clock.advance(1.0)
            await asyncio.sleep(0.01)
        assert not listener.waits(CHAT)
        hold.set()


async def test_questions_and_listeners_leave_nothing_behind(desk: Bench) -> None:
    await asked(desk, COLOUR)
    await desk.say("Red")
    await desk.channel.until(lambda: len(desk.outcomes) == 2)
    interactions = desk.intake.conversations.interactions
    assert (interactions._by_chat, interactions._by_session, interactions._listener) == ({}, {}, None)


PICK = Question("q", "?", None, (QuestionOption("Red", None), QuestionOption("Blue, dark", None)), multiple=False)
SEVERAL = Question("q", "?", None, tuple(QuestionOption(label, None) for label in ("A", "B", "4")), multiple=True)
WRITE = Question("q", "?", None, (), multiple=False)


@pytest.mark.parametrize(
    ("asked_of", "text", "selected", "custom"),
    [
        (PICK, "1", ["Red"], None),
        (PICK, " ２ ", ["Blue, dark"], None),
        (PICK, "2.", ["Blue, dark"], None),
        (PICK, "Blue, dark", ["Blue, dark"], None),
        (PICK, "green", [], "green"),
        (PICK, "1, 2", [], "1, 2"),
        (SEVERAL, "1,2", ["A", "B"], None),
        (SEVERAL, "1，2、4", ["A", "B", "4"], None),
        (SEVERAL, "A;A\nB；own words", ["A", "B"], "own words"),
        (WRITE, "1, 2", [], "1, 2"),
        (WRITE, "7", [], "7"),
    ],
)
def test_words_are_options_or_free_text(asked_of: Question, text: str, selected: list[str], custom: str | None) -> None:
    assert understood(asked_of, text) == Answer("q", tuple(selected), custom)


@pytest.mark.parametrize(
    ("asked_of", "text"), [(PICK, "3"), (PICK, "0"), (PICK, "  "), (SEVERAL, "1,9"), (SEVERAL, ",")]
)
def test_what_is_no_option_is_no_answer(asked_of: Question, text: str) -> None:
    assert understood(asked_of, text) is None

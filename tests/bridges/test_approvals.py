"""Approvals of tool calls in the chat that started the turn, on both generations."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bridges.interactions.approval import decision_in, escaped, shown
from bridges.interactions.listening import STRAY_SECONDS
from bridges.message import NotSent
from commands.model import ChatKind, Outcome, SenderId
from harness_client.client import Address, HarnessClient
from harness_client.streams import ApprovalAsked
from harness_client.types import Decision, Generation
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Bench, Setup, bench, eventually
from tests.bridges.test_questions import COLOUR, dialogues
from tests.bridges.test_questions import shown as is_shown
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, Tool, say

WORDS = Words(Language.EN)
BOB = SenderId("bob")
REMOVE = Tool("bash", {"command": "rm -rf build"}, approval="it is old")


def decided(desk: Bench) -> list[str]:
    events = [event for session in desk.host.world.sessions.values() for event in session.log]
    found = [event["data"] for event in events if event["type"] == "approval/decided"]
    return [str(data["outcome"]) for data in found if isinstance(data, dict)]


async def asked(desk: Bench, *tools: Tool, kind: ChatKind = ChatKind.DIRECT) -> str:
    desk.host.model.script(say("I try.", tools=tools or (REMOVE,)), say("Done."))
    await desk.say("go", kind=kind)
    text = (await desk.channel.until_sent(1))[0]
    await is_shown(desk)
    return text


async def test_an_approval_shows_everything_and_is_confirmed(desk: Bench) -> None:
    assert await asked(desk) == "\n".join(
        [
            WORDS(Key.APPROVAL_ASKED),
            "Tool: bash",
            "Reason: it is old",
            "Arguments:",
            '{\n  "command": "rm -rf build"\n}',
            WORDS(Key.APPROVAL_HINT),
        ]
    )
    await desk.say(" YES ")
    assert (await desk.channel.until_sent(3))[1:] == [WORDS(Key.APPROVAL_ALLOWED), "I try.\n\nDone."]
    assert decided(desk) == ["allowed-once"]
    assert len(desk.prompts) == 1


@pytest.mark.parametrize("word", ["拒绝", "不同意", "No"])
async def test_a_rejection_goes_to_the_task(desk: Bench, word: str) -> None:
    await asked(desk)
    await desk.say(word)
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.APPROVAL_REJECTED)
    await desk.host.settle()
    assert decided(desk) == ["rejected"]


@pytest.mark.parametrize("text", ["yes please", "ok", "允许", "是", "y", "1", "yes\nyes", "always"])
async def test_anything_else_repeats_the_hint(desk: Bench, text: str) -> None:
    await asked(desk)
    assert await desk.ask(text) == WORDS(Key.APPROVAL_HINT)
    assert decided(desk) == []
    assert len(desk.prompts) == 1


async def test_several_approvals_are_asked_in_order_and_one_word_decides_one(desk: Bench) -> None:
    await asked(desk, REMOVE, Tool("bash", {"command": "second"}, approval="too"))
    await asyncio.gather(desk.say("yes"), desk.say("yes"))
    await desk.channel.until(lambda: any("second" in text for text in desk.channel.texts))
    await desk.channel.until(lambda: WORDS(Key.APPROVAL_ALREADY) in desk.channel.texts)
    assert decided(desk) == ["allowed-once"], "the second word was said before the second call was shown"
    await is_shown(desk)
    await desk.say("no")
    await desk.channel.until(lambda: desk.channel.texts[-1] == "I try.\n\nDone.")
    assert decided(desk) == ["allowed-once", "rejected"]


async def test_a_word_before_it_was_seen_decides_nothing(desk: Bench) -> None:
    desk.channel.outcomes = [NotSent.REJECTED]
    desk.host.model.script(say(tools=[REMOVE]), say("Done."))
    await desk.say("go")
    await eventually(lambda: desk.intake.conversations.interactions.waits(CHAT) and not desk.channel.outcomes)
    await desk.say("yes")
    assert "rm -rf" in (await desk.channel.until_sent(1))[0]
    assert decided(desk) == []


async def test_a_question_comes_before_an_approval_and_its_yes_allows_nothing(desk: Bench) -> None:
    session = desk.host.session()
    await asked(desk)
    live = next(each for each in desk.host.world.sessions.values() if each.running)
    assert live is not session
    questioning = asyncio.create_task(desk.host.world.ask(live, "question", {"questions": [COLOUR]}))
    await desk.channel.until_sent(2)
    await is_shown(desk)
    await desk.say("yes")
    texts = await desk.channel.until_sent(4)
    assert texts[2] == WORDS(Key.QUESTION_UNCONFIRMED if modern(desk) else Key.QUESTION_DONE, answers="yes")
    assert "rm -rf" in texts[3], "shown again, now that it is its turn"
    assert decided(desk) == []
    assert "yes" in str((await questioning).answers)


def modern(desk: Bench) -> bool:
    return desk.host.dialect.generation is Generation.MODERN


async def test_only_the_one_who_started_decides(host: FakeHarness, tmp_path: Path) -> None:
    async with bench(host, tmp_path, setup=Setup(group_approvals=True)) as desk:
        assert (await asked(desk, kind=ChatKind.GROUP)).endswith(WORDS(Key.ASKED_IN_GROUP))
        await desk.say("yes", kind=ChatKind.GROUP, sender=BOB)
        assert (await desk.channel.until_sent(2))[1] == WORDS(Key.APPROVAL_NOT_YOURS)
        await desk.say("hello", kind=ChatKind.GROUP, sender=BOB)
        await desk.say("yes", kind=ChatKind.GROUP)
        await desk.channel.until(lambda: "You said: hello" in desk.channel.texts)
        assert decided(desk) == ["allowed-once"]


async def test_a_group_approves_nothing_unless_it_may(desk: Bench) -> None:
    desk.host.model.script(say(tools=[REMOVE]), say("Not done."))
    await desk.say("go", kind=ChatKind.GROUP)
    assert await desk.channel.until_sent(2) == [WORDS(Key.APPROVAL_GROUP), "Not done."]
    assert decided(desk) == ["rejected"]


async def test_what_cannot_be_shown_whole_is_rejected(desk: Bench) -> None:
    desk.host.model.script(say(tools=[Tool("bash", {"command": "x" * 6_000}, approval="long")]), say("Not done."))
    await desk.say("go")
    assert await desk.channel.until_sent(2) == [WORDS(Key.APPROVAL_UNSHOWN), "Not done."]
    assert decided(desk) == ["rejected"]


async def test_stop_rejects_and_a_stray_word_becomes_no_prompt(desk: Bench) -> None:
    await asked(desk)
    await desk.say("/stop")
    await desk.channel.until(lambda: len(desk.outcomes) == 2)
    assert await desk.ask("yes") == WORDS(Key.APPROVAL_ALREADY)
    assert len(desk.prompts) == 1
    assert decided(desk) == ["cancelled"]
    assert await desk.ask("yes, go on") == "You said: yes, go on"


async def test_a_stray_word_is_a_message_again_after_a_while(host: FakeHarness, tmp_path: Path) -> None:
    clock = FakeClock()
    async with bench(host, tmp_path, setup=Setup(clock=clock)) as desk:
        await asked(desk)
        await desk.say("no")
        await desk.channel.until(lambda: len(desk.outcomes) == 2)
        await clock.advance(STRAY_SECONDS - 1)
        assert await desk.ask("no") == WORDS(Key.APPROVAL_ALREADY)
        await clock.advance(2)
        assert await desk.ask("no") == "You said: no"


async def test_what_was_decided_elsewhere_is_told(desk: Bench) -> None:
    hold = asyncio.Event()
    await asked(desk, REMOVE, Tool("bash", until=hold))
    async with HarnessClient(Address.parse(desk.host.url)) as web, web.host_events() as events:
        async for event in events:
            if isinstance(event, ApprovalAsked):
                await web.decide(event, Decision.REJECT)
                break
    told = Key.APPROVAL_ELSEWHERE if modern(desk) else Key.APPROVAL_REJECTED_ELSEWHERE
    assert (await desk.channel.until_sent(2))[1] == WORDS(told)
    assert await desk.ask("yes") == WORDS(Key.APPROVAL_ALREADY)
    hold.set()


async def test_a_decision_that_did_not_count_is_not_called_done(desk: Bench) -> None:
    """Modern hosts say yes to everything: only the log knows that somebody else was first."""
    await asked(desk, REMOVE, Tool("bash", until=(hold := asyncio.Event())))
    late = asyncio.Event()
    for name in ("respond", "$events/result"):
        desk.host.fail(name, delay=late, times=1)
    await desk.say("yes")
    await desk.host.until_called("$events/result" if modern(desk) else "respond")
    async with HarnessClient(Address.parse(desk.host.url)) as web, web.host_events() as events:
        async for event in events:
            if isinstance(event, ApprovalAsked):
                await web.decide(event, Decision.REJECT)
                break
    late.set()
    await desk.channel.until(lambda: WORDS(Key.APPROVAL_ELSEWHERE) in desk.channel.texts)
    assert WORDS(Key.APPROVAL_ALLOWED) not in desk.channel.texts
    assert decided(desk) == ["rejected"]
    hold.set()


@pytest.mark.parametrize("host", [Generation.MODERN], indirect=True)
async def test_a_decision_nobody_can_confirm_is_told_as_that(host: FakeHarness, tmp_path: Path) -> None:
    clock = FakeClock()
    async with bench(host, tmp_path, setup=Setup(clock=clock)) as desk:
        await asked(desk)
        desk.host.fail("$events/result", value=None)
        await desk.say("yes")
        while len(desk.channel.sent) < 2:
            await clock.advance(0.5)
            await asyncio.sleep(0.01)
        assert desk.channel.texts[1] == WORDS(Key.APPROVAL_UNCONFIRMED)


async def test_an_approval_is_settled_once(desk: Bench) -> None:
    await asked(desk)
    assert not any(dialogue.stopping for dialogue in dialogues(desk))
    await asyncio.gather(*(desk.say(word) for word in ("yes", "no", "yes")))
    await desk.channel.until(lambda: len(desk.outcomes) == 4)
    assert decided(desk) == ["allowed-once"]
    assert list(desk.outcomes.values()).count(Outcome.REFUSED) == 2


@pytest.mark.parametrize("text", ["批准", "同意", "yes", "YES", " Yes\n", "\u200byes\u3000"])
def test_the_words_that_allow(text: str) -> None:
    assert decision_in(text) is Decision.ALLOW_ONCE


@pytest.mark.parametrize("text", ["", "批准。", "yes!", "我同意", "ｙｅｓ", "yeſ", "/yes"])
def test_words_that_decide_nothing(text: str) -> None:
    assert decision_in(text) is None


def test_nothing_in_the_arguments_is_hidden() -> None:
    sly = "ls \u202egnp.exe\u200b\u00a0\u2028\x1b[8m \U000e0041\u3164"
    text = shown(json.dumps({"command": sly}))
    assert text == '{\n  "command": "ls \\u202egnp.exe\\u200b\\u00a0\\u2028\\u001b[8m \\U000e0041\\u3164"\n}'
    assert shown("no { json\r\n") == "no { json\\u000d\n"
    assert escaped("plain 中文 é\n") == "plain 中文 é\n"

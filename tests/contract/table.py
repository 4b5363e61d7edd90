"""The acceptance table: what every channel must do (spec HISTORY 8), each case once, for all of them.

A case is a coroutine that takes a :class:`tests.contract.desk.Desk`; ``needs`` names what a platform must have for it.
The tests run it, and so does ``harness-im smoke --simulated``, which ships with it: nothing here may need pytest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bridges.config import Access
from bridges.log import Redactor
from bridges.message import Acceptance
from commands.batch import LIMIT
from commands.catalog import COMMANDS
from commands.help import form
from commands.model import AttachmentKind, ChatKind
from harness_client.types import Generation, SessionId
from i18n import Key, Language
from tests.contract.desk import Desk, desk_at
from tests.contract.platform import Row, Trait
from tests.fakes.harness import FakeHarness, Tool, ask, question, say
from tests.fakes.waiting import eventually


@dataclass(frozen=True, slots=True)
class Told:
    """What was told in confidence while a case ran: no log may hold it."""

    secrets: set[str]
    texts: set[str]


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    run: Callable[[Desk], Awaitable[None]]
    needs: frozenset[Trait]
    language: Language

    @property
    def name(self) -> str:
        suffix = "" if self.language is Language.EN else f"_{self.language}"
        return self.run.__name__ + suffix

    async def on(self, row: Row, generation: Generation, folder: Path, redact: Redactor | None = None) -> Told:
        """Run it on a row, before a fake host of this generation; ``folder`` is for the state.

        ``redact`` is the log's, where there is one.
        """
        redact = redact or Redactor()
        async with row.platform() as platform, FakeHarness(generation) as host:
            redact.keep(platform.secrets())
            async with desk_at(host, platform, folder, self.language, redact) as desk:
                await self.run(desk)
            return Told(platform.secrets() | {host.login.token}, desk.said)


CASES: list[Case] = []

_Run = Callable[[Desk], Awaitable[None]]


def case(*needs: Trait, languages: tuple[Language, ...] = (Language.EN,)) -> Callable[[_Run], _Run]:
    """Add a case, once per language of the bot."""

    def add(run: _Run) -> _Run:
        CASES.extend(Case(run, frozenset(needs), language) for language in languages)
        return run

    return add


# -- /history ----------------------------------------------------------------------------------------------------------


@case()
async def history_shows_the_newest_three_and_at_most_five(desk: Desk) -> None:
    session = await desk.bind(messages=8)
    for text, count in (("/history", 3), ("/history 10", 5)):
        (reply,) = await desk.ask(text)
        label = session.id.removeprefix("session-")[:12]
        assert reply.startswith(desk.words(Key.HISTORY_HEADER, label=label, count=count))
        assert [f"answer {number}" in reply for number in range(4)] == [False, count == 5, True, True]
    assert desk.writes == []


@case()
async def history_without_a_session_says_so(desk: Desk) -> None:
    assert await desk.ask("/history") == [desk.words(Key.HISTORY_UNBOUND)]
    assert desk.host.calls == []


@case(Trait.GROUPS)
async def history_in_a_group_gives_the_notice_only(desk: Desk) -> None:
    assert await desk.ask("/history 9 9", chat=ChatKind.GROUP) == [desk.words(Key.HISTORY_PRIVATE_ONLY)]
    assert desk.platform.heard() == []
    assert desk.host.calls == []


@case(Trait.ATTACHMENTS)
async def history_with_an_attachment_is_refused(desk: Desk) -> None:
    await desk.bind(messages=2)
    before = len(desk.platform.heard())
    for kind in AttachmentKind:
        await desk.platform.says("/history", attachment=kind)
    await desk.settled()
    carried = [message for message, _ in desk.accepted if message.attachments]
    assert desk.platform.heard()[before:] == [desk.words(Key.CHAT_TEXT_ONLY)] * len(carried)
    assert carried
    assert desk.writes == []


@case()
async def history_answers_while_a_task_runs_and_leaves_it_alone(desk: Desk) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say("begun", hold, " and done"))
    await desk.platform.says("work")
    await desk.host.until(lambda: any(session.partial for session in desk.host.world.sessions.values()))
    await desk.platform.says("/history")
    await eventually(lambda: any(desk.words(Key.HISTORY_RUNNING) in text for text in desk.platform.heard()))
    hold.set()
    await desk.settled()
    assert "begun and done" in desk.platform.heard()
    assert len(desk.writes) == 2, "one session, one prompt"


@case(Trait.REFUSALS, Trait.SEGMENTS)
async def a_refused_first_segment_ends_the_reply(desk: Desk) -> None:
    await _history_with_refusal(desk, nth=1)


@case(Trait.REFUSALS, Trait.SEGMENTS)
async def a_refused_second_segment_ends_the_reply(desk: Desk) -> None:
    await _history_with_refusal(desk, nth=2)


async def _history_with_refusal(desk: Desk, nth: int) -> None:
    await desk.bind(messages=6, length=900)
    whole = await desk.ask("/history 5")
    assert len(whole) > 1, "the reply must need two messages"
    reads = len(desk.host.calls)
    await desk.ask("/history 5")
    reads = len(desk.host.calls) - reads
    desk.platform.refuse(nth)
    before = len(desk.host.calls)
    assert await desk.ask("/history 5") == whole[: nth - 1]
    assert len(desk.host.calls) - before <= reads, "nothing is read again"
    assert await desk.ask("/history 5") == whole
    assert desk.writes == []


# -- who, and how often ------------------------------------------------------------------------------------------------


@case(Trait.STRANGERS)
async def a_stranger_hears_nothing_and_reaches_nothing(desk: Desk) -> None:
    for text in ("/history", "hello"):
        await desk.platform.says(text, sender=desk.platform.stranger)
    await eventually(lambda: desk.acceptances[Acceptance.DENIED] == 2)
    assert desk.platform.heard(sender=desk.platform.stranger) == []
    assert desk.host.calls == []


@case(Trait.STRANGERS)
async def where_the_bot_pairs_a_stranger_gets_a_code(desk: Desk) -> None:
    desk.access = Access(direct="pairing")
    await desk.platform.says("hello", sender=desk.platform.stranger)
    await eventually(lambda: desk.acceptances[Acceptance.DENIED] == 1)
    (pairing,) = await desk.state.pairings.waiting()
    told = [desk.words(Key.CHAT_PAIRING, code=pairing.code)]
    await eventually(lambda: desk.platform.heard(sender=desk.platform.stranger) == told)
    assert desk.host.calls == []


@case(Trait.GROUPS)
async def a_group_that_does_not_address_the_bot_is_left_alone(desk: Desk) -> None:
    for text in ("hello", "/history"):
        await desk.platform.says(text, chat=ChatKind.GROUP, addressed=False)
    assert await desk.ask("/help") != []
    assert desk.platform.heard(ChatKind.GROUP) == []
    assert desk.host.calls == []


@case(Trait.REDELIVERY)
async def what_is_delivered_twice_is_answered_once(desk: Desk) -> None:
    for id_, text in (("command", "/help"), ("prompt", "hello")):
        await desk.platform.says(text, id=id_)
        await desk.platform.again(id_)
        await desk.settled()
        await desk.platform.again(id_)
    assert desk.acceptances[Acceptance.ACCEPTED] == 2
    assert len(desk.platform.heard()) == 2
    assert len(desk.writes) == 2, "one session, one prompt"


@case(Trait.ECHO)
async def the_bots_own_message_is_none(desk: Desk) -> None:
    heard = await desk.ask("/help")
    await desk.platform.echo()
    assert await desk.ask("/help") == heard
    assert desk.acceptances == {Acceptance.ACCEPTED: 2}


# -- commands ----------------------------------------------------------------------------------------------------------


@case(languages=tuple(Language))
async def help_names_every_command(desk: Desk) -> None:
    text = "".join(await desk.ask("/help"))
    for command in COMMANDS.values():
        assert form(command, desk.words) in text
    assert desk.words(Key.HISTORY_SUMMARY) in text
    assert desk.host.calls == []


@case()
async def binding_a_session_points_to_history(desk: Desk) -> None:
    session = desk.host.session()
    (reply,) = await desk.ask(f"/session {session.id}")
    assert desk.words(Key.SESSION_TRY_HISTORY) in reply
    assert (await desk.state.chats.get(desk.chat)).session == SessionId(session.id)
    assert desk.writes == []


# -- prompts -----------------------------------------------------------------------------------------------------------


@case()
async def a_prompt_is_answered_in_its_chat(desk: Desk) -> None:
    assert await desk.ask("hello") == ["You said: hello"]
    assert await desk.ask("again") == ["You said: again"]
    assert len(desk.writes) == 3, "one session, two prompts"


@case(Trait.GROUPS)
async def a_group_prompt_is_answered_in_the_group(desk: Desk) -> None:
    assert await desk.ask("hello", chat=ChatKind.GROUP) == ["You said: hello"]
    assert desk.platform.heard() == []


@case(Trait.STREAMING)
async def an_answer_is_seen_while_it_grows_and_stands_there_once(desk: Desk) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say("Hello", hold, " there"))
    await desk.platform.says("hi")
    await eventually(lambda: "Hello" in desk.platform.glimpsed())
    hold.set()
    await desk.settled()
    assert desk.platform.heard() == ["Hello there"]


@case(Trait.PAGES, Trait.ENDLESS)
async def a_long_answer_comes_whole_and_in_order(desk: Desk) -> None:
    text = "".join(f"line {number}\n" for number in range(1_200))
    desk.host.model.script(say(text))
    heard = await desk.ask("hi")
    assert len(heard) > 1
    assert "".join(heard).split() == text.split()


@case()
async def a_character_cut_in_two_on_its_way_arrives_whole(desk: Desk) -> None:
    desk.host.model.script(say("cut \ud83d", "\ude00, and lost \ud83d"))
    assert await desk.ask("hi") == ["cut 😀, and lost \ufffd"]


# -- while a task runs -------------------------------------------------------------------------------------------------

COLOUR = question("colour", "Which colour?", "Red", "Blue")
REMOVE = Tool("bash", {"command": "rm -rf build"}, approval="it is old")


async def _answer(desk: Desk, text: str, told: str) -> None:
    """Say ``text`` until it counts: words that come in while the question is still being sent show it again."""

    def replies() -> list[str]:
        """What was said but for the answer of the task, which may be seen before or after, or half of it."""
        return [heard for heard in desk.platform.heard() if not DONE.startswith(heard)]

    for _ in range(20):
        before = len(replies())
        await desk.platform.says(text)
        await eventually(lambda: len(replies()) > before)  # noqa: B023 - awaited within the round
        if told in replies():
            return
    raise AssertionError(desk.platform.heard())


DONE = "Done."


async def _asked(desk: Desk, tool: Tool, words: str) -> None:
    desk.host.model.script(say(tools=[tool]), say(DONE))
    await desk.platform.says("go")
    await eventually(lambda: any(words in text for text in desk.platform.heard()))


@case(languages=tuple(Language))
async def a_question_is_answered_in_the_chat(desk: Desk) -> None:
    await _asked(desk, ask(COLOUR), "2. Blue")
    assert "go" in (await _said(desk, "/history"))
    await _answer(desk, "2", desk.words(Key.QUESTION_DONE, answers="Blue"))
    await desk.settled()
    assert DONE in desk.platform.heard()
    assert len(desk.writes) == 2, "one session, one prompt"


@case(languages=tuple(Language))
async def an_approval_is_given_by_the_exact_word(desk: Desk) -> None:
    await _asked(desk, REMOVE, "rm -rf build")
    assert "go" in (await _said(desk, "/history"))
    await _answer(desk, "同意", desk.words(Key.APPROVAL_ALLOWED))
    await desk.settled()
    assert DONE in desk.platform.heard()
    assert len(desk.writes) == 2, "one session, one prompt"


@case(Trait.GROUPS)
async def a_group_approves_nothing(desk: Desk) -> None:
    desk.host.model.script(say(tools=[REMOVE]), say("Not done."))
    await desk.platform.says("go", chat=ChatKind.GROUP)
    told = {desk.words(Key.APPROVAL_GROUP), "Not done."}
    await eventually(lambda: set(desk.platform.heard(ChatKind.GROUP)) == told)
    assert desk.platform.heard() == []


@case()
async def stop_ends_the_task_and_its_question(desk: Desk) -> None:
    await _asked(desk, ask(COLOUR), "2. Blue")
    await desk.platform.says("/stop")
    await desk.settled()
    heard = desk.platform.heard()
    assert desk.words(Key.STOP_DONE) in heard
    assert desk.words(Key.CHAT_ABORTED) in heard
    assert await desk.ask("Blue") == ["You said: Blue"]


@case(languages=tuple(Language))
async def a_batch_becomes_one_prompt(desk: Desk) -> None:
    assert await desk.ask("/batch") == [desk.words(Key.BATCH_BEGUN, limit=LIMIT)]
    for text in ("one", "two"):
        assert await desk.ask(text) == []
    assert await desk.ask("/history") == [desk.words(Key.BATCH_COLLECTING)]
    desk.host.model.script("Both read.")
    assert await desk.ask("/send") == ["Both read."]
    assert len(desk.writes) == 2, "one session, one prompt"
    (history,) = await desk.ask("/history")
    assert "one\ntwo" in history


async def _said(desk: Desk, text: str) -> str:
    """Say a command while a task runs and return its reply."""
    before = len(desk.platform.heard())
    await desk.platform.says(text)
    await eventually(lambda: len(desk.platform.heard()) > before)
    return desk.platform.heard()[before]

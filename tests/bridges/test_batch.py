"""Batches: several messages that become one prompt, in every state, on both generations."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bridges.config import Busy
from bridges.intake import LONGEST_TEXT
from bridges.message import Acceptance, EventId, InboundAttachment, InboundMessage, ReplyTarget, SendOutcome
from bridges.prompt import Prompt
from commands.batch import LIMIT, OVERHEAD, ROOM, Batches, Stage
from commands.model import AttachmentKind, ChatKey, ChatKind, Outcome
from i18n import Key, Language, Words
from tests.bridges.bench import ALICE, CHAT, Bench, Setup, bench, eventually
from tests.bridges.test_questions import COLOUR, asked
from tests.fakes.harness import Failure, FakeHarness, How, Step, say

WORDS = Words(Language.EN)
IMAGE = (InboundAttachment(AttachmentKind.IMAGE, "handle"),)
BEGUN = WORDS(Key.BATCH_BEGUN, limit=LIMIT)


async def collected(desk: Bench, *texts: str) -> None:
    assert await desk.ask("/batch") == BEGUN
    for text in texts:
        assert await desk.say(text) is Acceptance.ACCEPTED


def said(desk: Bench) -> list[object]:
    events = [event for session in desk.host.world.sessions.values() for event in session.log]
    data = [event["data"] for event in events if event["type"] == "user/message"]
    return [each["content"] for each in data if isinstance(each, dict) and each["source"]["kind"] == "user"]


async def test_what_was_collected_becomes_one_prompt_and_history_shows_the_words(desk: Bench) -> None:
    await collected(desk, "one", "two\nlines", "three")
    await desk.say("/send")
    (reply,) = (await desk.channel.until_sent(2))[1:]
    assert reply.startswith("You said: ")
    assert len(desk.prompts) == 1
    assert all(words in str(said(desk)) for words in ("[message 1 of 3]", "one", "two", "three"))
    history = await desk.ask("/history 5")
    assert "2. Assistant" in history
    assert "one\ntwo\nlines\nthree" in history
    await desk.channel.until(lambda: len(desk.outcomes) == 6)
    assert await desk.ask("/send") == WORDS(Key.SEND_NOTHING)
    assert await desk.state.turns.outstanding(desk.intake._bot.key) == ()


async def test_messages_that_come_in_one_burst_keep_their_order(desk: Bench) -> None:
    for text in ("/batch", "one", "/help", "two", "/send"):
        await desk.say(text)
    await desk.channel.until(lambda: len(desk.outcomes) == 5)
    assert len(desk.prompts) == 1
    assert all(words in str(said(desk)) for words in ("[message 2 of 2]", "one", "two"))
    assert WORDS(Key.BATCH_COLLECTING) in desk.channel.texts


async def test_what_follows_a_cancel_is_a_message_again(desk: Bench) -> None:
    await collected(desk, "one")
    for text in ("/cancel", "two"):
        await desk.say(text)
    assert (await desk.channel.until_sent(3))[1:] == [WORDS(Key.CANCEL_DONE, count=1), "You said: two"]


async def test_a_slow_reply_to_a_batch_command_holds_up_no_message(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()
    send = desk.channel.send

    async def slow(target: ReplyTarget, text: str) -> SendOutcome:
        await go.wait()
        return await send(target, text)

    monkeypatch.setattr(desk.channel, "send", slow)
    async with asyncio.timeout(5):
        for text in ("/batch", "one", "/send"):
            await desk.say(text)
    assert desk.channel.sent == []
    go.set()
    await desk.channel.until(lambda: len(desk.outcomes) == 3)
    assert "one" in str(said(desk))


async def test_a_batch_does_not_begin_behind_a_message_that_is_just_taken_up(desk: Bench) -> None:
    for text in ("hello", "/batch", "one"):
        await desk.say(text)
    await desk.channel.until(lambda: len(desk.outcomes) == 3)
    assert WORDS(Key.BATCH_BUSY) in desk.channel.texts
    assert len(desk.prompts) == 2


async def test_a_batch_of_one_joins_no_task(host: FakeHarness, tmp_path: Path) -> None:
    async with bench(host, tmp_path, setup=Setup(busy=Busy.STEER)) as desk:
        await collected(desk, "one")
        hold = asyncio.Event()
        host.model.script(say("half ", hold, "done"))
        await desk.intake._take_prompt(message("e0", "hello"), Prompt(("hello",)))
        await eventually(lambda: any(session.partial for session in host.world.sessions.values()))
        await desk.say("/send")
        await eventually(lambda: bool(desk.intake.conversations._chats[CHAT].queue))
        hold.set()
        await desk.channel.until(lambda: "You said: one" in desk.channel.texts)
        await eventually(lambda: desk.intake._batches.stage(CHAT) is Stage.NONE)


def message(event: str, text: str) -> InboundMessage:
    return InboundMessage(EventId(event), CHAT, ChatKind.DIRECT, ALICE, text, ReplyTarget(CHAT, "route"))


def titles(desk: Bench) -> list[str | None]:
    return [session.title for session in desk.host.world.sessions.values()]


async def test_a_session_begun_by_a_batch_is_called_by_its_first_words(desk: Bench) -> None:
    desk.host.model.title = ""
    await collected(desk, "\u202e\n  plan\x1b[31m the  trip ", "to the sea")
    await desk.say("/send")
    await desk.channel.until_sent(2)
    (title,) = titles(desk)
    assert title is not None
    assert "plan" in title
    assert "the trip" in title
    assert title.isprintable()
    await collected(desk, "more", "words")
    await desk.say("/send")
    await desk.channel.until_sent(4)
    assert titles(desk) == [title], "a session that was there keeps its title"


@pytest.mark.parametrize("how", [How(status=500), How(drop="before"), How(error={"code": "internal", "message": ""})])
async def test_a_session_that_cannot_be_named_is_prompted_all_the_same(desk: Bench, how: How) -> None:
    desk.fail("rename", **how)
    await collected(desk, "one", "two")
    await desk.say("/send")
    assert (await desk.channel.until_sent(2))[1].startswith("You said: ")
    assert len(desk.prompts) == 1


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("/send", Key.SEND_NOTHING),
        ("/cancel", Key.CANCEL_NOTHING),
        ("/batch now", Key.BATCH_USAGE),
        ("/send it", Key.SEND_USAGE),
        ("/cancel it", Key.CANCEL_USAGE),
    ],
)
async def test_nothing_is_collected(desk: Bench, text: str, reply: Key) -> None:
    assert await desk.ask(text) == WORDS(reply)
    assert desk.host.calls == []


@pytest.mark.parametrize("text", ["/send", "/cancel"])
async def test_a_quote_or_a_file_at_these_changes_nothing(desk: Bench, text: str) -> None:
    await desk.say(text, attachments=IMAGE, quoted=True)
    key = Key.SEND_NOTHING if text == "/send" else Key.CANCEL_NOTHING
    assert await desk.channel.until_sent(1) == [WORDS(key)]


@pytest.mark.parametrize("text", ["/batch", "/send", "/cancel"])
async def test_a_group_has_no_batches(desk: Bench, text: str) -> None:
    await desk.say(text, kind=ChatKind.GROUP)
    assert await desk.channel.until_sent(1) == [WORDS(Key.BATCH_PRIVATE_ONLY)]


async def test_a_batch_does_not_begin_with_a_quote_or_a_file(desk: Bench) -> None:
    await desk.say("/batch", attachments=IMAGE)
    await desk.channel.until_sent(1)
    await desk.say("/batch", quoted=True)
    texts = await desk.channel.until_sent(2)
    assert texts == [WORDS(Key.CHAT_TEXT_ONLY), WORDS(Key.BATCH_PLAIN_ONLY)]
    assert await desk.ask("hello") == "You said: hello"


async def test_a_batch_does_not_begin_while_a_task_runs_or_asks(desk: Bench) -> None:
    await asked(desk, COLOUR)
    assert await desk.ask("/batch") == WORDS(Key.BATCH_BUSY)


@pytest.mark.parametrize(
    ("text", "kwargs", "reply"),
    [
        ("/history", {}, Key.BATCH_COLLECTING),
        ("/history 0", {}, Key.BATCH_COLLECTING),
        ("/help", {}, Key.BATCH_COLLECTING),
        ("/new", {}, Key.BATCH_COLLECTING),
        ("／foo", {}, Key.BATCH_COLLECTING),
        (" /unknown words", {}, Key.BATCH_COLLECTING),
        ("  ", {}, Key.CHAT_EMPTY),
        ("look", {"attachments": IMAGE}, Key.BATCH_PLAIN_ONLY),
        ("look", {"quoted": True}, Key.BATCH_PLAIN_ONLY),
        ("x" * (LONGEST_TEXT + 1), {}, Key.CHAT_TOO_LONG),
        ("/send now", {}, Key.SEND_USAGE),
    ],
)
async def test_what_is_no_plain_text_is_refused_and_not_stored(
    desk: Bench, text: str, kwargs: dict[str, object], reply: Key
) -> None:
    await collected(desk, "one")
    await desk.say(text, **kwargs)  # type: ignore[arg-type]  # a table of keywords
    assert (await desk.channel.until_sent(2))[1] == WORDS(reply)
    assert await desk.ask("/batch") == WORDS(Key.BATCH_PROGRESS, count=1, limit=LIMIT)
    assert desk.host.calls == []


async def test_the_notice_names_both_ways_out() -> None:
    for language in Language:
        assert {"/send", "/cancel"} <= set(Words(language)(Key.BATCH_COLLECTING).replace("；", " ").split())


async def test_ten_are_enough(desk: Bench) -> None:
    await collected(desk, *(f"m{number}" for number in range(LIMIT)))
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.BATCH_FULL)
    assert await desk.ask("one more") == WORDS(Key.BATCH_OVERFULL)
    assert WORDS(Key.STATUS_BATCH, count=LIMIT, limit=LIMIT) not in await desk.ask("/send")
    await desk.channel.until(lambda: any("m9" in text for text in desk.channel.texts))
    assert "one more" not in str(said(desk))


async def test_an_empty_batch_is_not_sent_and_a_cancelled_one_is_gone(desk: Bench) -> None:
    await collected(desk)
    assert await desk.ask("/send") == WORDS(Key.SEND_EMPTY)
    await desk.say("one")
    assert await desk.ask("/cancel") == WORDS(Key.CANCEL_DONE, count=1)
    assert await desk.ask("hello") == "You said: hello"
    assert desk.host.calls != []


async def test_while_it_is_submitted_other_messages_are_what_they_are(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(hold, "done"))
    await collected(desk, "one", "two")
    await desk.say("/send", quoted=True, attachments=IMAGE)
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    for text, key in (
        ("/send", Key.SEND_SUBMITTING),
        ("/cancel", Key.CANCEL_SUBMITTING),
        ("/batch", Key.BATCH_SUBMITTING),
    ):
        assert await desk.ask(text) == WORDS(key)
    assert "one\ntwo" in await desk.ask("/history")
    await desk.say("next")
    hold.set()
    await desk.channel.until(lambda: desk.channel.texts[-2:] == ["done", "You said: next"])


async def test_a_batch_that_failed_is_kept_and_can_be_sent_again(desk: Bench) -> None:
    desk.host.model.script(Step(failure=Failure()))
    await collected(desk, "one", "two")
    await desk.say("/send")
    texts = await desk.channel.until_sent(3)
    assert texts[1] == WORDS(Key.CHAT_TURN_FAILED)
    assert texts[2] == WORDS(Key.BATCH_KEPT, count=2)
    await desk.say("three")
    assert await desk.ask("/batch") == WORDS(Key.BATCH_PROGRESS, count=3, limit=LIMIT)
    await desk.say("/send")
    await desk.channel.until(lambda: "three" in desk.channel.texts[-1])
    assert await desk.ask("/send") == WORDS(Key.SEND_NOTHING)


async def test_a_stopped_batch_is_dropped(desk: Bench) -> None:
    desk.host.model.script(say("part", asyncio.Event()))
    await collected(desk, "one")
    await desk.say("/send")
    await desk.host.until(lambda: any(session.partial for session in desk.host.world.sessions.values()))
    await desk.say("/stop")
    await desk.channel.until(lambda: len(desk.outcomes) == 4)
    assert await desk.ask("/send") == WORDS(Key.SEND_NOTHING)


async def test_a_send_that_is_delivered_twice_sends_once(desk: Bench) -> None:
    await collected(desk, "one")
    first, second = await asyncio.gather(desk.say("/send", event="e"), desk.say("/send", event="e"))
    assert {first, second} == {Acceptance.ACCEPTED, Acceptance.DUPLICATE}
    await desk.channel.until(lambda: "You said: one" in desk.channel.texts)
    assert len(desk.prompts) == 1


async def test_a_text_that_is_delivered_twice_is_collected_once(desk: Bench) -> None:
    await collected(desk)
    await asyncio.gather(desk.say("one", event="e"), desk.say("one", event="e"))
    assert await desk.ask("/batch") == WORDS(Key.BATCH_PROGRESS, count=1, limit=LIMIT)
    await desk.channel.until(lambda: list(desk.outcomes.values()) == [Outcome.OK] * 3)


def test_room_is_bounded_and_the_oldest_batch_gives_way() -> None:
    batches = Batches()
    chats = [ChatKey("test", "bot", str(number)) for number in range(ROOM // OVERHEAD + 1)]
    for chat in chats:
        batches.begin(chat)
    assert batches.stage(chats[0]) is Stage.NONE
    assert batches.stage(chats[-1]) is Stage.COLLECTING
    assert batches.add(chats[-1], "x" * (ROOM - OVERHEAD)) is None
    assert [batches.stage(chat) for chat in chats[-2:]] == [Stage.NONE, Stage.COLLECTING]
    assert batches.drop(chats[-1]) == 1
    assert (batches._size, dict(batches._batches)) == (0, {})
    assert batches.stage(CHAT) is Stage.NONE

"""The order of the one inbound path."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bridges.config import Access
from bridges.intake import COMMANDS_AT_ONCE, LONGEST_TEXT
from bridges.message import Acceptance, EventId, InboundAttachment
from bridges.state import StateError, Trouble
from bridges.welcome import LOOK_SECONDS, WAIT_SECONDS
from commands.model import AttachmentKind, ChatKey, ChatKind, Outcome, SenderId
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import BOT, CHAT, Bench, Setup, bench, eventually
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, say

WORDS = Words(Language.EN)
IMAGE = (InboundAttachment(AttachmentKind.IMAGE, "handle"),)
STRANGER = SenderId("stranger")


async def test_a_stranger_causes_nothing_and_hears_nothing(desk: Bench) -> None:
    desk.access = None
    for text in ("hello", "/history", "/new"):
        assert await desk.say(text, sender=STRANGER, event="same") is Acceptance.DENIED
    assert desk.host.calls == []
    assert desk.channel.sent == []
    assert await desk.state.turns.outstanding(BOT) == ()
    assert await desk.state.claims.claim(BOT, EventId("same")), "a denied message leaves no trace"


async def test_where_the_bot_pairs_a_stranger_gets_one_code(desk: Bench) -> None:
    desk.access = Access(direct="pairing")
    assert await desk.say("hello", sender=STRANGER) is Acceptance.DENIED
    assert await desk.say("hello?", sender=STRANGER) is Acceptance.DENIED
    (pairing,) = await desk.state.pairings.waiting()
    assert desk.channel.texts == [WORDS(Key.CHAT_PAIRING, code=pairing.code)]
    await desk.state.pairings.approve(pairing.code)
    assert await desk.say("/help", sender=STRANGER) is Acceptance.ACCEPTED


@pytest.mark.parametrize("again", [False, True])
async def test_a_stranger_who_is_let_in_is_told_once(host: FakeHarness, tmp_path: Path, *, again: bool) -> None:
    clock = FakeClock()
    async with bench(host, tmp_path, setup=Setup(clock=clock)) as desk:
        desk.access = Access(direct="pairing", owners=frozenset({SenderId("owner")}))
        await desk.say("hello", sender=STRANGER)
        await desk.channel.until_sent(1)
        await clock.advance(60)
        (pairing,) = await desk.state.pairings.waiting()
        if again:
            await desk.say(f"/pair {pairing.code}", sender=SenderId("owner"))
            await desk.channel.until_sent(2)
        else:
            await desk.state.pairings.approve(pairing.code)
        welcome = WORDS(Key.CHAT_LET_IN)
        while welcome not in desk.channel.texts:
            await clock.advance(LOOK_SECONDS)
            await asyncio.sleep(0.005)
        for _ in range(3):
            await clock.advance(LOOK_SECONDS)
        assert desk.channel.texts.count(welcome) == 1
        assert desk.intake._welcomes._waiting == {}


async def test_who_talks_already_or_is_never_let_in_is_told_nothing(host: FakeHarness, tmp_path: Path) -> None:
    clock = FakeClock()
    async with bench(host, tmp_path, setup=Setup(clock=clock)) as desk:
        desk.access = Access(direct="pairing")
        for sender in (STRANGER, SenderId("other")):
            await desk.say("hello", sender=sender)
        await desk.channel.until_sent(2)
        code = next(each.code for each in await desk.state.pairings.waiting() if each.sender == STRANGER)
        await desk.state.pairings.approve(code)
        assert await desk.say("/help", sender=STRANGER) is Acceptance.ACCEPTED
        while desk.intake._welcomes._waiting:
            await clock.advance(WAIT_SECONDS / 10)
            await asyncio.sleep(0.005)
        await eventually(lambda: not desk.intake._welcomes._looking)
        assert WORDS(Key.CHAT_LET_IN) not in desk.channel.texts


async def test_a_group_that_does_not_address_the_bot_is_left_alone(desk: Bench) -> None:
    for text in ("hello", "/history"):
        assert await desk.say(text, kind=ChatKind.GROUP, addressed=False) is Acceptance.IGNORED
    assert await desk.say("/history@OtherBot") is Acceptance.IGNORED
    assert desk.host.calls == []
    assert desk.channel.sent == []


@pytest.mark.parametrize("text", ["hello", "/new", "/help"])
async def test_a_message_delivered_twice_runs_once(desk: Bench, text: str) -> None:
    first, second = await asyncio.gather(desk.say(text, event="e"), desk.say(text, event="e"))
    assert {first, second} == {Acceptance.ACCEPTED, Acceptance.DUPLICATE}
    await desk.channel.until_sent(1)
    assert await desk.say(text, event="e") is Acceptance.DUPLICATE
    assert len(desk.channel.sent) == 1
    assert len(desk.prompts) == (text == "hello")


async def test_no_claim_no_acceptance(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> bool:
        raise StateError(Trouble.FULL, Path("state.db"))

    monkeypatch.setattr(type(desk.state.claims), "claim", full)
    for text in ("hello", "/help"):
        with pytest.raises(OSError, match="full"):
            await desk.say(text)
    assert desk.prompts == []
    monkeypatch.undo()
    for _ in range(COMMANDS_AT_ONCE + 1):
        await desk.ask("/help")


@pytest.mark.parametrize(
    ("text", "kwargs", "reply"),
    [
        ("   ", {}, Key.CHAT_EMPTY),
        ("look", {"attachments": IMAGE}, Key.CHAT_ATTACHMENTS),
        ("", {"attachments": IMAGE}, Key.CHAT_ATTACHMENTS),
        ("x" * (LONGEST_TEXT + 1), {}, Key.CHAT_TOO_LONG),
        ("/history", {"kind": ChatKind.GROUP, "attachments": IMAGE}, Key.HISTORY_PRIVATE_ONLY),
        ("/history 0", {"kind": ChatKind.GROUP}, Key.HISTORY_PRIVATE_ONLY),
        ("/history 0", {"attachments": IMAGE}, Key.HISTORY_USAGE),
        ("/history。", {}, Key.HISTORY_USAGE),
        ("／history", {"attachments": IMAGE}, Key.CHAT_TEXT_ONLY),
        ("/history@thisBOT", {}, Key.HISTORY_UNBOUND),
        ("/new now", {}, Key.NEW_USAGE),
        ("/session", {}, Key.SESSION_USAGE),
        ("/sessions three", {}, Key.SESSIONS_USAGE),
        ("/stop it", {}, Key.STOP_USAGE),
        ("/steer", {}, Key.STEER_USAGE),
        ("/status please", {}, Key.STATUS_USAGE),
    ],
)
async def test_what_is_refused_never_becomes_a_prompt(
    desk: Bench, text: str, kwargs: dict[str, object], reply: Key
) -> None:
    assert await desk.say(text, event="e", **kwargs) is Acceptance.ACCEPTED  # type: ignore[arg-type]  # a table of keywords
    assert await desk.channel.until_sent(1) == [WORDS(reply)]
    await desk.channel.until(lambda: bool(desk.outcomes))
    assert desk.outcomes == {"e": Outcome.REFUSED}
    assert desk.host.calls == []


async def test_who_may_talk_may_still_not_command(desk: Bench) -> None:
    desk.access = Access(direct="open", commands=frozenset())
    assert await desk.ask("/new") == WORDS(Key.CHAT_COMMAND_DENIED)
    assert await desk.ask("hello") == "You said: hello"
    assert len(desk.prompts) == 1


async def test_unknown_slash_text_is_an_ordinary_prompt(desk: Bench) -> None:
    assert await desk.ask("/histories") == "You said: /histories"


async def test_a_command_answers_while_a_turn_runs_and_leaves_it_alone(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say("thinking", hold, " done"))
    await desk.say("hello")
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    for text in ("/history", "/help", "/status", "/sessions"):
        await desk.ask(text)
    assert "hello" in desk.channel.texts[0]
    assert WORDS(Key.HISTORY_RUNNING) in desk.channel.texts[0]
    hold.set()
    assert (await desk.channel.until_sent(5))[4] == "thinking done"
    assert len(desk.prompts) == 1


async def test_what_follows_a_switch_goes_to_the_new_session(desk: Bench) -> None:
    session = desk.host.session(cwd="/elsewhere")
    for text in (f"/session {session.id}", "hello", "/history"):
        await desk.say(text)
    texts = await desk.channel.until_sent(3)
    assert "Switched" in texts[0]
    assert desk.creates == 0
    assert (await desk.state.chats.get(CHAT)).session == SessionId(session.id)
    assert any(text == "You said: hello" for text in texts)


async def test_a_command_that_breaks_ends_in_a_safe_text(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("SECRET")

    monkeypatch.setattr(type(desk.harness), "sessions", broken)
    reply = await desk.ask("/sessions")
    assert "SECRET" not in reply
    assert "Reference H-" in reply
    assert await desk.ask("/help") != reply
    assert Outcome.FAILED in desk.outcomes.values()


async def test_chats_do_not_wait_for_each_other(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(hold, "slow"), prompt="slow")
    other = ChatKey("test", "bot", "2")
    await desk.say("slow")
    await desk.say("fast", chat=other)
    assert await desk.channel.until_sent(1) == ["You said: fast"]
    hold.set()
    await desk.channel.until_sent(2)
    assert [target.chat for target, _ in desk.channel.sent] == [other, CHAT]

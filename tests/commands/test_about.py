"""``/version``, ``/language``, ``/pair``: none of them calls the host."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from bridges.config import Access
from commands.model import ChatKey, ChatKind, Outcome, SenderId
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Bench

EN, ZH = Words(Language.EN), Words(Language.ZH)
OTHER = ChatKey("test", "bot", "2")
OWNER, STRANGER = SenderId("owner"), SenderId("stranger")


async def test_the_version_is_that_of_the_program(desk: Bench) -> None:
    assert await desk.ask("/version") == f"harness-im {version('harness-im')}"
    assert desk.host.calls == []


async def test_a_chat_chooses_its_language_and_no_other_chat_does(desk: Bench) -> None:
    bound = await desk.state.chats.get(CHAT)
    assert await desk.ask("/language zh") == ZH(Key.LANGUAGE_DONE)
    assert await desk.ask("/new x") == ZH(Key.NEW_USAGE)
    await desk.say("/new x", chat=OTHER)
    assert (await desk.channel.until_sent(3))[2] == EN(Key.NEW_USAGE)
    assert await desk.state.chats.get(CHAT) == bound
    assert await desk.ask("/language EN") == EN(Key.LANGUAGE_DONE)
    assert desk.host.calls == []


async def test_what_follows_a_choice_of_language_is_in_it(desk: Bench) -> None:
    for text in ("/language zh", "/help"):
        await desk.say(text)
    assert (await desk.channel.until_sent(2))[1].startswith(ZH(Key.HELP_TITLE))


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        ("/version now", Key.VERSION_USAGE),
        ("/language", Key.LANGUAGE_USAGE),
        ("/language fr", Key.LANGUAGE_USAGE),
        ("/language zh en", Key.LANGUAGE_USAGE),
    ],
)
async def test_usage(desk: Bench, text: str, usage: Key) -> None:
    assert await desk.ask(text) == EN(usage)


async def asked(desk: Bench) -> str:
    """Let a stranger ask to be let in; return the code."""
    desk.access = Access(direct="pairing", owners=frozenset({OWNER}))
    await desk.say("hello", sender=STRANGER, chat=OTHER)
    (pairing,) = await desk.state.pairings.waiting()
    assert await desk.channel.until_sent(1) == [EN(Key.CHAT_PAIRING, code=pairing.code)]
    return pairing.code


async def say_as(desk: Bench, sender: SenderId, text: str) -> str:
    before = len(desk.channel.sent)
    await desk.say(text, sender=sender)
    return (await desk.channel.until_sent(before + 1))[before]


async def test_an_owner_lets_a_stranger_in(desk: Bench) -> None:
    code = await asked(desk)
    assert await say_as(desk, OWNER, f"/pair {code.lower()}") == EN(Key.PAIR_DONE, sender=STRANGER)
    assert await say_as(desk, OWNER, f"/pair {code}") == EN(Key.PAIR_UNKNOWN)
    assert await say_as(desk, STRANGER, "/new") == EN(Key.NEW_DONE)
    assert await say_as(desk, STRANGER, f"/pair {code}") == EN(Key.CHAT_OWNER_ONLY)
    await desk.say("/new", sender=STRANGER, kind=ChatKind.GROUP)
    assert desk.host.calls == []
    assert len(desk.channel.sent) == 5


async def test_nobody_but_an_owner_lets_anybody_in(desk: Bench) -> None:
    code = await asked(desk)
    desk.access = Access(direct="open", owners=frozenset({OWNER}))
    assert await say_as(desk, SenderId("alice"), f"/pair {code}") == EN(Key.CHAT_OWNER_ONLY)
    assert not await desk.state.pairings.admitted(desk.intake._bot.key, STRANGER)
    assert len(await desk.state.pairings.waiting()) == 1


@pytest.mark.parametrize("argument", ["", "two words", "NOT-A-CODE", "配对码"])
async def test_what_is_no_code(desk: Bench, argument: str) -> None:
    assert await say_as(desk, OWNER, f"/pair {argument}") == EN(Key.PAIR_USAGE)
    await desk.channel.until(lambda: bool(desk.outcomes))
    assert set(desk.outcomes.values()) == {Outcome.REFUSED}

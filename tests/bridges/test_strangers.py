"""Whoever may not, cannot: every command, by every name, in every kind of chat, on every kind of channel."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges.config import Access
from bridges.message import Acceptance, InboundAttachment
from commands.catalog import COMMANDS, KNOWN
from commands.model import AttachmentKind, ChatKind, Gate, Outcome, SenderId
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import ALICE, CHAT, Bench, EditingChannel, PlainChannel, StreamingChannel, bench
from tests.fakes.harness import FakeHarness, say

WORDS = Words(Language.EN)
STRANGER, OWNER = SenderId("stranger"), SenderId("owner")
IMAGE = (InboundAttachment(AttachmentKind.IMAGE, "handle"),)
ARGUMENTS = {
    "session": "session-a",
    "workspace": "/srv/b",
    "conv": "/srv/b",
    "model": "deepseek-v4-pro",
    "reasoning": "low",
    "preset": "minimal",
    "steer": "faster",
    "language": "zh",
}
"""What makes a command do something, where it does nothing without."""


class FetchingChannel(EditingChannel):
    """Can do all that a stranger might set off."""

    fetched = 0

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        self.fetched += 1
        return b""


CHANNELS = (PlainChannel, FetchingChannel, StreamingChannel)
DENYING = {
    "no readable policy": None,
    "nobody": Access(direct=frozenset()),
    "others": Access(direct=frozenset({ALICE}), group=frozenset({ALICE}), owners=frozenset({OWNER})),
    "commands for all who are admitted": Access(direct=frozenset({ALICE}), commands="all"),
    "commands by name alone": Access(direct=frozenset({ALICE}), commands=frozenset({STRANGER})),
}


@pytest.fixture(params=CHANNELS)
async def desk(host: FakeHarness, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    """A chat that is bound, on a host with something to list."""
    host.session("session-a")
    host.world.create_workspace("/srv/b")
    async with bench(host, tmp_path, request.param()) as made:
        await made.state.chats.bind(CHAT, SessionId("session-a"), expected=await made.state.chats.get(CHAT))
        yield made


def kept(folder: Path) -> list[str]:
    """Return all that the state holds."""
    with sqlite3.connect(f"file:{folder / 'state.db'}?mode=ro", uri=True) as connection:
        rows = list(connection.iterdump())
    connection.close()
    return rows


async def commands(desk: Bench, gate: Gate | None = None) -> list[str]:
    """Return every command by every name, as messages that would do something; only those behind ``gate`` if given."""
    code = await desk.state.pairings.ask(desk.intake._bot.key, SenderId("somebody"))
    arguments = ARGUMENTS | {"pair": code or ""}
    names = [(alias, name) for alias, name in KNOWN.items() if gate is None or COMMANDS[name].gate is gate]
    return [f"/{alias} {arguments.get(name, '')}".strip() for alias, name in names]


async def everything(desk: Bench) -> list[str]:
    """Return every command, and what is none."""
    return [*await commands(desk), "hello", "yes", "1", "/unknown"]


def untouched(desk: Bench) -> bool:
    """Whether nothing at all happened outside the state."""
    channel = desk.channel
    carriers = channel.streams if isinstance(channel, StreamingChannel) else []
    shown = channel.typed + channel.fetched if isinstance(channel, FetchingChannel) else 0
    return not (channel.sent or carriers or shown or desk.host.calls or desk.outcomes)


@pytest.mark.parametrize("kind", ChatKind)
@pytest.mark.parametrize("policy", DENYING)
async def test_a_stranger_sets_nothing_off(desk: Bench, tmp_path: Path, policy: str, kind: ChatKind) -> None:
    texts = await everything(desk)
    before = kept(tmp_path)
    desk.access = DENYING[policy]
    for text in texts:
        for attachments in ((), IMAGE):
            for sender in (STRANGER, SenderId("")):
                said = await desk.say(text, sender=sender, kind=kind, attachments=attachments)
                assert said is Acceptance.DENIED, text
    assert untouched(desk)
    assert kept(tmp_path) == before


async def test_a_stranger_where_the_bot_pairs_gets_one_code_and_nothing_else(desk: Bench, tmp_path: Path) -> None:
    texts = await everything(desk)
    desk.access = Access()
    for text in texts:
        assert await desk.say(text, sender=STRANGER, kind=ChatKind.GROUP) is Acceptance.DENIED
    assert untouched(desk)
    before = kept(tmp_path)
    for text in texts:
        assert await desk.say(text, sender=STRANGER, attachments=IMAGE) is Acceptance.DENIED
    codes = [pairing.code for pairing in await desk.state.pairings.waiting() if pairing.sender == STRANGER]
    assert await desk.channel.until_sent(1) == [WORDS(Key.CHAT_PAIRING, code=code) for code in codes]
    assert desk.host.calls == []
    added = set(kept(tmp_path)) - set(before)
    assert len(added) == 1
    assert "pairing_code" in added.pop()


@pytest.mark.parametrize("kind", ChatKind)
async def test_who_may_talk_only_reads_one_notice_for_each_command(desk: Bench, tmp_path: Path, kind: ChatKind) -> None:
    texts = await commands(desk)
    before = [row for row in kept(tmp_path) if not row.startswith('INSERT INTO "claim"')]
    desk.access = Access(direct="open", group="open", commands=frozenset({ALICE}))
    for number, text in enumerate(texts):
        for acceptance in (Acceptance.ACCEPTED, Acceptance.DUPLICATE):
            assert await desk.say(text, sender=STRANGER, kind=kind, event=f"e{number}") is acceptance
    await desk.channel.until(lambda: len(desk.outcomes) == len(texts))
    assert desk.channel.texts == [WORDS(Key.CHAT_COMMAND_DENIED)] * len(texts)
    assert set(desk.outcomes.values()) == {Outcome.REFUSED}
    assert desk.host.calls == []
    assert [row for row in kept(tmp_path) if not row.startswith('INSERT INTO "claim"')] == before


async def test_what_is_for_owners_does_nothing_for_others(desk: Bench) -> None:
    texts = await commands(desk, Gate.OWNER)
    assert texts
    for text in texts:
        assert await desk.ask(text) == WORDS(Key.CHAT_OWNER_ONLY)
    assert len(await desk.state.pairings.waiting()) == 1
    assert desk.host.calls == []


async def test_the_same_messages_of_an_owner_are_answered(desk: Bench) -> None:
    texts = await everything(desk)
    for number, text in enumerate(texts, 1):
        assert await desk.say(text, sender=OWNER) is Acceptance.ACCEPTED
        await desk.channel.until(lambda number=number: len(desk.outcomes) == number)  # type: ignore[misc]  # a default
    assert desk.host.writes
    assert await desk.state.pairings.waiting() == ()


@pytest.mark.parametrize("text", ["/stop", "/steer faster", "/new", "/session session-a", "/workspace /srv/b"])
async def test_a_member_without_command_rights_leaves_anothers_turn_alone(desk: Bench, text: str) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(hold, "done"))
    desk.access = Access(group="open", commands=frozenset({ALICE}))
    await desk.say("hello", kind=ChatKind.GROUP)
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    before = await desk.state.chats.get(CHAT)
    await desk.say(text, sender=STRANGER, kind=ChatKind.GROUP, event="theirs")
    await desk.channel.until(lambda: "theirs" in desk.outcomes)
    assert await desk.state.chats.get(CHAT) == before
    hold.set()
    await desk.channel.until(lambda: len(desk.outcomes) == 2)
    assert len(desk.prompts) == 1
    assert "done" in str(list(desk.host.world.sessions["session-a"].log))


async def test_a_change_of_policy_counts_from_the_next_message_and_stops_no_turn(desk: Bench) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say(hold, "done"))
    await desk.say("hello", event="running")
    await desk.host.until(lambda: any(session.running for session in desk.host.world.sessions.values()))
    desk.access = Access(direct=frozenset({OWNER}))
    assert await desk.say("and then?") is Acceptance.DENIED
    assert await desk.say("/stop") is Acceptance.DENIED
    hold.set()
    await desk.channel.until(lambda: desk.outcomes.get("running") is Outcome.OK)
    desk.access = Access(direct=frozenset({ALICE}))
    assert await desk.say("/help") is Acceptance.ACCEPTED

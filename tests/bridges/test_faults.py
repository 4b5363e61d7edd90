"""What goes wrong beside the conversation: the host, its logins and links, the disk. Answers go on, once each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridges import turn_ends
from bridges.message import Acceptance
from bridges.state import StateError, Trouble, Turn
from bridges.state.sqlite import SqliteClaims
from bridges.state.turns import SqliteTurns
from commands.model import ChatKey, Outcome
from harness_client.types import Generation
from i18n import Key, Language, Words
from tests.bridges.bench import BOT, CHAT, Bench, EditingChannel, Setup, bench, eventually
from tests.bridges.test_control import told
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, How, say

WORDS = Words(Language.EN)
OTHER = ChatKey("test", "bot", "2")


async def half_said(desk: Bench) -> asyncio.Event:
    """Start a turn that has said the first half of its answer."""
    hold = asyncio.Event()
    desk.host.model.script(say("half ", hold, "and half"))
    await desk.say("hello")
    await eventually(lambda: read(desk) == "half ")
    return hold


def read(desk: Bench) -> str:
    """Return what the bot has read of the answer so far."""
    chat = desk.intake.conversations._chats.get(CHAT)
    run = chat.running if chat else None
    return run._reader.text() if run else ""


def answers(desk: Bench) -> list[str]:
    return [text for text in desk.channel.texts if "half" in text]


# -- the host ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 5])
async def test_a_cut_link_loses_and_doubles_nothing(host: FakeHarness, tmp_path: Path, times: int) -> None:
    channel = EditingChannel()
    async with bench(host, tmp_path, channel) as desk:
        hold = await half_said(desk)
        for _ in range(times):
            await channel.until(lambda: channel.texts == ["half "])
            seen = len(host.calls)
            host.cut()
            await eventually(lambda: len(host.calls) > seen)  # noqa: B023 - awaited within the round
        hold.set()
        await channel.until(lambda: bool(desk.outcomes), 20)
        assert channel.texts == ["half and half"]
        assert len(desk.prompts) == 1


@pytest.mark.parametrize("call", ["prompt", "follow"])
async def test_a_host_that_stumbles_over_a_request_goes_on_with_the_answer(desk: Bench, call: str) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say("half ", hold, "and half"))
    if call == "prompt":
        desk.fail("prompt", status=500, effect=True, times=1)
        await desk.say("hello")
    else:
        await desk.say("hello")
        await eventually(lambda: read(desk) == "half ")
        fault = desk.host.fail("*", status=500, times=2)
        desk.host.cut()
        await eventually(lambda: fault.met == 2)
    hold.set()
    await desk.channel.until(lambda: bool(desk.outcomes), 20)
    assert desk.channel.texts == ["half and half"]
    assert len(desk.prompts) == 1


async def test_a_host_that_restarts_tells_the_end_and_goes_on(desk: Bench) -> None:
    await half_said(desk)
    await desk.host.restart()
    await desk.channel.until(lambda: bool(desk.outcomes), 20)
    assert [text.endswith(WORDS(Key.CHAT_INTERRUPTED)) for text in desk.channel.texts] == [True]
    assert len(desk.prompts) == 1
    assert await desk.ask("again") == "You said: again"


@pytest.mark.parametrize("host", [Generation.MODERN], indirect=True)
async def test_a_login_that_goes_stale_is_renewed_once(desk: Bench) -> None:
    assert await desk.ask("first") == "You said: first"
    logins = sum(call.name == "login" for call in desk.host.calls)
    desk.host.fail("session/prompt", status=401, times=1)
    assert await desk.ask("second") == "You said: second"
    assert told(desk) == ["first", "second"]
    assert sum(call.name == "login" for call in desk.host.calls) == logins + 1


@pytest.mark.parametrize("host", [Generation.MODERN], indirect=True)
async def test_a_login_that_is_refused_is_told_and_not_tried_for_ever(desk: Bench) -> None:
    assert await desk.ask("first") == "You said: first"
    logins = sum(call.name == "login" for call in desk.host.calls)
    for name in ("session/prompt", "login"):
        desk.host.fail(name, status=401)
    assert (await desk.ask("second")).startswith("The Harness refused the login")
    assert sum(call.name == "login" for call in desk.host.calls) <= logins + 2
    desk.host.heal()
    assert await desk.ask("third") == "You said: third"
    assert told(desk) == ["first", "third"]


async def test_a_slow_host_holds_up_its_own_chat_only(desk: Bench) -> None:
    slow = asyncio.Event()
    desk.fail("prompt", delay=slow, times=1)
    await desk.say("first")
    await eventually(lambda: len(desk.prompts) == 1)
    assert (await desk.ask("/help")) != ""
    await desk.say("second", chat=OTHER)
    await desk.channel.until(lambda: "You said: second" in desk.channel.texts)
    slow.set()
    await desk.channel.until(lambda: "You said: first" in desk.channel.texts)
    assert len(desk.prompts) == 2


@pytest.mark.parametrize("away", [How(drop="before"), How(status=500), How(status=503)], ids=str)
async def test_a_host_that_stays_away_ends_the_wait_and_its_answer_follows(
    host: FakeHarness, tmp_path: Path, away: How
) -> None:
    clock = FakeClock()
    async with bench(host, tmp_path, setup=Setup(clock=clock)) as desk:
        hold = await half_said(desk)
        host.fail("*", **away)
        host.cut()
        while not desk.channel.sent:
            await clock.advance(5)
            await asyncio.sleep(0.005)
        (text,) = desk.channel.texts
        assert "half" in text
        assert "/history" in text
        host.heal()
        hold.set()
        while len(desk.channel.sent) < 2:
            await clock.advance(5)
            await asyncio.sleep(0.005)
        assert desk.channel.texts[1] == WORDS(Key.CHAT_LATE, text="half and half")
        assert len(desk.prompts) == 1
        await eventually(desk.nothing_outstanding)


# -- the disk ----------------------------------------------------------------------------------------------------------


@contextmanager
def full_disk(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no write of the state succeed."""

    async def full(*_: object, **__: object) -> None:
        raise StateError(Trouble.FULL, Path("state.db"))

    with patch.context() as broken:
        broken.setattr(SqliteClaims, "claim", full)
        for name in ("save", "end"):
            broken.setattr(SqliteTurns, name, full)
        yield


async def test_a_full_disk_is_told_once_and_nothing_is_doubled_after_it(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_ends, "RETRY_SECONDS", 0.02)
    hold = await half_said(desk)
    with full_disk(monkeypatch):
        for _ in range(3):  # a platform delivers again what was not acknowledged
            with pytest.raises(StateError):
                await desk.say("next", event="next")
        hold.set()
        await desk.channel.until(lambda: answers(desk) == ["half and half"])
        await desk.channel.until(lambda: desk.channel.texts.count(WORDS(Key.CHAT_NOT_STORED)) == 1)
        (outstanding,) = await desk.state.turns.outstanding(BOT)
        assert outstanding.chat == CHAT
    await eventually(desk.nothing_outstanding)
    assert await desk.say("next", event="next") is Acceptance.ACCEPTED
    await desk.channel.until(lambda: "You said: next" in desk.channel.texts)
    assert told(desk) == ["hello", "next"]
    await eventually(desk.nothing_outstanding)
    await desk.intake.inherit()
    desk.intake.connected()
    assert await desk.ask("last") == "You said: last"
    assert answers(desk) == ["half and half"], "a restart finds nothing to deliver"
    assert desk.channel.texts.count(WORDS(Key.CHAT_NOT_STORED)) == 1


async def test_each_chat_hears_of_a_full_disk_once_and_of_the_next_one_again(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for round_ in (1, 2):
        with full_disk(monkeypatch):
            for chat in (CHAT, OTHER, CHAT):
                with pytest.raises(StateError):
                    await desk.say("hello", chat=chat)
            await desk.channel.until(lambda: desk.channel.texts.count(WORDS(Key.CHAT_NOT_STORED)) == 2 * round_)  # noqa: B023 - awaited within the round
        await desk.ask("/help")
    assert desk.prompts == []


async def test_an_end_that_could_not_be_written_is_written_when_there_is_room(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_ends, "RETRY_SECONDS", 0.02)
    real, left = SqliteTurns.end, 3

    async def scarce(turns: SqliteTurns, turn: Turn) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise StateError(Trouble.FULL, Path("state.db"))
        await real(turns, turn)

    monkeypatch.setattr(SqliteTurns, "end", scarce)
    assert await desk.ask("hello") == "You said: hello"
    await eventually(desk.nothing_outstanding)
    assert desk.intake.conversations.ends._waiting == {}
    assert left < 0
    await desk.channel.until(lambda: list(desk.outcomes.values()) == [Outcome.OK])

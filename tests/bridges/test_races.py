"""What moves a chat while something of it is on its way: switches during a create, a prompt, a read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.model import ChatKey
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import BOT, CHAT, Bench, eventually
from tests.fakes.harness import say

WORDS = Words(Language.EN)
OTHER = ChatKey("test", "bot", "2")
FOLLOWS = ("session.history", "session/follow")
READS = ("session.history", "session/page")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    made = tmp_path / "code"
    made.mkdir()
    return str(made)


def called(desk: Bench, names: tuple[str, ...], times: int = 1) -> Callable[[], bool]:
    return lambda: sum(call.name in names for call in desk.host.calls) >= times


def hold(desk: Bench, names: tuple[str, ...]) -> asyncio.Event:
    """Let the next call of one of these names wait for the event."""
    go = asyncio.Event()
    for name in names:
        desk.host.fail(name, delay=go, times=1)
    return go


def prompted(desk: Bench) -> dict[str, list[str]]:
    """Return the folder of each session that was prompted, with what it was told."""
    found: dict[str, list[str]] = {}
    for session in desk.host.world.sessions.values():
        said = [str(event["data"]) for event in session.log if event["type"] == "user/message"]
        for words in ("first", "second"):
            if any(words in each for each in said):
                found.setdefault(session.cwd, []).append(words)
    return found


async def bound(desk: Bench, chat: ChatKey = CHAT) -> str:
    session = desk.host.session()
    await desk.state.chats.bind(chat, SessionId(session.id), expected=await desk.state.chats.get(chat))
    return session.id


@pytest.mark.parametrize("asker", [CHAT, OTHER])
async def test_a_switch_while_the_session_is_made_runs_the_message_in_the_new_workspace(
    desk: Bench, folder: str, asker: ChatKey
) -> None:
    go = hold(desk, ("session.create", "session/create"))
    await desk.say("first")
    await eventually(desk.created)
    await desk.say(f"/workspace {folder}", chat=asker)
    await desk.channel.until_sent(1)
    go.set()
    assert (await desk.channel.until_sent(2))[1] == "You said: first"
    assert prompted(desk) == {folder: ["first"]}
    assert len(desk.prompts) == 1
    session = (await desk.state.chats.get(CHAT)).session
    assert session is not None
    assert desk.host.world.sessions[session].cwd == folder


@pytest.mark.parametrize("alone", [False, True])
async def test_a_switch_just_before_the_prompt_takes_the_message_along(
    desk: Bench, folder: str, *, alone: bool
) -> None:
    await bound(desk)
    go = hold(desk, FOLLOWS)
    await desk.say("first")
    await eventually(called(desk, FOLLOWS))
    if alone:
        await desk.state.chats.pin_workspace(CHAT, folder)
    else:
        await desk.state.bots.switch_workspace(BOT, folder)
    go.set()
    assert await desk.channel.until_sent(1) == ["You said: first"]
    assert prompted(desk) == {folder: ["first"]}
    assert len(desk.prompts) == 1


async def test_a_switch_while_the_prompt_is_on_its_way_leaves_that_one_where_it_went(desk: Bench, folder: str) -> None:
    await bound(desk)
    go = hold(desk, ("session.prompt", "session/prompt"))
    await desk.say("first")
    await eventually(lambda: bool(desk.prompts))
    await desk.say(f"/workspace {folder}")
    await desk.say("second")
    await desk.channel.until_sent(1)
    go.set()
    assert (await desk.channel.until_sent(3))[1:] == ["You said: first", "You said: second"]
    assert prompted(desk) == {desk.host.world.cwd: ["first"], folder: ["second"]}
    assert len(desk.prompts) == 2


async def test_a_switch_while_the_answer_grows_leaves_the_turn_alone(desk: Bench, folder: str) -> None:
    await bound(desk)
    rest = asyncio.Event()
    desk.host.model.script(say("half", rest, " and half"))
    await desk.say("first")
    await desk.host.until(lambda: any(session.partial for session in desk.host.world.sessions.values()))
    await desk.say(f"/conv {folder}")
    await desk.say("second")
    await desk.channel.until_sent(1)
    rest.set()
    assert (await desk.channel.until_sent(3))[1:] == ["half and half", "You said: second"]
    assert prompted(desk) == {desk.host.world.cwd: ["first"], folder: ["second"]}


@pytest.mark.parametrize(
    ("move", "chat"),
    [
        ("/workspace {folder}", CHAT),
        ("/workspace {folder}", OTHER),
        ("/conv {folder}", CHAT),
        ("/new", CHAT),
        ("/session {session}", CHAT),
    ],
)
async def test_history_that_was_being_read_during_a_move_is_dropped(
    desk: Bench, folder: str, move: str, chat: ChatKey
) -> None:
    await desk.ask("first")
    session = (await desk.state.chats.get(CHAT)).session
    go = hold(desk, READS)
    before = len(desk.host.calls)
    await desk.say("/history")
    await eventually(lambda: any(call.name in READS for call in desk.host.calls[before:]))
    await desk.say(move.format(folder=folder, session=session), chat=chat)
    await desk.channel.until_sent(2)
    go.set()
    assert (await desk.channel.until_sent(3))[2] == WORDS(Key.HISTORY_CHANGED)


@pytest.mark.parametrize("move", ["/workspaces", "/sessions", "/language en", "/preset minimal", "/models", "/status"])
async def test_history_is_not_disturbed_by_what_moves_nothing(desk: Bench, move: str) -> None:
    await desk.ask("first")
    go = hold(desk, READS)
    before = len(desk.host.calls)
    await desk.say("/history")
    await eventually(lambda: any(call.name in READS for call in desk.host.calls[before:]))
    await desk.say(move)
    await desk.channel.until_sent(2)
    go.set()
    assert "first" in (await desk.channel.until_sent(3))[2]


async def test_there_and_back_while_history_is_read_counts_as_a_move(desk: Bench) -> None:
    await desk.ask("first")
    session = (await desk.state.chats.get(CHAT)).session
    go = hold(desk, READS)
    before = len(desk.host.calls)
    await desk.say("/history")
    await eventually(lambda: any(call.name in READS for call in desk.host.calls[before:]))
    await desk.say("/new")
    await desk.say(f"/session {session}")
    await desk.channel.until_sent(3)
    assert (await desk.state.chats.get(CHAT)).session == session
    go.set()
    assert (await desk.channel.until_sent(4))[3] == WORDS(Key.HISTORY_CHANGED)


async def test_two_switches_at_once_end_in_one_of_the_two(desk: Bench, tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("one", "two")]
    for each in folders:
        Path(each).mkdir()
    await asyncio.gather(
        *(desk.say(f"/workspace {each}", chat=chat) for each, chat in zip(folders, (CHAT, OTHER), strict=True))
    )
    await desk.channel.until_sent(2)
    await asyncio.gather(desk.say("first"), desk.say("second", chat=OTHER))
    await desk.channel.until_sent(4)
    (where,) = prompted(desk)
    assert where in folders
    assert (await desk.state.chats.get(CHAT)).generation == 2


async def test_a_bind_that_meets_another_binds_nothing(desk: Bench) -> None:
    one, two = desk.host.session().id, desk.host.session().id
    go = hold(desk, ("session.list", "session/list"))
    await desk.say(f"/session {one}")
    await eventually(called(desk, ("session.list", "session/list")))
    await desk.state.chats.bind(CHAT, SessionId(two), expected=await desk.state.chats.get(CHAT))
    go.set()
    assert await desk.channel.until_sent(1) == [WORDS(Key.SESSION_MOVED)]
    assert (await desk.state.chats.get(CHAT)).session == two

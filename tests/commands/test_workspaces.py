"""``/workspaces``, ``/workspace``, ``/conv``: through the whole path, on both host generations."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.folders import same, tidy
from commands.model import ChatKey, Outcome
from commands.workspaces import is_choice, is_pin
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import BOT, CHAT, Bench

WORDS = Words(Language.EN)
OTHER = ChatKey("test", "bot", "2")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder that exists and that the host has never heard of."""
    made = tmp_path / "code"
    made.mkdir()
    return str(made)


async def bound(desk: Bench, *chats: ChatKey) -> None:
    for chat in chats:
        session = desk.host.session()
        await desk.state.chats.bind(chat, SessionId(session.id), expected=await desk.state.chats.get(chat))


async def folders(desk: Bench) -> list[str]:
    """Return the folders of ``/workspaces``, in their order."""
    lines = (await desk.ask("/workspaces")).splitlines()
    return [line.partition(". ")[2] for line in lines if line[:1].isdigit()]


async def test_the_list_begins_with_the_current_workspace_and_names_each_once(desk: Bench) -> None:
    world = desk.host.world
    for path in ("/srv/b", f"{world.cwd}/", "/srv/a"):
        world.create_workspace(path)
    assert await folders(desk) == [f"{world.cwd} · {WORDS(Key.WORKSPACES_CURRENT)}", "/srv/a", "/srv/b"]
    assert desk.host.writes == []


async def test_a_host_without_a_register_shows_where_its_sessions_work(desk: Bench) -> None:
    desk.host.fail("workspace.list", status=404)
    desk.host.fail("workspace/follow", error={"code": "gateway/invocation-unavailable", "message": "", "details": {}})
    desk.host.session(cwd="/srv/a")
    desk.host.session("sub", cwd="/srv/hidden", parent="p", origin="subagent")
    assert (await folders(desk))[1:] == ["/srv/a"]
    assert await desk.ask("/workspace 2") == WORDS(Key.WORKSPACE_DONE, folder="/srv/a")


async def test_a_host_that_registers_no_folders_is_given_one_that_exists(desk: Bench, folder: str) -> None:
    for name in ("workspace.create", "workspace/create"):
        desk.host.fail(name, status=404)
    assert await desk.ask(f"/conv {folder}") == WORDS(Key.CONV_DONE, folder=folder)


async def test_a_folder_that_the_host_refuses_changes_nothing(desk: Bench, folder: str) -> None:
    for name in ("workspace.create", "workspace/create"):
        desk.host.fail(name, error={"code": "internal", "message": "SECRET", "details": {}})
    reply = await desk.ask(f"/workspace {folder}")
    assert "Reference H-" in reply
    assert "SECRET" not in reply
    assert await desk.state.bots.workspace(BOT) is None


async def test_a_switch_unbinds_all_chats_of_the_bot_and_moves_their_generation(desk: Bench, folder: str) -> None:
    await bound(desk, CHAT, OTHER)
    before = [await desk.state.chats.get(chat) for chat in (CHAT, OTHER)]
    assert await desk.ask(f"/workspace {folder}/") == WORDS(Key.WORKSPACE_DONE, folder=folder)
    for old, chat in zip(before, (CHAT, OTHER), strict=True):
        new = await desk.state.chats.get(chat)
        assert (new.session, new.generation, new.version) == (None, old.generation + 1, old.version + 1)
    await desk.ask("hello")
    session = (await desk.state.chats.get(CHAT)).session
    assert session is not None
    assert desk.host.world.sessions[session].cwd == folder
    assert (await folders(desk))[0].startswith(folder)


async def test_a_number_means_the_folder_that_was_shown(desk: Bench) -> None:
    desk.host.world.create_workspace("/srv/a")
    assert await desk.ask("/workspace 2") == WORDS(Key.LIST_NONE, number="2", command="/workspaces")
    await desk.ask("/workspaces")
    desk.host.world.create_workspace("/srv/b")
    assert await desk.ask("/ws 2") == WORDS(Key.WORKSPACE_DONE, folder="/srv/a")
    assert await desk.ask("/workspace 3") == WORDS(Key.LIST_NO_NUMBER, number="3", command="/workspaces")


async def test_the_workspace_the_bot_is_in_already_costs_nobody_a_session(desk: Bench) -> None:
    await bound(desk, CHAT)
    before = await desk.state.chats.get(CHAT)
    here = desk.host.world.cwd
    desk.host.world.create_workspace(here)
    assert await desk.ask(f"/workspace {here}") == WORDS(Key.WORKSPACE_SAME, folder=here)
    assert await desk.state.chats.get(CHAT) == before


@pytest.mark.parametrize("command", ["workspace", "conv"])
async def test_a_folder_that_is_not_there_is_refused_and_not_made(desk: Bench, tmp_path: Path, command: str) -> None:
    await bound(desk, CHAT)
    before = await desk.state.chats.get(CHAT)
    missing = tmp_path / "missing"
    assert await desk.ask(f"/{command} {missing}") == WORDS(Key.WORKSPACE_NO_FOLDER, folder=str(missing))
    assert not missing.exists()
    assert desk.host.world.workspaces == {}
    assert await desk.state.chats.get(CHAT) == before


async def test_a_pin_moves_this_chat_alone(desk: Bench, folder: str) -> None:
    await bound(desk, CHAT, OTHER)
    mine, other = await desk.state.chats.get(CHAT), await desk.state.chats.get(OTHER)
    here = desk.host.world.cwd
    assert await desk.ask("/conv") == WORDS(Key.CONV_DEFAULT, folder=here)
    assert await desk.ask(f"/conv {folder}") == WORDS(Key.CONV_DONE, folder=folder)
    assert await desk.state.chats.get(OTHER) == other
    pinned = await desk.state.chats.get(CHAT)
    assert (pinned.session, pinned.version, pinned.generation) == (None, mine.version + 1, mine.generation)
    assert await desk.ask("/thread") == WORDS(Key.CONV_PINNED, folder=folder)
    assert await desk.ask(f"/conversation {folder}") == WORDS(Key.CONV_SAME, folder=folder)
    await desk.ask("hello")
    session = (await desk.state.chats.get(CHAT)).session
    assert session is not None
    assert desk.host.world.sessions[session].cwd == folder
    assert await desk.ask("/conv clear") == WORDS(Key.CONV_CLEARED, folder=here)
    assert (await desk.state.chats.get(CHAT)).session is None
    assert await desk.ask("/conv CLEAR") == WORDS(Key.CONV_NO_PIN, folder=here)


async def test_a_switch_takes_the_pin_of_the_chat_that_asks_and_no_other(desk: Bench, folder: str) -> None:
    here = desk.host.world.cwd
    for chat in (CHAT, OTHER):
        await desk.state.chats.pin_workspace(chat, "/srv/pinned")
    assert WORDS(Key.WORKSPACES_PINNED) in (await folders(desk))[0]
    await desk.ask(f"/workspace {folder}")
    assert await desk.ask("/conv") == WORDS(Key.CONV_DEFAULT, folder=folder)
    await desk.say("/conv", chat=OTHER)
    assert (await desk.channel.until_sent(4))[3] == WORDS(Key.CONV_PINNED, folder="/srv/pinned")
    assert await desk.state.bots.workspace(BOT) == folder != here


@pytest.mark.parametrize("text", ["/workspaces", "/workspace /srv/a", "/conv /srv/a"])
async def test_a_host_that_fails_changes_nothing(desk: Bench, text: str) -> None:
    await bound(desk, CHAT)
    before = await desk.state.chats.get(CHAT)
    await desk.host.stop()
    assert "Reference H-" in await desk.ask(text)
    await desk.channel.until(lambda: bool(desk.outcomes))
    assert list(desk.outcomes.values()) == [Outcome.FAILED]
    assert await desk.state.chats.get(CHAT) == before


async def test_a_list_without_end_is_bounded(desk: Bench) -> None:
    for number in range(70):
        desk.host.world.create_workspace(f"/srv/{number:03}")
    reply = await desk.ask("/workspaces")
    assert reply.splitlines()[0] == WORDS(Key.WORKSPACES_HEADER, total=71)
    assert "50. " in reply
    assert "51. " not in reply


@pytest.mark.parametrize(
    ("argument", "choice", "pin"),
    [("1", True, True), ("/srv/a b", True, True), (r"C:\code", True, True), ("", False, True), ("clear", False, True),
     ("srv", False, False), ("~", False, False), ("-1", False, False), ("３", False, False),
     ("/srv/\u202ea", False, False), ("/" + "a" * 1_024, False, False)],
)  # fmt: skip
def test_what_names_a_folder(argument: str, *, choice: bool, pin: bool) -> None:
    assert is_choice(argument) is choice
    assert is_pin(argument) is pin


@pytest.mark.parametrize(
    ("path", "spelled"),
    [("/srv/a/", "/srv/a"), ("/srv//a/./b", "/srv/a/b"), ("//srv/a", "/srv/a"), ("/", "/"), ("/srv/a/..", "/srv/a/.."),
     ("C:/code/", r"C:\code")],
)  # fmt: skip
def test_spellings_of_a_folder(path: str, spelled: str) -> None:
    assert tidy(path) == spelled
    assert same(path, spelled)
    assert not same(path, "/elsewhere")

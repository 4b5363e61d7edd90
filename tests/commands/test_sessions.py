"""``/new``, ``/sessions``, ``/session``, ``/status``: through the whole path, on both host generations."""

from __future__ import annotations

import asyncio
import time

import pytest

from commands.budget import LIMITS, utf16_length
from commands.model import ChatKey, Listing, Outcome, ShownLists
from commands.sessions import Asked, is_session_id, parse_asked
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Bench, eventually
from tests.fakes.harness import say

WORDS = Words(Language.EN)


async def test_the_list_is_numbered_and_newest_first_without_subagents(desk: Bench) -> None:
    old = desk.host.session("session-old")
    new = desk.host.session("session-new")
    desk.host.session("sub", parent="session-new", origin="subagent")
    old.rename("The\nold \x1b[31mone\u202e")
    new.rename("x" * 200)
    old.updated_at, new.updated_at = 1_000, 2_000
    lines = (await desk.ask("/sessions")).splitlines()
    assert lines[0] == WORDS(Key.SESSIONS_HEADER, total=2)
    assert lines[1].startswith("1. " + "x" * 59 + "…")
    assert lines[2].strip() == "session-new"
    assert lines[3].startswith("2. The old [31mone ·")
    assert lines[-1] == WORDS(Key.SESSIONS_FOOTER)
    assert [call.name for call in desk.host.writes] == []


async def test_the_list_is_bounded_and_cut_into_segments(desk: Bench) -> None:
    for number in range(70):
        desk.host.session(f"session-{number:03}-{'i' * 40}")
    await desk.say("/sessions --limit 60")
    await desk.channel.until(lambda: bool(desk.outcomes))
    text = "".join(desk.channel.texts)
    assert WORDS(Key.SESSIONS_HEADER, total=70) in text
    assert "50. " in text
    assert "51. " not in text
    assert all(utf16_length(segment) <= LIMITS.segment for segment in desk.channel.texts)


async def test_a_number_means_what_was_shown_and_a_list_that_changed_since_is_told(desk: Bench) -> None:
    desk.host.session("session-a")
    changed = WORDS(Key.SESSION_RENUMBERED, number="1")
    await desk.ask("/sessions")
    assert changed not in await desk.ask("/session 1")
    desk.host.session("session-b")
    reply = await desk.ask("/session 1")
    assert "session-a" in reply
    assert changed in reply
    assert (await desk.state.chats.get(CHAT)).session == "session-a"


async def test_the_list_of_one_workspace(desk: Bench) -> None:
    desk.host.session("session-a", cwd="/srv/a")
    desk.host.session("session-b", cwd="/srv/b")
    every = await desk.ask("/sessions")
    assert "/srv/a" in every
    assert "/srv/b" in every
    one = await desk.ask("/sessions /srv/a/")
    assert one.splitlines()[0] == WORDS(Key.SESSIONS_HEADER_IN, folder="/srv/a/", total=1)
    assert "session-b" not in one
    desk.host.session("session-c", cwd="/srv/b")
    assert WORDS(Key.SESSION_RENUMBERED, number="1") not in await desk.ask("/session 1")
    assert (await desk.state.chats.get(CHAT)).session == "session-a"
    assert await desk.ask("/sessions /srv/c") == WORDS(Key.SESSIONS_NONE_IN, folder="/srv/c")
    assert await desk.ask("/sessions 1") == WORDS(Key.LIST_NONE, number="1", command="/workspaces")
    listed = await desk.ask("/workspaces")
    number = next(line.split(".")[0] for line in listed.splitlines() if desk.host.world.cwd in line)
    assert await desk.ask(f"/sessions {number}") == WORDS(Key.SESSIONS_NONE_IN, folder=desk.host.world.cwd)


async def test_an_archived_session_is_marked_and_can_be_bound(desk: Bench) -> None:
    desk.host.session("session-a")
    desk.host.world.archived.append("session-a")
    assert WORDS(Key.SESSIONS_ARCHIVED) in await desk.ask("/sessions")
    assert "session-a" in await desk.ask("/session 1")
    assert desk.host.world.archived == ["session-a"]


async def test_a_host_without_workspaces_lists_its_sessions_all_the_same(desk: Bench) -> None:
    desk.host.session("session-a")
    desk.host.fail("workspace.list", status=404)
    desk.host.fail("workspace/follow", error={"code": "gateway/invocation-unavailable", "message": "", "details": {}})
    assert "session-a" in await desk.ask("/sessions")


async def test_a_session_of_another_workspace_moves_neither_bot_nor_chat(desk: Bench) -> None:
    desk.host.session("session-a", cwd="/srv/a")
    before = await desk.state.chats.get(CHAT)
    reply = await desk.ask("/session session-a")
    assert WORDS(Key.SESSION_ELSEWHERE, folder=desk.host.world.cwd) in reply
    after = await desk.state.chats.get(CHAT)
    assert (after.version, after.generation) == (before.version + 1, before.generation)
    await desk.ask("/new")
    await desk.ask("hello")
    assert {session.cwd for session in desk.host.world.sessions.values()} == {"/srv/a", desk.host.world.cwd}


async def test_a_number_whose_session_is_gone_binds_nothing(desk: Bench) -> None:
    desk.host.session("session-a")
    desk.host.session("session-b")
    await desk.ask("/sessions")
    del desk.host.world.sessions["session-b"]
    before = await desk.state.chats.get(CHAT)
    assert await desk.ask("/session 1") == WORDS(Key.LIST_CHANGED, command="/sessions")
    assert await desk.state.chats.get(CHAT) == before


async def test_a_list_belongs_to_the_chat_that_saw_it(desk: Bench) -> None:
    desk.host.session("session-a")
    await desk.ask("/sessions")
    await desk.say("/session 1", chat=ChatKey("test", "bot", "2"))
    assert (await desk.channel.until_sent(2))[1] == WORDS(Key.LIST_NONE, number="1", command="/sessions")


async def test_a_bind_says_what_is_bound_and_points_to_history(desk: Bench) -> None:
    desk.host.session("session-a", cwd="/srv/a").rename("Login")
    reply = await desk.ask("/session session-a")
    for part in ("Login", "/srv/a", "session-a", "/history"):
        assert part in reply
    assert Words(Language.ZH)(Key.SESSION_TRY_HISTORY) == "发送 /history 查看最近对话"
    assert "current" in await desk.ask("/sessions")


async def test_a_subagents_session_is_not_bound(desk: Bench) -> None:
    desk.host.session("session-a")
    desk.host.session("sub", parent="session-a", origin="subagent")
    assert await desk.ask("/session sub") == WORDS(Key.SESSION_SUBAGENT)
    assert (await desk.state.chats.get(CHAT)).session is None


async def test_new_only_unbinds(desk: Bench) -> None:
    await desk.ask("hello")
    (old,) = desk.host.world.sessions
    assert await desk.ask("/new") == WORDS(Key.NEW_DONE)
    assert await desk.ask("/new") == WORDS(Key.NEW_DONE)
    assert (await desk.state.chats.get(CHAT)).session is None
    await desk.ask("hello")
    assert len(desk.host.world.sessions) == 2
    assert old in await desk.ask("/sessions")


@pytest.mark.parametrize("text", ["/sessions", "/session session-a", "/status"])
async def test_a_host_that_fails_is_told_with_a_reference(desk: Bench, text: str) -> None:
    await desk.host.stop()
    reply = await desk.ask(text)
    assert "Reference H-" in reply
    await desk.channel.until(lambda: bool(desk.outcomes))
    assert list(desk.outcomes.values()) == [Outcome.FAILED]
    assert (await desk.state.chats.get(CHAT)).session is None


async def test_no_sessions_yet(desk: Bench) -> None:
    assert await desk.ask("/sessions") == WORDS(Key.SESSIONS_NONE)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "just now"), (130, "2 min ago"), (7_300, "2 h ago"), (3 * 86_400, "3 d ago"), (-50, "just now")],
)
async def test_ages(desk: Bench, seconds: int, words: str) -> None:
    desk.host.session("session-a").updated_at = int((time.time() - seconds) * 1_000)
    assert f"· {words}" in await desk.ask("/sessions")


async def test_a_binding_that_moves_during_the_look_up_is_not_overwritten(desk: Bench) -> None:
    desk.host.session("session-a")
    listed = asyncio.Event()
    for name in ("session.list", "session/list"):
        desk.host.fail(name, delay=listed, times=1)
    await desk.say("/session session-a")
    await eventually(lambda: any(call.name in ("session.list", "session/list") for call in desk.host.calls))
    moved = await desk.state.chats.bind(CHAT, SessionId("session-b"), expected=await desk.state.chats.get(CHAT))
    listed.set()
    assert await desk.channel.until_sent(1) == [WORDS(Key.SESSION_MOVED)]
    assert await desk.state.chats.get(CHAT) == moved


@pytest.mark.parametrize(("text", "call"), [("/stop", "cancel"), ("/steer more", "prompt")])
async def test_a_turn_that_cannot_be_reached_is_told_with_a_reference(desk: Bench, text: str, call: str) -> None:
    hold = asyncio.Event()
    desk.host.model.script(say("part", hold, " done"))
    await desk.say("hello")
    await desk.host.until(lambda: any(session.partial for session in desk.host.world.sessions.values()))
    await eventually(lambda: bool(desk.prompts))
    desk.fail(call, status=500)
    assert "Reference H-" in await desk.ask(text)
    hold.set()
    assert (await desk.channel.until_sent(2))[1] == "part done"


async def test_status_names_host_session_and_task(desk: Bench) -> None:
    reply = await desk.ask("/status")
    assert desk.host.dialect.generation in reply
    assert WORDS(Key.STATUS_UNBOUND) in reply
    assert WORDS(Key.STATUS_IDLE) in reply
    await desk.ask("hello")
    assert next(iter(desk.host.world.sessions)) in await desk.ask("/status")


@pytest.mark.parametrize(
    ("argument", "asked"),
    [("", Asked()), ("--limit 3", Asked(limit=3)), ("--limit=7", Asked(limit=7)), ("--limit 0099", Asked(limit=50)),
     ("--limit " + "9" * 400, Asked(limit=50)), ("3", Asked("3")), ("3 --limit 2", Asked("3", 2)),
     ("/srv/my project --limit 2", Asked("/srv/my project", 2)), (r"C:\code", Asked(r"C:\code")),
     ("--limit 0", None), ("--limit -1", None), ("--limit ３", None), ("--limit 3 4", None), ("--limit", None),
     ("/srv/a --limit", None), ("srv/a", None), ("three", None), ("３", None), ("/srv/a\u202e", None)],
)  # fmt: skip
def test_what_sessions_are_asked_for(argument: str, asked: Asked | None) -> None:
    assert parse_asked(argument) == asked


@pytest.mark.parametrize(
    ("text", "valid"),
    [("a", True), ("../evil", True), ("x" * 257, False), ("", False), ("a b", False), ("a\u200b", False)],
)  # fmt: skip
def test_session_ids(text: str, *, valid: bool) -> None:
    assert is_session_id(text) is valid


def test_lists_shown_long_ago_are_forgotten() -> None:
    shown = ShownLists(limit=2)
    chats = [ChatKey("c", "b", str(number)) for number in range(3)]
    for chat in chats:
        shown.remember(chat, Listing.SESSIONS, ["s"])
    assert [shown.recall(chat, Listing.SESSIONS).items for chat in chats] == [(), ("s",), ("s",)]
    assert shown.recall(chats[2], Listing.MODELS).items == ()

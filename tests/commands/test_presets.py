"""``/presets`` and ``/preset``: through the whole path, on both host generations."""

from __future__ import annotations

import pytest

from bridges.message import EventId, ReplyTarget
from bridges.state import Phase, Turn
from commands.model import ChatKey
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import ALICE, BOT, CHAT, Bench

WORDS = Words(Language.EN)


async def preset_of_new_session(desk: Bench) -> str:
    """Begin a session and return its preset."""
    await desk.ask("/new")
    await desk.ask("hello")
    session = (await desk.state.chats.get(CHAT)).session
    assert session is not None
    return desk.host.world.sessions[session].preset


async def test_the_list_marks_the_hosts_default_and_the_chats_choice(desk: Bench) -> None:
    assert await desk.ask("/preset") == WORDS(Key.PRESET_UNSET)
    lines = (await desk.ask("/presets")).splitlines()
    assert lines[0] == WORDS(Key.PRESETS_HEADER, total=len(desk.host.world.dialect.presets))
    assert [line for line in lines if WORDS(Key.PRESETS_DEFAULT) in line] == [lines[1]]
    assert not any(WORDS(Key.PRESETS_CHOSEN) in line for line in lines)
    await desk.ask("/preset 2")
    lines = (await desk.ask("/presetlist")).splitlines()
    assert [line for line in lines if WORDS(Key.PRESETS_CHOSEN) in line] == [lines[2]]
    assert desk.host.writes == []


@pytest.mark.parametrize("argument", ["minimal", "id:minimal", "number"])
async def test_a_preset_is_for_new_sessions_of_this_chat(desk: Bench, argument: str) -> None:
    assert await preset_of_new_session(desk) == "standard"
    if argument == "number":
        lines = (await desk.ask("/presets")).splitlines()
        argument = next(line.split(".")[0] for line in lines if " minimal" in line)
    before = await desk.state.chats.get(CHAT)
    assert await desk.ask(f"/preset {argument}") == WORDS(Key.PRESET_DONE, preset="minimal")
    assert await desk.state.chats.get(CHAT) == before
    assert await desk.ask("/preset") == WORDS(Key.PRESET_CURRENT, preset="minimal")
    assert await preset_of_new_session(desk) == "minimal"
    await desk.say("hello", chat=ChatKey("test", "bot", "2"))
    await desk.channel.until(lambda: len(desk.host.world.sessions) == 3)
    assert list(desk.host.world.sessions.values())[-1].preset == "standard"
    assert await desk.ask("/preset --default") == WORDS(Key.PRESET_CLEARED)
    assert await preset_of_new_session(desk) == "standard"


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("/preset 1", WORDS(Key.LIST_NONE, number="1", command="/presets")),
        ("/preset id:1", WORDS(Key.PRESET_UNKNOWN)),
        ("/preset nothing", WORDS(Key.PRESET_UNKNOWN)),
        ("/preset a b", WORDS(Key.PRESET_USAGE)),
        ("/presets x", WORDS(Key.PRESETS_USAGE)),
    ],
)
async def test_what_cannot_be_chosen(desk: Bench, text: str, reply: str) -> None:
    assert await desk.ask(text) == reply
    assert (await desk.state.chats.settings(CHAT)).preset is None


async def test_a_preset_that_left_the_list_is_told(desk: Bench) -> None:
    await desk.ask("/presets")
    for name in ("agentPreset.list", "agentPresets/list"):
        desk.host.fail(name, value={"presets": []})
    assert await desk.ask("/preset 2") == WORDS(Key.LIST_CHANGED, command="/presets")


async def test_a_session_that_was_being_made_at_a_restart_gets_the_chosen_preset(desk: Bench) -> None:
    await desk.state.chats.set_preset(CHAT, "minimal")
    turn = Turn(
        EventId("old"),
        ReplyTarget(CHAT, "route"),
        ALICE,
        began=0.0,
        phase=Phase.CREATING,
        session=SessionId("session-half"),
        cwd=desk.host.world.cwd,
    )
    await desk.state.claims.claim(BOT, turn.event, turn=turn)
    await desk.intake.inherit()
    desk.intake.connected()
    await desk.channel.until_sent(1)
    assert desk.host.world.sessions["session-half"].preset == "minimal"


async def test_a_chosen_preset_that_is_gone_is_told_and_nothing_is_made(desk: Bench) -> None:
    await desk.state.chats.set_preset(CHAT, "gone")
    assert await desk.ask("hello") == WORDS(Key.CHAT_PRESET_GONE)
    assert desk.host.world.sessions == {}
    await desk.ask("/preset --default")
    assert await desk.ask("hello") == "You said: hello"


@pytest.mark.parametrize("text", ["/presets", "/preset minimal"])
async def test_a_host_that_fails_changes_nothing(desk: Bench, text: str) -> None:
    await desk.host.stop()
    assert "Reference H-" in await desk.ask(text)
    assert (await desk.state.chats.settings(CHAT)).preset is None

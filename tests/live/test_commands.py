"""What a person chooses in a chat, on the real host: workspaces, sessions, models, presets, compaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from bridges.demo_model import DemoModel, Step
from bridges.state import State
from harness_client.client import HarnessClient
from i18n import Key, Language, Words
from tests.bridges.bench import CHAT, Desk, PlainChannel, seated
from tests.live.conftest import live_fixture
from tests.live.talk import BOUND, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = Words(Language.EN)


class LiveDesk(Desk):
    """A desk before a host that takes its time."""

    async def ask(self, text: str) -> str:
        before = len(self.channel.sent)
        await self.say(text)
        await self.channel.until(lambda: len(self.channel.sent) > before, BOUND)
        return self.channel.texts[before]

    async def rows(self, text: str) -> list[str]:
        """Return the numbered rows of a list."""
        lines = (await self.ask(text)).splitlines()
        return [line.partition(". ")[2] for line in lines if line.partition(". ")[0].isdigit()]

    async def cwd(self) -> str | None:
        """Return where the session of the chat works."""
        session = (await self.state.chats.get(CHAT)).session
        return next(row.cwd for row in await self.harness.sessions() if row.id == session)


@live_fixture()
async def desk(client: HarnessClient, model: DemoModel, workspace: Path, tmp_path: Path) -> AsyncIterator[LiveDesk]:
    def make(harness: HarnessClient, state: State, tasks: asyncio.TaskGroup) -> LiveDesk:
        return LiveDesk(harness, state, PlainChannel(), tasks, str(workspace))

    async with seated(make, client.address, tmp_path) as made:
        yield made


async def test_a_folder_is_switched_to_pinned_and_listed(desk: LiveDesk, workspace: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    missing = tmp_path / "missing"
    assert await desk.ask(f"/workspace {missing}") == WORDS(Key.WORKSPACE_NO_FOLDER, folder=str(missing))
    assert not missing.exists()
    assert await desk.ask(f"/workspace {first}") == WORDS(Key.WORKSPACE_DONE, folder=str(first))
    await desk.ask("hello")
    assert await desk.cwd() == str(first)
    assert await desk.ask(f"/conv {second}") == WORDS(Key.CONV_DONE, folder=str(second))
    await desk.ask("hello")
    assert await desk.cwd() == str(second)
    rows = await desk.rows("/workspaces")
    assert rows[0] == f"{second} · {WORDS(Key.WORKSPACES_PINNED)}"
    assert str(first) in rows
    assert str(workspace) not in rows, "a folder nobody registered is shown only while it is the chat's"
    await desk.ask("/conv clear")
    assert WORDS(Key.WORKSPACES_CURRENT) in (await desk.rows("/workspaces"))[0]


async def test_sessions_are_listed_by_workspace_and_bound_by_number(desk: LiveDesk, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    await desk.ask(f"/conv {folder}")
    await desk.ask("remember the word heron")
    session = (await desk.state.chats.get(CHAT)).session
    await desk.ask("/new")
    assert await desk.ask("/history") == WORDS(Key.HISTORY_UNBOUND)
    listed = await desk.ask(f"/sessions {folder} --limit 5")
    assert listed.splitlines()[0] == WORDS(Key.SESSIONS_HEADER_IN, folder=str(folder), total=1)
    assert str(session) in listed
    assert WORDS(Key.SESSION_TRY_HISTORY) in await desk.ask("/session 1")
    assert (await desk.state.chats.get(CHAT)).session == session
    assert "heron" in await desk.ask("/history")


async def test_a_model_is_chosen_and_becomes_the_hosts_default_as_the_reply_says(desk: LiveDesk) -> None:
    await desk.ask("hello")
    rows = await desk.rows("/models")
    names = [row.split(" · ")[0] for row in rows]
    current = next(number for number, row in enumerate(rows) if WORDS(Key.MODELS_CURRENT) in row)
    try:
        other = (current + 1) % len(names)
        reply = await desk.ask(f"/model {other + 1}")
        assert names[other] in reply
        assert "default model of all new sessions" in reply

        async def is_default() -> bool:
            default = (await desk.harness.models()).default
            return default is not None and f"{default.provider}/{default.model}" == names[other]

        await until(is_default)
        assert names[other] in await desk.ask("/model")
        assert "You said: again" in await desk.ask("again")
    finally:
        await desk.ask(f"/model {names[current]}")


async def test_an_effort_is_chosen(desk: LiveDesk) -> None:
    await desk.ask("hello")
    rows = await desk.rows("/reasonings")
    default = next(number for number, row in enumerate(rows) if WORDS(Key.REASONINGS_DEFAULT) in row)
    other = (default + 1) % len(rows)
    try:
        effort = rows[other].split(" · ")[0]
        assert f"Reasoning effort: {effort}\n" in await desk.ask(f"/reasoning {other + 1}")
        assert f"Reasoning effort: {effort}" in await desk.ask("/reasoning")
        assert WORDS(Key.REASONINGS_CURRENT) in (await desk.rows("/reasonings"))[other]
    finally:
        await desk.ask("/reasoning --default")


async def test_a_preset_is_that_of_the_next_session(desk: LiveDesk) -> None:
    await desk.ask("hello")
    ids = [row.split(" · ")[0] for row in await desk.rows("/presets")]
    assert await desk.ask(f"/preset {ids.index('minimal') + 1}") == WORDS(Key.PRESET_DONE, preset="minimal")
    await desk.ask("/new")
    await desk.ask("hello")
    session = (await desk.state.chats.get(CHAT)).session
    assert [row.preset for row in await desk.harness.sessions() if row.id == session] == ["minimal"]
    await desk.state.chats.set_preset(CHAT, "gone")
    await desk.ask("/new")
    assert await desk.ask("hello") == WORDS(Key.CHAT_PRESET_GONE)


async def test_compaction_is_told_in_our_words(desk: LiveDesk, model: DemoModel) -> None:
    assert await desk.ask("/compact") == WORDS(Key.CHAT_UNBOUND)
    await desk.ask(f"/session {await desk.harness.create_session()}")
    assert await desk.ask("/compact") == WORDS(Key.COMPACT_NOTHING)
    await desk.ask("/new")
    for text in ("one", "two", "three"):
        await desk.ask(text)
    reply = await desk.ask("/compact")
    assert reply.startswith("Compacted ")
    assert reply != WORDS(Key.COMPACT_OK), "the host's own sentence is no longer understood"
    assert "three" in await desk.ask("/history 5")
    assert "You said: four" in await desk.ask("four")


async def test_a_running_turn_is_neither_compacted_nor_given_another_model(desk: LiveDesk, model: DemoModel) -> None:
    await desk.ask("hello")
    model.queue.append(Step(text="begun", end="hang"))
    await desk.say("long")
    session = (await desk.state.chats.get(CHAT)).session
    assert session is not None
    await until(partial(desk.harness.running, session))
    assert await desk.ask("/compact") == WORDS(Key.COMPACT_BUSY)
    assert await desk.ask("/reasoning --default") == WORDS(Key.MODEL_BUSY)
    await desk.ask("/stop")
    await desk.channel.until(lambda: any(WORDS(Key.CHAT_ABORTED) in text for text in desk.channel.texts), BOUND)

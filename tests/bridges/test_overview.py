"""``harness-im bots`` and ``sessions``: what the operator sees of a running program, and of one that is gone."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridges.cli import main
from bridges.cli.overview import short
from bridges.noting import LOOK_SECONDS, NOTE_SECONDS, STALE_SECONDS, keep_noted
from bridges.state import BotKey, Health, Link, StateError, open_state
from commands.model import ChatKey
from harness_client.types import SessionId
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.chat_process import SECONDS
from tests.bridges.test_run import bot, configure, message, service
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import TELLER, FakeTelegram

OPS = BotKey("telegram", "ops")


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


async def ask(config: Path, *arguments: str) -> Result:
    """Run the command as its own program would, beside whatever runs here."""
    return await asyncio.to_thread(CliRunner().invoke, main, [*arguments, "--config", str(config)])


async def told(config: Path, *arguments: str) -> list[dict[str, str | None]]:
    asked = await ask(config, *arguments, "--json")
    assert asked.exit_code == 0, asked.stderr
    rows: list[dict[str, str | None]] = json.loads(asked.stdout)
    return rows


async def test_a_running_program_is_seen_from_beside_it(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(telegram), bot(telegram, "lost", token="1:nobody-knows-this-token"))
    async with service(tmp_path, config) as running:
        await running.ready()
        await telegram.deliver(message(telegram, "hello"))
        await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
        async with asyncio.timeout(SECONDS):
            while (await told(config, "bots"))[0]["last_event"] is None:  # noqa: ASYNC110 - it is another program's
                await asyncio.sleep(0.1)
        ops, lost = await told(config, "bots")
        assert (ops["bot"], ops["state"], ops["error"]) == ("telegram/ops", "up", None)
        assert (lost["bot"], lost["state"], lost["why"]) == ("telegram/lost", "stopped", "needs-login")
        assert "@BotFather" in str(lost["error"])
        table = (await ask(config, "bots")).stdout
        (row,) = await told(config, "sessions")
        (full,) = await told(config, "sessions", "--full")
        assert await running.stop() == 0
    assert full == {"bot": "telegram/ops", "chat": str(TELLER), "session": next(iter(host.world.sessions))}
    assert row == full | {"chat": short(str(full["chat"])), "session": short(str(full["session"]))}
    assert "nobody-knows-this-token" not in table
    assert Words(Language.EN)(Key.BOTS_STOPPED) in table
    assert [each["state"] for each in await told(config, "bots")] == ["closed", "stopped"], "as it ended"


@pytest.mark.parametrize("language", Language)
async def test_tables_speak_the_language_of_the_configuration(tmp_path: Path, language: Language) -> None:
    words = Words(language)
    config = tmp_path / "config.toml"
    head = f'language = "{language}"\n[state]\npath = "state.db"\n'
    config.write_text(head)
    assert (await ask(config, "bots")).stdout == f"{words(Key.BOTS_NONE)}\n"
    assert (await ask(config, "sessions")).stdout == f"{words(Key.BOTS_NO_SESSIONS)}\n"
    config.write_text(f'{head}[[bot]]\nname = "ops"\nchannel = "telegram"\ntoken = "fake"\n')
    async with open_state(tmp_path / "state.db") as state:
        chat = ChatKey("telegram", "ops", "chat-4711")
        await state.chats.bind(chat, SessionId("session-4711"), expected=await state.chats.get(chat))
        heading, row = (await ask(config, "bots")).stdout.splitlines()
        assert heading.split()[0] == words(Key.BOTS_BOT)
        assert row.split("  ")[0] == "telegram/ops"
        assert row.endswith(words(Key.BOTS_CLOSED)), "nothing was ever noted of it"
        assert "4711" not in (await ask(config, "sessions")).stdout
        assert "session-4711  chat-4711" in (await ask(config, "sessions", "--full")).stdout


async def test_a_note_that_a_killed_program_left_says_nothing_about_now(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[state]\npath = "state.db"\n[[bot]]\nname = "ops"\nchannel = "telegram"\ntoken = "fake"\n')
    async with open_state(tmp_path / "state.db") as state:
        await state.healths.note([Health(OPS, Link.UP, 1.0, last_event=2.0)])
        assert (await told(config, "bots"))[0]["state"] == "up"
        with sqlite3.connect(tmp_path / "state.db") as db:
            db.execute("UPDATE health SET at = at - ?", (STALE_SECONDS + 1,))
        db.close()
        (left,) = await told(config, "bots")
    assert (left["state"], left["last_event"]) == ("closed", "1970-01-01T00:00:02+00:00")


async def test_a_change_is_noted_soon_the_rest_now_and_then_and_the_end_at_once(tmp_path: Path) -> None:
    clock, health = FakeClock(), Health(OPS, Link.CONNECTING, 0.0)

    async def link() -> Link:
        return (await state.healths.noted())[0].health.link

    async with open_state(tmp_path / "state.db", clock=clock) as state:
        noting = asyncio.create_task(keep_noted(state.healths, lambda: [health], clock))
        await clock.sleeping()
        assert await link() is Link.CONNECTING
        health = Health(OPS, Link.UP, 1.0)
        await clock.advance(LOOK_SECONDS)
        await clock.sleeping()
        assert await link() is Link.UP
        first = (await state.healths.noted())[0].at
        for _ in range(int(NOTE_SECONDS / LOOK_SECONDS)):
            await clock.advance(LOOK_SECONDS)
            await clock.sleeping()
        assert (await state.healths.noted())[0].at == first + NOTE_SECONDS
        health = Health(OPS, Link.CLOSED, 2.0)
        noting.cancel()
        await asyncio.wait([noting])
        assert await link() is Link.CLOSED


async def test_a_state_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_state(tmp_path / "state.db", clock=clock) as state:
        pass  # from here on every write is refused
    with pytest.raises(StateError):
        await state.healths.note([])
    noting = asyncio.create_task(keep_noted(state.healths, lambda: [Health(OPS, Link.UP, 0.0)], clock))
    await clock.sleeping()
    await clock.advance(NOTE_SECONDS)
    await eventually(lambda: not noting.done())
    noting.cancel()
    await asyncio.wait([noting])
    assert noting.cancelled()

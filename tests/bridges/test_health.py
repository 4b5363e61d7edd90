"""``harness-im health``, as a container asks it."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridges.cli import main
from bridges.noting import STALE_SECONDS
from bridges.state import BotKey, Health, Link, open_state
from i18n import Key, Language, Words
from tests.bridges.chat_process import SECONDS
from tests.bridges.test_run import bot, configure, service
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import FakeTelegram

EN = Words(Language.EN)
SILENT = (1, f"{EN(Key.HEALTH_SILENT)}\n")
OPS = BotKey("telegram", "ops")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text('language = "en"\n[state]\npath = "state.db"\n')
    return file


async def ask(config: Path) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, ["health", "--config", str(config)])


async def note(config: Path, link: Link) -> None:
    async with open_state(config.with_name("state.db")) as state:
        await state.healths.note([Health(OPS, link, 0.0)])


async def test_a_program_that_runs_is_well_until_it_has_ended(tmp_path: Path) -> None:
    async with FakeHarness() as host, FakeTelegram() as telegram:
        config = configure(tmp_path, host, bot(telegram))
        async with service(tmp_path, config) as running:
            await running.ready()
            async with asyncio.timeout(SECONDS):
                while (asked := await ask(config)).exit_code:  # noqa: ASYNC110 - a note has no event
                    await asyncio.sleep(0.05)
            assert re.sub(r"\d+", "N", asked.stdout) == re.sub(r"\d+", "N", f"{EN(Key.HEALTH_ALIVE, seconds=0)}\n")
            assert await running.stop() == 0
        asked = await ask(config)
        assert (asked.exit_code, asked.stderr) == SILENT


@pytest.mark.parametrize(
    ("link", "age", "code"),
    [
        (Link.UP, 0, 0),
        (Link.STOPPED, 0, 0),  # a platform's no is nothing that a restart mends
        (Link.CLOSED, 0, 1),
        (Link.UP, STALE_SECONDS + 1, 1),
        (Link.UP, -86400, 1),  # the clock was set back since: it says nothing of now
    ],
)
async def test_a_note_counts_while_it_is_fresh(config: Path, link: Link, age: float, code: int) -> None:
    await note(config, link)
    with closing(sqlite3.connect(config.with_name("state.db"))) as db, db:
        db.execute("UPDATE health SET at = at - ?", (age,))
    assert (await ask(config)).exit_code == code


async def test_where_nothing_ever_ran_nothing_is_made(config: Path) -> None:
    asked = await ask(config)
    assert (asked.exit_code, asked.stderr) == SILENT
    assert [entry.name for entry in config.parent.iterdir()] == ["config.toml"]


async def test_it_keeps_no_program_from_starting(config: Path) -> None:
    await note(config, Link.UP)
    before = {entry.name for entry in config.parent.iterdir()}
    await ask(config)
    assert {entry.name for entry in config.parent.iterdir()} == before
    async with open_state(config.with_name("state.db")):
        assert (await ask(config)).exit_code == 0


async def test_a_file_of_another_version_shows_no_life(config: Path) -> None:
    await note(config, Link.UP)
    with closing(sqlite3.connect(config.with_name("state.db"))) as db, db:
        db.execute("UPDATE state_version SET number = number - 1")
    asked = await ask(config)
    assert (asked.exit_code, asked.stderr) == SILENT


async def test_what_is_wrong_is_said(config: Path) -> None:
    config.with_name("state.db").write_bytes(b"no database " * 1000)
    asked = await ask(config)
    assert (asked.exit_code, asked.stderr) == (1, f"{EN(Key.STATE_BROKEN, path=config.with_name('state.db'))}\n")
    config.write_text("nonsense = 1\n")
    assert (await ask(config)).exit_code == 2

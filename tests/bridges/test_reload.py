"""``harness-im reload``: a running program takes over what is new, and drops nothing for it."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridges.cli import main
from bridges.noting import STALE_SECONDS
from bridges.state import BotKey, Health, Link, open_state
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.chat_process import SECONDS
from tests.bridges.test_run import Service, bot, configure, message, service
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import TELLER, FakeTelegram

EN, ZH = Words(Language.EN), Words(Language.ZH)
OPS = BotKey("telegram", "ops")


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


async def reload(config: Path) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, ["reload", "--config", str(config)])


async def log_says(running: Service, word: str) -> str:
    await eventually(lambda: any(word in line for line in running.errors), SECONDS)
    return next(line for line in running.errors if word in line)


async def noted(config: Path) -> None:
    """Wait until the program has written down that it runs."""
    async with asyncio.timeout(SECONDS):
        while True:
            with closing(sqlite3.connect(config.with_name("state.db"))) as db:
                if db.execute("SELECT 1 FROM health").fetchone():
                    return
            await asyncio.sleep(0.05)


async def test_a_new_bot_and_the_language_are_taken_over_and_no_connection_is_dropped(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with FakeTelegram() as other:
        config = configure(tmp_path, host, bot(telegram))
        async with service(tmp_path, config) as running:
            await running.ready()
            await noted(config)
            logins = telegram.count("getMe")
            configure(tmp_path, host, bot(telegram), bot(other, "new"))
            config.write_text(config.read_text().replace('language = "en"', 'language = "zh"'))
            asked = await reload(config)
            assert (asked.exit_code, asked.stdout) == (0, f"{ZH(Key.RELOAD_ASKED, pid=running.child.pid)}\n")
            assert "telegram/new" in await log_says(running, "reloaded")
            await other.deliver(message(other, "hello"))
            await other.until(lambda: other.texts(TELLER) == ["You said: hello"])
            await telegram.deliver(message(telegram, "/version extra"))
            await telegram.until(lambda: len(telegram.texts(TELLER)) == 1)
            assert any("\u4e00" <= char <= "\u9fff" for char in telegram.texts(TELLER)[0]), "in Chinese by now"
            assert telegram.count("getMe") == logins
            assert await running.stop() == 0


async def test_a_configuration_that_is_wrong_changes_nothing(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(telegram))
    async with service(tmp_path, config) as running:
        await running.ready()
        await noted(config)
        good = config.read_text()
        config.write_text(good + "nonsense = 1\n")
        assert (await reload(config)).exit_code == 2, "the operator hears of it before anything is asked"
        running.child.send_signal(signal.SIGHUP)
        assert "nonsense" in await log_says(running, "not reloaded")
        config.write_text(good)
        await telegram.deliver(message(telegram, "hello"))
        await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
        assert await running.stop() == 0


async def test_what_waits_for_the_next_start_is_named(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with FakeTelegram() as other:
        config = configure(tmp_path, host, bot(telegram), bot(other, "gone"))
        async with service(tmp_path, config) as running:
            await running.ready()
            configure(tmp_path, host, bot(telegram, access='direct = ["somebody"]'))
            running.child.send_signal(signal.SIGHUP)
            line = await log_says(running, "reloaded")
            assert "telegram/gone" in line
            assert "telegram/ops" not in line, "access is in force already"
            await other.deliver(denied := message(other, "hello"))
            await other.taken(denied)
            assert other.texts(TELLER) == [], "a bot that is gone talks to nobody"
            assert await running.stop() == 0


async def test_without_a_running_program_there_is_nothing_to_reload(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('language = "en"\n[state]\npath = "state.db"\n')
    nobody = (1, f"{EN(Key.RELOAD_NOT_RUNNING)}\n")
    asked = await reload(config)
    assert (asked.exit_code, asked.stderr) == nobody
    async with open_state(tmp_path / "state.db") as state:
        await state.healths.note([Health(OPS, Link.UP, 0.0)])  # by this very process: a signal would end it
    for age in (STALE_SECONDS + 1, -86400):  # a clock that was set back leaves notes of the future
        with closing(sqlite3.connect(tmp_path / "state.db")) as db, db:
            db.execute("UPDATE health SET at = at - ?", (age,))
        asked = await reload(config)
        assert (asked.exit_code, asked.stderr) == nobody


async def test_a_note_of_a_process_that_is_gone_reaches_nobody(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('language = "en"\n[state]\npath = "state.db"\n')
    child = await asyncio.create_subprocess_exec("true")
    await child.wait()
    async with open_state(tmp_path / "state.db") as state:
        await state.healths.note([Health(OPS, Link.UP, 0.0)])
    with closing(sqlite3.connect(tmp_path / "state.db")) as db, db:
        db.execute("UPDATE health SET pid = ?", (child.pid,))
    assert child.pid != os.getpid()
    assert (await reload(config)).exit_code == 1

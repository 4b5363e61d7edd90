"""``harness-im pair``: the operator lets people in, also while the bots run."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridges.cli import main
from bridges.state import BotKey, State, open_state
from commands.model import SenderId
from i18n import Key, Language, Words

WORDS = Words(Language.EN)
OPS = BotKey("telegram", "ops")
ANN = SenderId("ann")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(
        'language = "en"\n[state]\npath = "state.db"\n[[bot]]\nname = "ops"\nchannel = "telegram"\ntoken = "fake"\n'
    )
    return path


@pytest.fixture
async def state(config: Path) -> AsyncIterator[State]:
    """The state of a running program."""
    async with open_state(config.with_name("state.db")) as state:
        yield state


async def pair(config: Path, *arguments: str) -> Result:
    """Run the command as its own program would, beside whatever runs here."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["pair", *arguments, "--config", str(config)])


async def test_a_code_is_listed_and_approved_beside_a_running_program(config: Path, state: State) -> None:
    assert (await pair(config, "list")).stdout == f"{WORDS(Key.PAIRING_NOBODY)}\n"
    code = await state.pairings.ask(OPS, ANN) or ""
    listed = await pair(config, "list")
    assert listed.stdout == f"{WORDS(Key.PAIRING_WAITING, code=code, bot=OPS, sender=ANN, minutes=60)}\n"
    approved = await pair(config, "approve", code.lower())
    assert (approved.exit_code, approved.stdout) == (0, f"{WORDS(Key.PAIRING_APPROVED, sender=ANN, bot=OPS)}\n")
    assert await state.pairings.admitted(OPS, ANN)
    again = await pair(config, "approve", code)
    assert (again.exit_code, again.stdout, again.stderr) == (1, "", f"{WORDS(Key.PAIR_UNKNOWN)}\n")


@pytest.mark.parametrize("bot", ["ops", "telegram/ops"])
async def test_an_admission_is_taken_back(config: Path, state: State, bot: str) -> None:
    await state.pairings.approve(await state.pairings.ask(OPS, ANN) or "")
    assert (await pair(config, "revoke", "other", ANN)).exit_code == 1
    assert (await pair(config, "revoke", bot, "bob")).exit_code == 1
    assert await state.pairings.admitted(OPS, ANN)
    revoked = await pair(config, "revoke", bot, ANN)
    assert (revoked.exit_code, revoked.stdout) == (0, f"{WORDS(Key.PAIRING_REVOKED, sender=ANN, bot=bot)}\n")
    assert not await state.pairings.admitted(OPS, ANN)


async def test_without_a_running_program_the_state_is_opened_privately(config: Path) -> None:
    assert (await pair(config, "list")).exit_code == 0
    assert stat.S_IMODE(config.with_name("state.db").stat().st_mode) == 0o600


async def test_a_name_cannot_write_on_the_operators_screen(config: Path, state: State) -> None:
    await state.pairings.ask(OPS, SenderId("ann\x1b[31m\nbob\u202e"))
    listed = (await pair(config, "list")).stdout
    assert listed.count("\n") == 1
    assert "\x1b" not in listed


async def test_a_configuration_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    result = await pair(tmp_path / "absent.toml", "list")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "absent.toml" in result.stderr


async def test_a_state_that_cannot_be_read_is_told(config: Path) -> None:
    config.with_name("state.db").mkdir()
    result = await pair(config, "list")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "state.db" in result.stderr


@pytest.mark.parametrize("arguments", [("approve",), ("revoke", "ops"), ("list", "x"), ("nothing",)])
async def test_what_is_missing_is_told(config: Path, arguments: tuple[str, ...]) -> None:
    assert (await pair(config, *arguments)).exit_code == 2

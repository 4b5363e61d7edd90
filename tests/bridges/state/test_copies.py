"""Upgrade and rollback: the copy that an upgrade leaves, and the way back to the program before."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bridges.cli.problems import worded
from bridges.message import EventId
from bridges.state import BotKey, StateError, Trouble, open_state, upgrades
from i18n import Key, Language, Words
from tests.guards.sources import ROOT

OPS = BotKey("telegram", "ops")
RELEASED = upgrades.UPGRADES
NOW = len(RELEASED)
LATER = ("CREATE TABLE extra (a)",)


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


def release(monkeypatch: pytest.MonkeyPatch, *steps: tuple[str, ...]) -> None:
    """Let the program be a version with more upgrades than this one."""
    monkeypatch.setattr(upgrades, "UPGRADES", (*RELEASED, *steps))


async def claims(path: Path, event: str) -> bool:
    async with open_state(path) as state:
        return await state.claims.claim(OPS, EventId(event))


def copies(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if ".v" in entry.name)


def steps(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        ((number,),) = db.execute("SELECT number FROM state_version")
    assert isinstance(number, int)
    return number


async def test_a_new_file_and_a_current_one_need_no_copy(path: Path) -> None:
    assert await claims(path, "1")
    assert not await claims(path, "1")
    assert copies(path) == []


async def test_an_upgrade_keeps_what_was_before_for_its_owner_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await claims(path, "1")
    release(monkeypatch, LATER)
    assert not await claims(path, "1")
    assert copies(path) == [f"state.db.v{NOW}"]
    copy = path.with_name(f"state.db.v{NOW}")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert (steps(path), steps(copy)) == (NOW + 1, NOW)


@pytest.mark.parametrize("language", Language)
async def test_the_program_before_names_the_copy_and_goes_on_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, language: Language
) -> None:
    assert await claims(path, "1")
    release(monkeypatch, LATER)
    assert await claims(path, "2")
    release(monkeypatch)
    with pytest.raises(StateError) as caught:
        await claims(path, "3")
    assert caught.value.trouble is Trouble.NEWER
    copy = path.with_name(f"state.db.v{NOW}")
    words = Words(language)
    assert worded(caught.value, words) == words(Key.STATE_NEWER_COPY, path=path, copy=copy)
    copy.replace(path)  # what the message says
    assert not await claims(path, "1")
    assert await claims(path, "2"), "what came after the upgrade is gone with it"


UPGRADED_AND_KILLED = """
import asyncio, os, sys
from pathlib import Path
from bridges.message import EventId
from bridges.state import BotKey, open_state, upgrades

upgrades.UPGRADES = (*upgrades.UPGRADES, ("CREATE TABLE extra (a)",))

async def main():
    async with open_state(Path(sys.argv[1])) as state:
        await state.claims.claim(BotKey("telegram", "ops"), EventId("2"))
        os._exit(9)

asyncio.run(main())
"""


async def test_what_a_killed_newer_program_left_in_its_log_does_not_reach_the_copy(path: Path) -> None:
    assert await claims(path, "1")
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", UPGRADED_AND_KILLED, str(path), cwd=ROOT)
    assert await child.wait() == 9
    log = path.with_name("state.db-wal")
    assert log.stat().st_size > 0
    with pytest.raises(StateError) as caught:
        await claims(path, "3")
    assert not log.exists(), "whoever refuses the file has put its log where it belongs"
    Path(caught.value.detail).replace(path)
    assert not await claims(path, "1")
    assert await claims(path, "2")


async def test_only_the_last_copy_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await claims(path, "1")
    path.with_name("state.db.v2").write_bytes(b"old")
    path.with_name("state.db.v3.part").write_bytes(b"half")
    path.with_name("state.db.very-own").write_bytes(b"somebody's")
    release(monkeypatch, LATER)
    await claims(path, "2")
    release(monkeypatch, LATER, ("CREATE TABLE more (a)",))
    await claims(path, "3")
    assert copies(path) == [f"state.db.v{NOW + 1}", "state.db.very-own"]


async def test_several_steps_at_once_are_one_upgrade(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await claims(path, "1")
    release(monkeypatch, LATER, ("CREATE TABLE claim (a)",))
    with pytest.raises(StateError):
        await claims(path, "2")
    assert steps(path) == NOW
    release(monkeypatch, LATER, ("CREATE TABLE more (a)",))
    await claims(path, "2")
    assert (steps(path), copies(path)) == (NOW + 2, [f"state.db.v{NOW}"])


@pytest.mark.parametrize(
    "moment",
    [
        "sqlite3.connect",
        "bridges.state.copies.os.fsync",
        "bridges.state.copies.Path.replace",
        "bridges.state.file.upgrade",
        "bridges.state.file.drop_copies",
    ],
)
async def test_killed_at_any_moment_of_an_upgrade_the_next_start_makes_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    assert await claims(path, "1")
    release(monkeypatch, LATER)
    real = sqlite3.connect

    def killed(*arguments: object, **named: object) -> object:
        if moment == "sqlite3.connect" and not str(arguments[0]).endswith(".part"):
            return real(*arguments, **named)  # type: ignore[call-overload]  # handed on as it came
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(moment, killed)
        with pytest.raises(Killed):
            await claims(path, "2")
    assert not await claims(path, "1")
    assert (steps(path), steps(path.with_name(f"state.db.v{NOW}"))) == (NOW + 1, NOW)
    assert not list(path.parent.glob("*.part*"))


async def test_without_room_for_a_copy_nothing_is_upgraded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await claims(path, "1")
    release(monkeypatch, LATER)
    path.with_name(f"state.db.v{NOW}").mkdir()  # where the copy has to go
    with pytest.raises(StateError) as caught:
        await claims(path, "2")
    assert caught.value.trouble is Trouble.FAILED
    assert steps(path) == NOW

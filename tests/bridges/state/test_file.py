"""The state file itself: permissions, lock, upgrades, damage, and a disk that says no."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from bridges import private_file
from bridges.cli.problems import worded
from bridges.message import EventId
from bridges.state import BotKey, StateError, Trouble, open_state, upgrades
from bridges.state.database import Database
from commands.model import SenderId
from i18n import Language, Words

OPS = BotKey("telegram", "ops")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def refusal(path: Path) -> StateError:
    with pytest.raises(StateError) as caught:
        async with open_state(path):
            pass
    return caught.value


async def claim(path: Path, event: str) -> bool:
    async with open_state(path) as state:
        return await state.claims.claim(OPS, EventId(event))


async def test_nobody_else_can_read_it(path: Path) -> None:
    async with open_state(path) as state:
        await state.claims.claim(OPS, EventId("1"))
        assert mode(path.parent) == 0o700
        assert {entry.name: mode(entry) for entry in path.parent.iterdir()} == dict.fromkeys(
            ("state.db", "state.db-wal", "state.db-shm", "state.db.lock"), 0o600
        )


async def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    await claim(path, "1")
    path.chmod(0o644)
    assert not await claim(path, "1")
    assert mode(path) == 0o600


async def test_a_commit_waits_for_the_disk(path: Path) -> None:
    async with Database(path) as database:
        assert await database.run(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (2,)
        assert await database.run(lambda db: db.execute("PRAGMA journal_mode").fetchone()) == ("wal",)


async def test_two_processes_never_share_it(path: Path) -> None:
    async with open_state(path) as state:
        assert (await refusal(path)).trouble is Trouble.LOCKED
        assert await state.claims.claim(OPS, EventId("1"))
    assert not await claim(path, "1")


async def test_the_operator_can_approve_beside_a_running_bridge(path: Path) -> None:
    async with open_state(path) as running, open_state(path, alongside=True) as beside:
        code = await running.pairings.ask(OPS, SenderId("ann"))
        assert code is not None
        assert await beside.pairings.approve(code) is not None
        assert await running.pairings.admitted(OPS, SenderId("ann"))


async def test_alongside_nobody_it_is_an_ordinary_start(path: Path) -> None:
    async with open_state(path, alongside=True) as state:
        assert await state.claims.claim(OPS, EventId("1"))
        assert (await refusal(path)).trouble is Trouble.LOCKED


async def test_a_start_waits_for_an_operators_command_to_be_through(path: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        async with open_state(path, alongside=True):
            starting = tasks.create_task(claim(path, "1"))
            await asyncio.sleep(0)
        assert await starting


async def test_an_operators_command_puts_no_broken_file_aside(path: Path) -> None:
    await claim(path, "1")
    garbage(path)
    before = path.read_bytes()
    with pytest.raises(StateError) as caught:
        async with open_state(path, alongside=True):
            pass
    assert caught.value.trouble is Trouble.BROKEN
    assert path.read_bytes() == before
    async with open_state(path) as state:
        assert state.set_aside is not None, "and whoever starts next can tell"


async def test_folders_on_the_way_are_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert await claim(tmp_path / "a" / "b" / "state.db", "1")
        private_file.write(tmp_path / "c" / "d" / "e" / "secret", b"fake")
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(made) == 5
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}


async def test_a_file_that_is_just_being_upgraded_is_not_joined(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_state(path):
        monkeypatch.setattr(upgrades, "UPGRADES", (*upgrades.UPGRADES, ("CREATE TABLE extra (a)",)))
        with pytest.raises(StateError) as caught:
            async with open_state(path, alongside=True):
                pass
    assert caught.value.trouble is Trouble.BUSY


async def test_the_log_of_a_broken_file_goes_with_it(path: Path) -> None:
    await claim(path, "1")
    garbage(path)
    path.with_name("state.db-wal").write_bytes(b"left over")
    async with open_state(path) as state:
        assert state.set_aside is not None
        log = state.set_aside.with_name(state.set_aside.name + "-wal")
        assert log.read_bytes() == b"left over"


async def test_without_locks_there_is_no_start(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def acquire(_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("filelock.FileLock.acquire", acquire)
    assert (await refusal(path)).trouble is Trouble.FAILED


async def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    await claim(path, "1")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE state_version SET number = 99")
    before = path.read_bytes()
    assert (await refusal(path)).trouble is Trouble.NEWER
    assert path.read_bytes() == before


async def test_a_foreign_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE bookmark (url TEXT)")
    path.chmod(0o644)
    before = path.read_bytes()
    assert (await refusal(path)).trouble is Trouble.FOREIGN
    assert path.read_bytes() == before
    assert mode(path) == 0o644


async def test_an_upgrade_that_fails_leaves_the_step_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await claim(path, "1")
    released = upgrades.UPGRADES
    monkeypatch.setattr(upgrades, "UPGRADES", (*released, ("CREATE TABLE extra (a)", "CREATE TABLE claim (a)")))
    assert (await refusal(path)).trouble is Trouble.FAILED
    with closing(sqlite3.connect(path)) as db:
        assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchone()
    monkeypatch.setattr(upgrades, "UPGRADES", (*released, ("CREATE TABLE extra (a)",)))
    assert not await claim(path, "1")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT number FROM state_version").fetchall() == [(len(released) + 1,)]


def garbage(path: Path) -> None:
    path.write_bytes(b"no database, but somebody's only copy " * 100)


def torn(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)


@pytest.mark.parametrize("damage", [garbage, torn])
async def test_a_broken_file_is_kept_aside(path: Path, damage: Callable[[Path], None]) -> None:
    await claim(path, "1")
    damage(path)
    broken = path.read_bytes()
    async with open_state(path) as state:
        assert state.set_aside is not None
        assert state.set_aside.name.startswith("state.db.broken-2")
        assert state.set_aside.read_bytes() == broken
        assert await state.claims.claim(OPS, EventId("1"))
    assert not await claim(path, "1")


async def test_one_broken_file_never_replaces_another(path: Path) -> None:
    kept: dict[Path, bytes] = {}
    for number in range(3):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"broken %d " % number * 200)
        async with open_state(path) as state:
            assert state.set_aside is not None
            kept[state.set_aside] = b"broken %d " % number * 200
    assert {aside: aside.read_bytes() for aside in kept} == kept
    assert len(kept) == 3


async def test_an_empty_file_is_a_new_one(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    async with open_state(path) as state:
        assert state.set_aside is None


async def test_a_place_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert (await refusal(tmp_path / "file" / "state.db")).trouble is Trouble.FAILED
    (tmp_path / "folder").mkdir()
    assert isinstance(await refusal(tmp_path / "folder"), OSError)


@contextmanager
def full(database: sqlite3.Connection) -> Iterator[None]:
    """SQLite's own "database or disk is full"."""
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    yield
    database.execute("PRAGMA max_page_count = 1000000")


@contextmanager
def read_only(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("PRAGMA query_only = ON")
    yield
    database.execute("PRAGMA query_only = OFF")


@contextmanager
def failing(_: sqlite3.Connection) -> Iterator[None]:
    """The system refuses to let any file grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


Fault = Callable[[sqlite3.Connection], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("fault", "trouble"), [(full, Trouble.FULL), (read_only, Trouble.READ_ONLY), (failing, Trouble.FAILED)]
)
async def test_a_disk_that_says_no_leaves_nothing_half_written(path: Path, fault: Fault, trouble: Trouble) -> None:
    async with Database(path) as database:
        connection = await database.run(lambda db: db)

        def two(db: sqlite3.Connection) -> None:
            for event in ("a", "b" * 20_000):
                db.execute("INSERT INTO claim VALUES ('c', 'b', ?, 1)", (event,))

        with fault(connection):
            together = await asyncio.gather(*(database.run(two) for _ in range(5)), return_exceptions=True)
        assert {outcome.trouble for outcome in together if isinstance(outcome, StateError)} == {trouble}
        assert len({id(outcome) for outcome in together}) == 5
        assert await database.run(lambda db: db.execute("SELECT count(*) FROM claim").fetchone()) == (0,)
        await database.run(two)
        assert await database.run(lambda db: db.execute("SELECT count(*) FROM claim").fetchone()) == (2,)


async def test_one_callers_error_does_not_undo_its_neighbours(path: Path) -> None:
    def write(db: sqlite3.Connection, event: str, *, fails: bool) -> None:
        db.execute("INSERT INTO claim VALUES ('c', 'b', ?, 1)", (event,))
        if fails:
            raise LookupError(event)

    async with Database(path) as database:
        jobs = [database.run(lambda db, n=n: write(db, str(n), fails=n % 2 == 0)) for n in range(10)]  # type: ignore[misc]  # a lambda's default has no type
        outcomes = await asyncio.gather(*jobs, return_exceptions=True)
        assert [isinstance(outcome, LookupError) for outcome in outcomes] == [n % 2 == 0 for n in range(10)]
        rows = await database.run(lambda db: db.execute("SELECT event FROM claim ORDER BY event").fetchall())
        assert rows == [(str(n),) for n in range(1, 10, 2)]


async def test_a_caller_that_left_before_its_turn_leaves_nothing(path: Path) -> None:
    begun, gate = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> bool:
        begun.set()
        return gate.wait(10)

    async with Database(path) as database:
        first = asyncio.create_task(database.run(hold))
        assert await asyncio.to_thread(begun.wait, 10)
        insert = "INSERT INTO claim VALUES ('c', 'b', 'e', 1)"
        second = asyncio.create_task(database.run(lambda db: db.execute(insert).rowcount))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({second})
        gate.set()
        assert await first
        assert await database.run(lambda db: db.execute("SELECT count(*) FROM claim").fetchone()) == (0,)


async def test_more_waiting_than_can_be_served_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.state.database.MAX_WAITING", 3)
    gate = threading.Event()
    async with Database(path) as database:
        calls = [asyncio.create_task(database.run(lambda _: gate.wait(10))) for _ in range(9)]
        refused, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        gate.set()
        await asyncio.wait(calls)
        for call in refused:
            error = call.exception()
            assert isinstance(error, StateError)
            assert error.trouble is Trouble.BUSY


async def test_closing_finishes_what_waits(path: Path) -> None:
    async with open_state(path) as state:
        claims = [asyncio.create_task(state.claims.claim(OPS, EventId(str(n)))) for n in range(200)]
        await asyncio.sleep(0)
    assert all(await asyncio.gather(*claims))
    with pytest.raises(StateError, match="closed"):
        await state.claims.claim(OPS, EventId("late"))
    assert not await claim(path, "199")


def test_every_trouble_has_its_words() -> None:
    for trouble in Trouble:
        error = StateError(trouble, Path("state.db"), "OSError")
        texts = {worded(error, Words(language)) for language in Language}
        assert len(texts) == 2
        assert all("state.db" in text for text in texts)
        assert trouble is not Trouble.FAILED or all("OSError" in text for text in texts)

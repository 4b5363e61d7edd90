"""``kill -9`` between any two lines: what was promised is there, and nothing is there by half."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from bridges.message import EventId
from bridges.state import open_state
from tests.bridges.state.writer import BOT, CHAT
from tests.guards.sources import ROOT

ROUNDS = 4


def killed_after(path: Path, first: int, lines: int) -> list[str]:
    """Run a writer, kill it once it has said ``lines`` lines, and return all that it had said by then."""
    command = [sys.executable, "-m", "tests.bridges.state.writer", str(path), str(first)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - our own writer
        assert child.stdout is not None
        said = [child.stdout.readline().strip() for _ in range(lines)]
        child.kill()
        said += child.stdout.read().split("\n")
    assert child.returncode < 0
    assert said[0] == "opening", said
    return said


def numbers(said: list[str], word: str) -> list[int]:
    """Return the numbers of the whole lines that begin with ``word``; the last line may be torn."""
    return [int(line.split()[1]) for line in said[:-1] if line.startswith(word)]


async def test_what_was_promised_survives_and_nothing_is_there_by_half(path: Path) -> None:
    first, version = 0, 0
    for _ in range(ROUNDS):
        said = killed_after(path, first, random.randint(2, 400))
        claimed = numbers(said, "claimed")
        async with open_state(path) as state:
            assert state.set_aside is None
            outstanding = {int(turn.event) for turn in await state.turns.outstanding(BOT)}
            assert outstanding >= set(claimed)
            for number in claimed:
                assert not await state.claims.claim(BOT, EventId(str(number)))
            binding = await state.chats.get(CHAT)
            version = max([version, *numbers(said, "bound")])
            assert binding.version >= version
            assert binding.session == (f"session-{binding.version}" if binding.version else None)
            # Claims and turns are written together: an event without a turn is one that was never claimed.
            first = max(outstanding, default=-1) + 1
            assert await state.claims.claim(BOT, EventId(str(first)))
            first += 1


async def test_killed_while_the_file_is_made_it_is_made_at_the_next_start(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        path = tmp_path / str(number) / "state.db"
        killed_after(path, 0, 1)
        async with open_state(path) as state:
            assert state.set_aside is None
            await state.chats.get(CHAT)

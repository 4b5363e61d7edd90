"""The life of a bot's link on every row: hours of lost links, and starts upon starts. Simulated platforms."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from tests.contract.platform import Row, Trait, Trouble
from tests.contract.swift import SwiftSeat, swift_world
from tests.contract.test_table import ROWS
from tests.fakes.swift import run_swiftly

LINKED = [pytest.param(row, id=name) for name, row in ROWS.items() if name != "terminal"]
AGAIN = [pytest.param(row, id=name) for name, row in ROWS.items() if Trait.REDELIVERY not in row.LACKS]

LOSSES = 20
LOSS_SECONDS = 1_800.0
"""Ten hours of it."""

TROUBLED_SECONDS = 200.0
"""How long each lasts: a dead link is noticed within 60 seconds, and made again after a back-off."""

LINK_TROUBLES = (Trouble.CLOSE, Trouble.RESET, Trouble.SILENCE)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("row", LINKED)
def test_ten_hours_of_lost_links(row: Row, tmp_path: Path) -> None:
    run_swiftly(_ten_hours(row, tmp_path))


async def _ten_hours(row: Row, folder: Path) -> None:
    """Lose the link every half hour, right after a question; each is answered once, and nothing is left over."""
    async with swift_world(folder) as world, row.platform() as platform:
        seat = SwiftSeat(row, platform, world.state)
        async with world.serve(seat):
            await _lose_and_ask(seat)
        assert len(seat.replies()) == LOSSES


async def _lose_and_ask(seat: SwiftSeat) -> None:
    tasks = 0
    for number, trouble in zip(range(LOSSES), itertools.cycle(LINK_TROUBLES)):
        await seat.platform.says(f"q{number:03}.")
        await seat.simulated.meets(trouble, "lost")
        await asyncio.sleep(TROUBLED_SECONDS)
        seat.simulated.heals()
        await asyncio.sleep(LOSS_SECONDS - TROUBLED_SECONDS)
        await seat.connected()
        await seat.quiet()
        assert seat.count(f"q{number:03}.") == 1
        tasks = tasks or len(asyncio.all_tasks())
    assert len(asyncio.all_tasks()) <= tasks + 2


@pytest.mark.parametrize("row", AGAIN)
def test_five_starts_give_one_reply(row: Row, tmp_path: Path) -> None:
    run_swiftly(_five_starts(row, tmp_path))


async def _five_starts(row: Row, folder: Path) -> None:
    async with swift_world(folder) as world, row.platform() as platform:
        seat = SwiftSeat(row, platform, world.state)
        for start in range(5):
            async with world.serve(seat):
                if start == 0:
                    await seat.platform.says("hello", id="only")
                else:
                    await seat.platform.again("only")
                await seat.quiet()
                await asyncio.sleep(60)
        assert seat.replies() == ["You said: hello"]

"""Whatever goes wrong on every row, no log, health, figure or page tells a secret or what anybody wrote."""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from pathlib import Path
from unittest import mock

import aiohttp
import pytest

from bridges.listen import Listen
from bridges.log import Redactor
from bridges.metrics import Metrics
from bridges.monitoring import Monitor, monitored
from tests.contract.overheard import Overheard, overheard
from tests.contract.platform import Row, Simulated, Trouble
from tests.contract.swift import CLOCK, SwiftSeat, World, swift_world
from tests.contract.table import Told
from tests.contract.test_table import ROWS
from tests.fakes.swift import run_swiftly

CHANNELS = [pytest.param(row, id=name) for name, row in ROWS.items() if name != "terminal"]
CANARY = "what-somebody-wrote"
TROUBLED_SECONDS = 200.0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("as_json", [False, True], ids=["console", "json"])
@pytest.mark.parametrize("row", CHANNELS)
def test_nothing_is_told(row: Row, as_json: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    redact = Redactor()
    with overheard(redact, as_json=as_json) as log:
        told = run_swiftly(_go_through(row, tmp_path, redact, log))
    log.stream.write("".join(capfd.readouterr()))
    assert log.revealing(told) == []


@pytest.mark.parametrize("row", [pytest.param(ROWS[name], id=name) for name in ("telegram", "slack", "discord")])
def test_without_the_two_rules_the_libraries_would_tell(row: Row, tmp_path: Path) -> None:
    redact = Redactor()
    with (
        mock.patch("bridges.log.is_ours", return_value=True),
        mock.patch("bridges.log.written", logging.LogRecord.getMessage),
        mock.patch.object(Redactor, "__call__", lambda _, text: text),
        overheard(redact, as_json=True) as log,
    ):
        told = run_swiftly(_go_through(row, tmp_path, redact, log))
    revealed = "\n".join(log.revealing(told))
    assert CANARY in revealed
    assert any(secret in revealed for secret in told.secrets)


async def _go_through(row: Row, folder: Path, redact: Redactor, log: Overheard) -> Told:
    """Let everything go wrong that can, each time with all secrets and a person's words in what is said about it."""
    async with swift_world(folder) as world, row.platform() as platform:
        seat = SwiftSeat(row, platform, world.state)
        seat.redact = redact
        redact.keep({*platform.secrets(), world.host.login.token})
        async with world.serve(seat):
            for trouble in Trouble:
                await _meet(seat, platform, trouble)
            await _fail_the_host(world, seat, _note(platform))
            _fail_the_loop(_note(platform))
            log.stream.write(await _pages(world, seat))
        return Told(platform.secrets() | {world.host.login.token}, {CANARY} | seat.said)


def _note(platform: Simulated) -> str:
    return " ".join([CANARY, *sorted(platform.secrets())])


async def _meet(seat: SwiftSeat, platform: Simulated, trouble: Trouble) -> None:
    if trouble in {Trouble.CLOSE, Trouble.RESET, Trouble.SILENCE}:
        await seat.platform.says(f"{CANARY} before {trouble}")
    await platform.meets(trouble, _note(platform))
    if trouble in {Trouble.BUSY, Trouble.LOST, Trouble.BROKEN, Trouble.EXPIRED}:
        await seat.platform.says(f"{CANARY} with {trouble}")
    await asyncio.sleep(TROUBLED_SECONDS)
    platform.heals()
    await seat.connected()
    await seat.quiet()


async def _fail_the_host(world: World, seat: SwiftSeat, note: str) -> None:
    token = world.host.login.token
    for status in (401, 500):
        world.host.fail("session/prompt", status=status, body=f"{note} {token}".encode(), times=1)
        await seat.platform.says(f"{CANARY} and {status}")
        await seat.quiet()
    world.host.fail("*", drop="before", times=3)
    await seat.platform.says("/history")
    await seat.quiet()


def _fail_the_loop(note: str) -> None:
    """Let asyncio and Python complain in the ways they have."""
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": note, "exception": ValueError(note), "task": note})
    for name in ("aiohttp.server", "httpx", "slack_sdk.web", "discord.http", "telegram.Bot", "Lark", "some.other"):
        logging.getLogger(name).error(f"url {note}", exc_info=ConnectionError(note))
        logging.getLogger(name).debug("body %s", note)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning(note, UserWarning, __file__, 1)


async def _pages(world: World, seat: SwiftSeat) -> str:
    """Return what an operator is shown of the bot: pages, figures, and the health another program reads."""
    assert seat.bot is not None
    await world.state.healths.note([seat.bot.health])
    shown = [str(note) for note in await world.state.healths.noted()]
    monitor = Monitor(Metrics(), world.harness, [seat.bot], CLOCK)
    async with monitored(monitor, Listen("127.0.0.1:0")) as address, aiohttp.ClientSession() as http:
        for page in ("metrics", "healthz", "readyz"):
            async with http.get(f"{address}/{page}") as answer:
                shown.append(await answer.text())
    return json.dumps(shown)

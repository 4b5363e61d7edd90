"""SIGTERM ends the program within ten seconds, whatever hangs, at whatever moment it comes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges.app import FAREWELL_SECONDS
from bridges.cli.running import END_SECONDS
from bridges.serve import DRAIN_SECONDS
from bridges.supervise import STOP_SECONDS
from harness_client.embedded import STOP_WITHIN
from tests.bridges.bench import eventually
from tests.bridges.chat_process import SECONDS
from tests.bridges.test_run import Service, bot, configure, message, service
from tests.fakes.harness import FakeHarness, say
from tests.fakes.telegram import FakeTelegram

LIMIT = 10.0

HANGS = """
import asyncio, time
from bridges.cli import running

running.END_SECONDS = 0.2

async def main():
    running._end(asyncio.Event())
    await asyncio.to_thread(time.sleep, 60)

asyncio.run(main())
"""


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


async def ended(running: Service) -> float:
    """Stop the program, which is content; return how long it took."""
    began = time.monotonic()
    assert await running.stop() == 0
    return time.monotonic() - began


async def test_with_a_running_turn_a_hung_host_and_a_hung_platform(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    never = asyncio.Event()
    host.model.script(say("part", never))
    async with service(tmp_path, configure(tmp_path, host, bot(telegram))) as running:
        await running.ready()
        await telegram.deliver(message(telegram, "work"))
        await telegram.until(lambda: bool(telegram.drafts))
        host.fail("*", delay=never)
        for method in ("getUpdates", "sendMessage", "sendMessageDraft"):
            telegram.fail(method, hold=never, times=None)
        sent = telegram.count("sendMessage")
        await telegram.deliver(message(telegram, "/help"))
        await telegram.until(lambda: telegram.count("sendMessage") > sent)
        assert await ended(running) < LIMIT
        assert any("left to the next start" in line for line in running.errors)
    never.set()


async def test_while_the_host_does_not_answer_the_first_question(
    host: FakeHarness, telegram: FakeTelegram, tmp_path: Path
) -> None:
    never = asyncio.Event()
    host.fail("*", delay=never)
    async with service(tmp_path, configure(tmp_path, host, bot(telegram))) as running:
        await eventually(lambda: bool(host.calls), SECONDS)
        assert await ended(running) < LIMIT / 2
        assert (running.out, telegram.calls) == ([], [])
        assert "Traceback" not in "\n".join(running.errors)
    never.set()


async def test_what_no_limit_of_ours_ends_is_ended_with_the_process() -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", HANGS, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(SECONDS):
        said, _ = await child.communicate()
    assert child.returncode == 1
    assert b"did not end in time" in said


def test_the_limits_of_the_parts_leave_the_last_resort_unused() -> None:
    assert DRAIN_SECONDS + FAREWELL_SECONDS + STOP_SECONDS + STOP_WITHIN < END_SECONDS < LIMIT

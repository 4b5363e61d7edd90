"""The terminal's chat when its input or output is closed, full, gone or paused."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from i18n import Key, Language, Words
from tests.bridges.chat_process import PROGRAM, SECONDS, environment, piped, run
from tests.fakes.harness import FakeHarness

EN = Words(Language.EN)
ENGLISH = ("--language", "en")
NO_OUTPUT = EN(Key.START_NO_OUTPUT, reason="").removesuffix("()")


def prompts(host: FakeHarness) -> int:
    return sum(call.name == "session/prompt" for call in host.calls)


def from_a_shell(home: Path, redirection: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the chat with one message; a shell can close and redirect what a program takes for granted."""
    command = ["sh", "-c", f'"$0" chat "$@" {redirection}', PROGRAM, *options, *ENGLISH]
    return subprocess.run(  # noqa: S603 - our own program
        command, input="/help\n", capture_output=True, text=True, timeout=SECONDS, env=environment(home), check=False
    )


async def test_a_closed_input_holds_no_message(tmp_path: Path) -> None:
    async with FakeHarness() as host:
        ended = await asyncio.to_thread(from_a_shell, tmp_path, "<&-", "--harness", host.url)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert host.base in ended.stderr


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
@pytest.mark.parametrize("message", [(), ("--once", "/help")])
async def test_a_reply_that_cannot_be_printed_is_exit_code_1(
    tmp_path: Path, redirection: str, message: tuple[str, ...]
) -> None:
    async with FakeHarness() as host:
        ended = await asyncio.to_thread(from_a_shell, tmp_path, redirection, "--harness", host.url, *message)
    assert ended.returncode == 1
    assert NO_OUTPUT in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_messages_whose_replies_nobody_reads_are_not_run(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    async with FakeHarness() as host, piped(tmp_path, "--harness", host.url, out=writer) as chat:
        os.close(writer)
        os.close(reader)
        chat.say("/help")
        async with asyncio.timeout(SECONDS):
            assert await chat.child.wait() == 1
        assert prompts(host) == 0


async def test_a_reader_that_pauses_holds_up_neither_the_chat_nor_its_end(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    async with FakeHarness() as host, piped(tmp_path, "--harness", host.url, *ENGLISH, out=writer) as chat:
        os.close(writer)
        for _ in range(60):
            chat.say("/help")  # far more than a pipe holds
        chat.say("hello")
        async with asyncio.timeout(SECONDS):
            await host.until(lambda: prompts(host) == 1)
            chat.child.send_signal(signal.SIGTERM)
            assert await chat.child.wait() == 130
    os.close(reader)


async def test_none_of_many_replies_at_once_is_lost(tmp_path: Path) -> None:
    async with FakeHarness() as host:
        host.session("session-many").dialogue(2)
        code, out, _ = await run(
            tmp_path, "--harness", host.url, "--session", "session-many", stdin=b"/history\n" * 300
        )
    assert (code, len(out.splitlines())) == (0, 300)

"""What the program does where its output cannot be written, or not in every character."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from i18n import Key, Language, Words
from tests.bridges.chat_process import PROGRAM, SECONDS, environment
from tests.bridges.test_run import bot, configure, message
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import TELLER, FakeTelegram

NO_OUTPUT = Words(Language.ZH)(Key.START_NO_OUTPUT, reason="No space left on device")


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


@pytest.fixture
def config(tmp_path: Path, host: FakeHarness, telegram: FakeTelegram) -> Path:
    file = configure(tmp_path, host, bot(telegram))
    file.chmod(0o600)
    return file


async def run(home: Path, command: str, config: Path, **variables: str) -> tuple[int | None, str, str]:
    """Run a line of shell in which $0 is the program; return exit code, output and errors."""
    child = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        command,
        PROGRAM,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home) | {"NO_PROXY": "*", "HARNESS_IM_CONFIG": str(config)} | variables,
    )
    async with asyncio.timeout(SECONDS):
        out, errors = await child.communicate()
    encoding = variables.get("PYTHONIOENCODING", "utf-8")
    return child.returncode, out.decode(encoding), errors.decode(encoding)


@pytest.mark.parametrize("arguments", ["--help", "doctor --offline", "doctor --offline --json", "bots --json"])
async def test_a_full_output_ends_a_command_with_a_word(arguments: str, config: Path, tmp_path: Path) -> None:
    said = await run(tmp_path, f'exec "$0" {arguments} > /dev/full', config)
    assert said == (1, "", f"{NO_OUTPUT}\n")


@pytest.mark.parametrize("redirection", ["> /dev/full 2>&1", ">&- 2>&-", "2> /dev/full > /dev/full"])
async def test_nothing_is_said_where_nothing_can_be(redirection: str, config: Path, tmp_path: Path) -> None:
    code, *said = await run(tmp_path, f'exec "$0" bots {redirection}', config)
    assert said == ["", ""]
    assert code == (0 if "&-" in redirection else 1), "what is closed was not wanted"


@pytest.mark.parametrize("lost", ["full", "unread", "closed"])
async def test_bots_are_served_though_nobody_can_be_told(
    lost: str, config: Path, tmp_path: Path, telegram: FakeTelegram
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    child = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'exec "$0" run >&-', PROGRAM) if lost == "closed" else (PROGRAM, "run"),
        stdout=os.open("/dev/full", os.O_WRONLY) if lost == "full" else writer,
        stderr=asyncio.subprocess.PIPE,
        env=environment(tmp_path) | {"NO_PROXY": "*", "HARNESS_IM_CONFIG": str(config)},
    )
    os.close(writer)
    try:
        await telegram.deliver(message(telegram, "hello"))
        await telegram.until(lambda: telegram.texts(TELLER) == ["You said: hello"])
        child.terminate()
        async with asyncio.timeout(SECONDS):
            _, errors = await child.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    assert child.returncode == 0
    assert (b"output lost" in errors) is (lost != "closed")
    assert b"Traceback" not in errors


@pytest.mark.parametrize("encoding", ["latin-1", "gbk"])
async def test_what_an_encoding_lacks_is_escaped(encoding: str, config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace('language = "en"', 'language = "zh"'))
    code, table, errors = await run(tmp_path, 'exec "$0" doctor --offline', config, PYTHONIOENCODING=encoding)
    assert (code, errors) == (0, "")
    assert "\\u2713" in table, "the mark of what is good"
    code, out, errors = await run(tmp_path, 'exec "$0" doctor --offline --json', config, PYTHONIOENCODING=encoding)
    assert (code, errors) == (0, "")
    assert Words(Language.ZH)(Key.PLATFORM_SKIPPED) in [each["text"] for each in json.loads(out)["findings"]]

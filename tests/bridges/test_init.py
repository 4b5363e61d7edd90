"""``harness-im init``: asked in a terminal in both languages, told by options, and what it leaves when broken off."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridges.cli import main
from bridges.cli.examination import packages
from bridges.config import Telegram, Weixin, load
from bridges.secret import Secret
from i18n import Key, Language, Words
from tests.bridges.chat_process import PROGRAM, SECONDS, ScreenChat, on_terminal
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import FakeTelegram

EN, ZH = Words(Language.EN), Words(Language.ZH)
ENTER, CTRL_C, CTRL_D = "\n", "\x03", "\x04"


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "config.toml"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def left_over(file: Path) -> list[Path]:
    return [path for path in file.parent.rglob("*") if path.is_file()] if file.parent.exists() else []


# -- asked in a terminal -----------------------------------------------------------------------------------------------


async def answer(screen: ScreenChat, question: str, keys: str) -> None:
    """Wait for a question that was not there before, and answer it."""
    await screen.until(question)
    screen.shown = screen.shown.replace(question, "")
    screen.type(keys + ENTER)


async def ended(screen: ScreenChat) -> int:
    async with asyncio.timeout(SECONDS):
        return await screen.child.wait()


@pytest.mark.parametrize("language", Language)
async def test_a_person_is_asked_in_their_language_and_runs_what_was_written(
    language: Language, file: Path, tmp_path: Path, host: FakeHarness, telegram: FakeTelegram
) -> None:
    words, everything = Words(language), ""
    locale = {"LC_ALL": "", "LANG": "en_GB.UTF-8" if language is Language.EN else "zh_CN.UTF-8"}
    options = ("init", "--config", str(file), "--endpoint", f"api={telegram.api}")
    async with on_terminal(tmp_path, *options, variables=locale) as screen:
        await answer(screen, f"(zh, en) [{language}]", "")
        await answer(screen, words(Key.INIT_HARNESS)[:20], host.url)
        await answer(screen, words(Key.INIT_CHANNEL), "1")
        await answer(screen, f"{words(Key.INIT_NAME)} [telegram]", "")
        everything += await screen.until("env:")
        assert words(Key.INIT_HINT_TELEGRAM)[:20] in everything
        await answer(screen, "env:", "700:a-token-that-nobody-knows")
        await answer(screen, words(Key.INIT_OWNER)[:20], "")
        everything += await screen.until(words(Key.INIT_WHAT_NOW))
        assert "✗" in everything
        await answer(screen, words(Key.INIT_WHAT_NOW), "r")
        await answer(screen, "env:", telegram.token)
        await answer(screen, words(Key.INIT_OWNER)[:20], "1001")
        await answer(screen, words(Key.INIT_ANOTHER), "")
        code = await ended(screen)
        everything += await screen.until("harness-im run --config")
    assert code == 0
    assert words(Key.PLATFORM_ACCEPTED, detail="@ThisBot", channel="") in everything
    for secret in (telegram.token, "a-token-that-nobody-knows", host.login.token):
        assert secret not in everything
    config = load(file, {})
    assert config.language is language
    assert config.harness.address is not None
    assert config.harness.address.base == host.base
    (made,) = config.bots
    assert isinstance(made, Telegram)
    assert (made.name, made.token) == ("telegram", Secret(telegram.token))
    assert made.access.owners == {"1001"}
    assert made.access.direct == "pairing"
    assert {mode(path) for path in left_over(file)} == {0o600}
    assert telegram.token not in file.read_text()


async def test_several_platforms_are_asked_for_one_after_the_other(
    file: Path, tmp_path: Path, telegram: FakeTelegram
) -> None:
    options = ("init", "--config", str(file), "--language", "en", "--harness", "", "--endpoint", f"api={telegram.api}")
    async with on_terminal(tmp_path, *options, variables={"TOKEN": telegram.token}) as screen:
        await answer(screen, EN(Key.INIT_CHANNEL), "99")
        await answer(screen, EN(Key.INIT_CHANNEL), "Telegram")
        await answer(screen, EN(Key.INIT_NAME), "two words")
        await answer(screen, EN(Key.INIT_NAME), "me")
        await answer(screen, "env:", "env:TOKEN")
        await answer(screen, EN(Key.INIT_OWNER)[:20], "")
        await answer(screen, EN(Key.INIT_ANOTHER), "y")
        await answer(screen, EN(Key.INIT_CHANNEL), "weixin")
        await answer(screen, EN(Key.INIT_NAME), "me")
        await answer(screen, EN(Key.INIT_NAME), "mine")
        await answer(screen, EN(Key.INIT_OWNER)[:20], "")
        await answer(screen, EN(Key.INIT_ANOTHER), "")
        await answer(screen, EN(Key.INIT_LOG_IN_NOW), "n")
        shown = await screen.until("harness-im run --config")
        assert await ended(screen) == 0
    assert EN(Key.INIT_NO_CHANNEL) in shown
    assert EN(Key.INIT_NAME_TAKEN, name="me")[:30] in shown
    for command in ("pair approve CODE", "login weixin"):
        assert f"harness-im {command} --config {file}" in shown.replace("\r\n", "")
    assert EN(Key.INIT_VARIABLES, names="TOKEN") in shown
    first, weixin = load(file, {"TOKEN": telegram.token}).bots
    assert isinstance(weixin, Weixin)
    assert weixin.endpoints.api is None
    assert (first.name, weixin.name) == ("me", "mine")
    assert left_over(file) == [file], "what the environment holds is not copied"


async def left(screen: ScreenChat, key: str) -> int:
    """Press a key until the program is gone: it may overlook one that comes just as it begins to wait."""
    ending = asyncio.create_task(screen.child.wait())
    async with asyncio.timeout(SECONDS):
        while not ending.done():
            screen.type(key)
            await asyncio.wait({ending}, timeout=1)
    return ending.result()


STEPS = ("(zh, en)", "Harness", "Which one", "Name of the bot", "env:", "Your id", "Add another")


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
@pytest.mark.parametrize("step", range(len(STEPS)))
async def test_leaving_anywhere_leaves_nothing(
    step: int, key: str, file: Path, tmp_path: Path, telegram: FakeTelegram
) -> None:
    answers = dict(zip(STEPS, ("en", "", "telegram", "", telegram.token, "", ""), strict=True))
    options = ("init", "--config", str(file), "--endpoint", f"api={telegram.api}")
    async with on_terminal(tmp_path, *options) as screen:
        for question in STEPS[:step]:
            await answer(screen, question, answers[question])
        await screen.until(STEPS[step])
        code = await left(screen, key)
        shown = await screen.until(EN(Key.INIT_STOPPED) if step else ZH(Key.INIT_STOPPED))
    assert code == 130
    assert "Traceback" not in shown
    assert not file.parent.exists()


async def test_leaving_while_a_platform_is_asked_leaves_nothing(
    file: Path, tmp_path: Path, telegram: FakeTelegram
) -> None:
    telegram.fail("getMe", hold=asyncio.Event(), times=None)
    options = ("init", "--config", str(file), "--endpoint", f"api={telegram.api}", "--language", "en", "--pairing")
    async with on_terminal(tmp_path, *options, "--channel", "telegram", "--harness", "") as screen:
        await answer(screen, "[telegram]", "")
        await answer(screen, "env:", telegram.token)
        await telegram.until(lambda: telegram.count("getMe") > 0)
        assert await left(screen, CTRL_C) == 130
        shown = await screen.until(EN(Key.INIT_STOPPED))
    assert "Traceback" not in shown
    assert not file.parent.exists()


OLD = b"""# by hand\r
language = "en"   # kept
[state]\r
path = "state.db"

[[bot]]        # the first
name = "ops"\tchannel = "telegram"
"""


async def test_a_file_that_is_there_is_added_to_and_its_text_stays(
    file: Path, tmp_path: Path, telegram: FakeTelegram
) -> None:
    old = OLD.replace(b"\tchannel", b"\nchannel") + b'token = { env = "NOT_SET_HERE" }\n# the end'
    file.parent.mkdir()
    file.write_bytes(old)
    file.chmod(0o644)
    options = ("init", "--config", str(file), "--channel", "telegram", "--endpoint", f"api={telegram.api}")
    async with on_terminal(tmp_path, *options) as screen:
        await answer(screen, "[a]", "")
        await answer(screen, "[telegram]", "ops")
        await answer(screen, "[telegram]", "")
        await answer(screen, "env:", telegram.token)
        await answer(screen, EN(Key.INIT_OWNER)[:20], "")
        shown = await screen.until("harness-im run --config")
        assert await ended(screen) == 0
    assert EN(Key.INIT_NARROWED)[:30] in shown
    assert file.read_bytes().startswith(old)
    assert mode(file) == 0o600
    assert [bot.name for bot in load(file, {"NOT_SET_HERE": "1:a"}).bots] == ["ops", "telegram"]


@pytest.mark.parametrize(("keys", "stays"), [(("q",), True), (("r", "n"), True), (("r", "y"), False)])
async def test_a_file_is_replaced_only_when_a_person_says_so_twice(
    keys: tuple[str, ...], stays: bool, file: Path, tmp_path: Path
) -> None:
    file.parent.mkdir()
    file.write_text('language = "en"\n')
    async with on_terminal(tmp_path, "init", "--config", str(file), "--channel", "weixin", "--harness", "") as screen:
        await answer(screen, "[a]", keys[0])
        for key in keys[1:]:
            await answer(screen, EN(Key.INIT_REPLACE_SURE)[:20], key)
        if not stays:
            await answer(screen, "[weixin]", "")
            await answer(screen, EN(Key.INIT_OWNER)[:20], "")
            await answer(screen, EN(Key.INIT_LOG_IN_NOW), "n")
        assert await ended(screen) == (1 if stays else 0)
    assert (file.read_text() == 'language = "en"\n') is stays


async def test_a_person_is_not_asked_again_for_what_an_option_says(file: Path, tmp_path: Path) -> None:
    options = ("--config", str(file), "--channel", "weixin", "--harness", "", "--endpoint", "api=nowhere", "--pairing")
    async with on_terminal(tmp_path, "init", "--language", "en", *options) as screen:
        await answer(screen, "[weixin]", "")
        assert await ended(screen) == 2
        await screen.until("bot[0].endpoints.api")
    assert not file.parent.exists()


# -- told by options ---------------------------------------------------------------------------------------------------


async def init(file: Path, *options: str, stdin: str | None = None, **variables: str) -> Result:
    words = ["init", "--config", str(file), "--language", "en", *options]
    return await asyncio.to_thread(CliRunner().invoke, main, words, input=stdin, env=variables)


GOOD = ("--channel", "telegram", "--set", "token=env:TOKEN", "--pairing")


@pytest.mark.parametrize(
    ("without", "named"), [("--channel", "--channel"), ("--set", "--set token"), ("--pairing", "--owner ID, --pairing")]
)
async def test_what_is_missing_is_named(without: str, named: str, file: Path) -> None:
    at = GOOD.index(without)
    options = GOOD[:at] + GOOD[at + (1 if without == "--pairing" else 2) :]
    options = options if without != "--channel" else ("--pairing",)
    result = await init(file, "--no-check", *options, TOKEN="1:a")
    assert (result.exit_code, result.stdout) == (2, "")
    assert named in result.stderr
    assert not file.parent.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--channel", "telegram", "--set", "token=1:secret"), EN(Key.INIT_IN_THE_OPEN, field="token")),
        (("--channel", "telegram", "--set", "token=env"), EN(Key.INIT_IN_THE_OPEN, field="token")),
        (("--channel", "telegram", "--set", "app_id=1"), "app_id"),
        (("--channel", "telegram", "--set", "token"), EN(Key.INIT_MALFORMED, flag="--set")),
        ((*GOOD, "--endpoint", "api"), EN(Key.INIT_MALFORMED, flag="--endpoint")),
        ((*GOOD, "--endpoint", "api=ftp://x"), "bot[0].endpoints.api"),
        ((*GOOD, "--endpoint", "door=https://x"), "bot[0].endpoints.door"),
        ((*GOOD, "--name", "two words"), "bot[0].name"),
        ((*GOOD[:-1], "--owner", "*"), "bot[0].access.owners"),
        (("--channel", "telegram", "--set", "token=env:NOWHERE", "--pairing"), "$NOWHERE"),
        (("--channel", "telegram", "--set", "token=file:/nowhere", "--pairing"), "/nowhere"),
        ((*GOOD, "--harness", "not an address"), "harness.url"),
        ((*GOOD[:-1], "--owner", "\udcff"), EN(Key.INIT_NOT_TEXT)),
    ],
)
async def test_what_cannot_be_is_refused(options: tuple[str, ...], said: str, file: Path) -> None:
    result = await init(file, "--no-check", *options, TOKEN="1:a")
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "1:secret" not in result.output
    assert not file.parent.exists()


async def test_what_the_platform_refuses_is_not_written_unless_it_must(file: Path, telegram: FakeTelegram) -> None:
    options = (*GOOD, "--endpoint", f"api={telegram.api}")
    result = await init(file, *options, TOKEN="1:nobody-knows")
    assert (result.exit_code, file.parent.exists()) == (1, False)
    assert EN(Key.PLATFORM_BAD_CREDENTIAL, channel="Telegram", detail="token") in result.stderr
    assert EN(Key.INIT_WRONG) in result.stderr
    assert (await init(file, *options, "--no-check", TOKEN="1:nobody-knows")).exit_code == 0
    assert load(file, {"TOKEN": "1:a"}).bots


async def test_a_host_that_is_not_there_is_told(file: Path) -> None:
    result = await init(file, *GOOD, "--harness", "http://127.0.0.1:1/?token=t-of-a-host", TOKEN="1:a")
    assert (result.exit_code, file.parent.exists()) == (1, False)
    assert EN(Key.START_UNREACHABLE, address="http://127.0.0.1:1") in result.stderr
    assert "t-of-a-host" not in result.output


async def test_a_secret_may_come_over_standard_input(file: Path, telegram: FakeTelegram) -> None:
    options = ("--channel", "telegram", "--set", "token=-", "--owner", "7", "--endpoint", f"api={telegram.api}")
    result = await init(file, *options, stdin=f"{telegram.token}\n")
    assert result.exit_code == 0, result.output
    secret = file.parent / "secrets" / "telegram-token"
    assert (secret.read_text(), mode(secret), mode(secret.parent)) == (telegram.token, 0o600, 0o700)
    assert load(file, {}).bots[0].access.owners == {"7"}
    assert telegram.token not in result.output


async def test_closed_input_and_output_are_nobody(file: Path) -> None:
    closed = f'exec "{PROGRAM}" init --config "{file}" --channel telegram --set token=- --pairing --no-check <&- >&-'
    child = await asyncio.create_subprocess_exec("sh", "-c", closed, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(SECONDS):
        _, errors = await child.communicate()
    assert child.returncode == 2
    assert "--set token" in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_a_second_run_adds_and_force_writes_anew(file: Path) -> None:
    options = ("--channel", "weixin", "--pairing")
    for _ in range(2):
        assert (await init(file, *options)).exit_code == 0
    assert [bot.name for bot in load(file, {}).bots] == ["weixin", "weixin-2"]
    taken = await init(file, *options, "--name", "weixin")
    assert (taken.exit_code, EN(Key.INIT_NAME_TAKEN, name="weixin") in taken.stderr) == (2, True)
    assert (await init(file, *options, "--force")).exit_code == 0
    assert [bot.name for bot in load(file, {}).bots] == ["weixin"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"language = \n", Key.CONFIG_SYNTAX),
        (b"\xff", Key.CONFIG_SYNTAX),
        (b'bot = [{ name = "a", channel = "weixin" }]\n', Key.INIT_CANNOT_EXTEND),
        (b"bot = 7\n", Key.INIT_CANNOT_EXTEND),
    ],
)
async def test_a_file_that_cannot_be_added_to_stays(text: bytes, said: Key, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(text)
    result = await init(file, "--channel", "weixin", "--pairing")
    assert result.exit_code == 2
    assert EN(said, path=file, place="…").partition("…")[0] in result.stderr
    assert left_over(file) == [file]
    assert file.read_bytes() == text


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to(path)])
async def test_what_is_no_file_is_told(make: Callable[[Path], object], file: Path) -> None:
    file.parent.mkdir()
    make(file)
    result = await init(file, "--channel", "weixin", "--pairing")
    assert result.exit_code == 1
    assert EN(Key.INIT_UNWRITTEN, path=file, reason="…").partition("…")[0] in result.stderr


async def test_the_extra_that_is_missing_is_named(
    file: Path, telegram: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "missing", lambda extra: extra == "telegram")
    monkeypatch.setitem(sys.modules, "telegram", None)
    result = await init(file, *GOOD, "--endpoint", f"api={telegram.api}", TOKEN=telegram.token)
    assert EN(Key.INIT_NEEDS, extra="telegram") in result.stderr
    assert EN(Key.PLATFORM_NOT_INSTALLED, detail="telegram", channel="Telegram") in result.stderr
    assert result.exit_code == 0, "it can be installed later"

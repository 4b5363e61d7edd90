"""Every command of the READMEs and of the pages is run as it stands there, or is listed here with the reason why not.

Platforms and, unless marked live, the Harness are fakes; what a page can only stand in for (a code, an id, an address)
is put in its place.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from bridges.cli.smoking.record import INTERRUPTED
from bridges.config import load
from bridges.demo_model import DemoModel
from bridges.weixin.account import Accounts
from harness_client.embedded import RuntimeMissing, bundled_command
from i18n import Key, Language, Words
from tests.archive.native import DshLines
from tests.archive.test_writers import completion, endpoint
from tests.bridges.chat_process import PROGRAM, on_terminal
from tests.bridges.test_init import answer, ended
from tests.channels.test_weixin_login import CONFIRMED
from tests.channels.test_whatsapp_setup import OPEN, QR, Machine
from tests.channels.weixin import platform as weixin_platform
from tests.docs.pages import blocks, read
from tests.docs.shell import SECONDS, Shell, checkout, commands, path, prepared
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import FakeTelegram
from tests.fakes.telegram.updates import private
from tests.fakes.waiting import eventually
from tests.guards.sources import PACKAGES

EN = Words(Language.EN)
PERSON = 123456
"""Whom the pages speak of."""

NOT_RUN = {
    "sh scripts/start": "a literal first start is a step of .ci/run, in a fresh clone with an empty home",
    "sh scripts/test": "it would run these tests within themselves; a step of .ci/run in a fresh clone",
    ".venv/bin/mypy": "it checks the whole tree for minutes; a step of .ci/run",
}
TREATED: dict[str, str] = {}
"""Every line that a test below types, and the test."""

_Test = Callable[..., Awaitable[None]]


def types(*lines: str) -> Callable[[_Test], _Test]:
    """Say which lines a test types, and hold it to that; it takes ``shell``."""

    def check(test: _Test) -> _Test:
        TREATED.update(dict.fromkeys(lines, test.__name__))

        @functools.wraps(test)
        async def run(*, shell: Shell, **fixtures: object) -> None:
            await test(shell=shell, **fixtures)
            assert set(lines) <= shell.typed, "listed, and not typed"

        return run

    return check


def test_every_command_is_run_or_says_why_not() -> None:
    assert commands() - TREATED.keys() - NOT_RUN.keys() == set(), (
        "new on a page: give each of these a test, or a reason"
    )
    assert (TREATED.keys() | NOT_RUN.keys()) - commands() == set(), "no page has these any more"


@pytest.mark.parametrize("command", NOT_RUN)
def test_not_run(command: str) -> None:
    """Counted, and named with its reason on the last page of the run."""
    pytest.skip(f"{command}: {NOT_RUN[command]}")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    return Shell(home, folder)


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


@pytest.fixture
async def telegram(shell: Shell) -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as made:
        shell.environ["TELEGRAM_TOKEN"] = made.token
        yield made


def configure(shell: Shell, *tables: str, harness: str | None = None) -> Path:
    """Write ``config.toml`` where the shell is, and name it in its environment as well."""
    file = shell.folder / "config.toml"
    head = 'language = "en"\n[state]\npath = "state/state.db"\n'
    head += f'[harness]\nurl = "{harness}"\n' if harness else ""
    file.write_text(head + "".join(tables), "utf-8")
    file.chmod(0o600)
    shell.environ["HARNESS_IM_CONFIG"] = str(file)
    return file


def ops(telegram: FakeTelegram) -> str:
    return (
        '[[bot]]\nname = "ops"\nchannel = "telegram"\ntoken = { env = "TELEGRAM_TOKEN" }\n'
        f'[bot.endpoints]\napi = "{telegram.api}"\n'
    )


async def line_with(child: asyncio.subprocess.Process, text: str) -> str:
    """Read what a running program says until a line has ``text``."""
    assert child.stdout is not None
    async with asyncio.timeout(SECONDS):
        while text not in (line := (await child.stdout.readline()).decode()):
            assert line, "the program ended"
    return line


async def write(telegram: FakeTelegram, text: str, sender: int = PERSON) -> None:
    await telegram.deliver(telegram.write.update(telegram.write.message(text, sender=sender, chat=private(sender))))


@asynccontextmanager
async def served(shell: Shell, command: str, host: FakeHarness, telegram: FakeTelegram) -> AsyncIterator[str]:
    """Run one Telegram bot by a line of the pages; yields where its figures are. SIGTERM ends it."""
    configure(shell, '[metrics]\nlisten = "127.0.0.1:0"\n', ops(telegram), harness=host.url)
    async with shell.running(command) as program:
        assert EN(Key.RUN_UP, bot="telegram/ops") in await line_with(program, "telegram/ops")
        yield re.findall(r"http://127\.0\.0\.1:\d+", await line_with(program, "/metrics"))[0]
        program.send_signal(signal.SIGTERM)
        assert await program.wait() == 0


@types(
    "harness-im run --config config.toml",
    "harness-im pair list",
    "harness-im pair approve CODE",
    "harness-im pair approve CODE --config config.toml",
    "harness-im pair revoke ops 123456",
)
async def test_letting_people_in(*, shell: Shell, host: FakeHarness, telegram: FakeTelegram) -> None:
    async with served(shell, "harness-im run --config config.toml", host, telegram):
        for person, command in (
            (PERSON, "harness-im pair approve CODE"),
            (PERSON + 1, "harness-im pair approve CODE --config config.toml"),
        ):
            await write(telegram, "hello", person)
            await _hears(telegram, person, 1)
            code = (await shell.run("harness-im pair list")).out.split()[0]
            assert code in telegram.texts(person)[0]
            assert (await shell.run(command, {"CODE": code})).code == 0
            await _hears(telegram, person, 2)
        await write(telegram, "hello")
        await _hears(telegram, PERSON, 3)
        assert telegram.texts(PERSON)[-1] == "You said: hello"
        assert (await shell.run("harness-im pair revoke ops 123456")).code == 0


async def _hears(telegram: FakeTelegram, person: int, count: int) -> None:
    await telegram.until(lambda: len(telegram.texts(person)) == count)


@types(
    "harness-im run",
    "harness-im bots",
    "harness-im bots --json",
    "harness-im sessions",
    "harness-im sessions --full",
    "harness-im reload",
    "harness-im health",
)
async def test_looking_at_a_running_program(*, shell: Shell, host: FakeHarness, telegram: FakeTelegram) -> None:
    async with served(shell, "harness-im run", host, telegram):
        await eventually(lambda: _is_up(shell), SECONDS)
        assert "telegram/ops" in (await shell.run("harness-im bots")).out
        for command in ("harness-im sessions", "harness-im sessions --full", "harness-im reload", "harness-im health"):
            assert (done := await shell.run(command)).code == 0, done


@types(
    "curl -s http://127.0.0.1:9464/healthz",
    "curl -s http://127.0.0.1:9464/readyz",
    "curl -s http://127.0.0.1:9464/metrics",
)
async def test_figures_and_health(*, shell: Shell, host: FakeHarness, telegram: FakeTelegram) -> None:
    if shutil.which("curl", path=path()) is None:
        pytest.skip("curl …/healthz, /readyz, /metrics: there is no curl here")
    async with served(shell, "harness-im run", host, telegram) as address:
        for page, said in (("healthz", "alive"), ("readyz", "telegram/ops"), ("metrics", "bridge_channel_up")):
            here = {"http://127.0.0.1:9464": address}
            assert said in (await shell.run(f"curl -s http://127.0.0.1:9464/{page}", here)).out


async def _is_up(shell: Shell) -> bool:
    """What a running program tells of its bots it writes down within a second."""
    (bot,) = json.loads((await shell.run("harness-im bots --json")).out)
    return bool(bot["state"] == "up")


@types("harness-im doctor", "harness-im doctor --config config.toml", "harness-im doctor --json")
async def test_the_doctor(*, shell: Shell, host: FakeHarness, telegram: FakeTelegram) -> None:
    configure(shell, ops(telegram), harness=host.url)
    for command in ("harness-im doctor", "harness-im doctor --config config.toml"):
        done = await shell.run(command)
        assert done.code == 0, done
        assert EN(Key.DOCTOR_WELL) in done.out
    assert json.loads((await shell.run("harness-im doctor --json")).out)["ok"]


async def _sums_up(_: web.Request) -> web.Response:
    return completion("in short")


@types(
    "harness-im init --config config.toml",
    "harness-im init --config config.toml --channel telegram --set token=env:TELEGRAM_TOKEN --pairing",
)
async def test_setting_up(*, shell: Shell, telegram: FakeTelegram) -> None:
    """Asked in a terminal, then told by options; the platform that is asked is the fake."""
    here = f" --endpoint api={telegram.api}"
    file = shell.folder / "config.toml"
    asked = "harness-im init --config config.toml"
    shell.typed.add(asked)
    words = shlex.split(f"{asked.replace('config.toml', str(file))} --language en{here}")
    async with on_terminal(shell.home, *words[1:]) as screen:
        await answer(screen, EN(Key.INIT_HARNESS)[:20], "")
        await answer(screen, EN(Key.INIT_CHANNEL), "telegram")
        await answer(screen, f"{EN(Key.INIT_NAME)} [telegram]", "ops")
        await answer(screen, "env:", telegram.token)
        await answer(screen, EN(Key.INIT_OWNER)[:20], "")
        await answer(screen, EN(Key.INIT_ANOTHER), "")
        assert await ended(screen) == 0
    assert [bot.name for bot in load(file, {}).bots] == ["ops"]
    file.unlink()
    told = f"{asked} --channel telegram --set token=env:TELEGRAM_TOKEN --pairing"
    assert (done := await shell.run(told, {"--pairing": f"--pairing{here}"})).code == 0, done
    assert [bot.name for bot in load(file, shell.environ).bots] == ["telegram"]


@types("harness-im smoke --simulated")
async def test_the_smoke_test(*, shell: Shell) -> None:
    """On one channel only, for time; tests/contract has the same cases on all."""
    done = await shell.run("harness-im smoke --simulated", {"--simulated": "--simulated --channel qq --report report"})
    assert done.code == 0, done
    assert list((shell.folder / "report").glob("*.json"))


@types("harness-im smoke --live")
async def test_the_walk(*, shell: Shell, host: FakeHarness, telegram: FakeTelegram) -> None:
    """Up to its first question: tests/smoke goes all the way, on every channel."""
    folder = configure(shell, ops(telegram), harness=host.url).parent / "state" / "smoke"
    async with shell.running("harness-im smoke --live") as program:
        await line_with(program, EN(Key.SMOKE_CONNECTING_ELSEWHERE, bot="telegram/ops"))
        program.send_signal(signal.SIGINT)
        assert await program.wait() == INTERRUPTED
    (report,) = folder.glob("*.json")
    lines = json.loads(report.read_text("utf-8"))["lines"]
    assert {line["result"] for line in lines if line["marked"] == "live"} == {"not done"}


@types(
    "harness-im history search database",
    "harness-im history search --from 2026-03-01 --json",
    "harness-im history read 160dcba6699ee5b6ce26",
    "harness-im history refresh",
    "harness-im history summarize",
    "harness-im history install-pi",
)
async def test_past_questions(*, shell: Shell) -> None:
    sessions = DshLines("session-x", shell.folder)
    for number in range(4):
        sessions = sessions.pair(f"question {number}", "the DATABASE")
    sessions.save(shell.home / ".dsh")
    assert "DATABASE" in (await shell.run("harness-im history search database")).out
    found = json.loads((await shell.run("harness-im history search --from 2026-03-01 --json")).out)
    name = found["results"][0]["id"]
    assert (
        "question"
        in (await shell.run("harness-im history read 160dcba6699ee5b6ce26", {"160dcba6699ee5b6ce26": name})).out
    )
    assert (await shell.run("harness-im history refresh")).code == 0
    async with endpoint(_sums_up) as model:
        shell.environ |= {"DEEPSEEK_BASE_URL": model, "DEEPSEEK_API_KEY": "fake"}
        assert (done := await shell.run("harness-im history summarize")).code == 0, done
    assert (await shell.run("harness-im history install-pi")).code == 0
    assert list((shell.home / ".pi").rglob("pbot-history.ts"))


@types("harness-im slack manifest --language en")
async def test_the_manifest(*, shell: Shell) -> None:
    manifest = json.loads((await shell.run("harness-im slack manifest --language en")).out)
    page = read("docs/en/channels/slack.md")
    for named in (
        *manifest["oauth_config"]["scopes"]["bot"],
        *manifest["settings"]["event_subscriptions"]["bot_events"],
    ):
        assert f"`{named}`" in page


@types("harness-im login weixin")
async def test_the_login(*, shell: Shell) -> None:
    async with weixin_platform() as fake:
        fake.logins.extend([{"status": "scaned"}, CONFIRMED])
        bot = f'[[bot]]\nname = "me"\nchannel = "weixin"\n[bot.endpoints]\napi = "{fake.url}"\n'
        state = configure(shell, bot).with_name("state")
        assert (done := await shell.run("harness-im login weixin")).code == 0, done
    assert [account.id for account in Accounts(state).read()] == [CONFIRMED["ilink_bot_id"]]


@types("harness-im whatsapp setup")
async def test_the_linked_device(*, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    machine.node(QR + OPEN)
    for program in ("sh", "env"):
        (machine.bin / program).symlink_to(f"/usr/bin/{program}")
    shell.environ |= {"PATH": f"{machine.bin}:{Path(PROGRAM).parent}", "HARNESS_IM_CONFIG": str(machine.config)}
    done = await shell.run("harness-im whatsapp setup", stdin="y\n")
    assert done.code == 0, done
    assert "me is linked" in done.out


@types("sh scripts/start --harness 'http://127.0.0.1:3080/?token=...'")
async def test_a_harness_that_runs(*, shell: Shell, tmp_path: Path, host: FakeHarness) -> None:
    shell.folder = checkout(tmp_path)
    await prepared(shell.folder)
    put = {"http://127.0.0.1:3080/?token=...": host.url}
    done = await shell.run("sh scripts/start --harness 'http://127.0.0.1:3080/?token=...'", put, stdin="hello\n")
    assert done.code == 0, done
    assert "You said: hello" in done.out


@pytest.mark.live
@types("DEEPSEEK_API_KEY=sk-... sh scripts/start")
async def test_a_key_reaches_the_model(*, shell: Shell, tmp_path: Path) -> None:
    """The literal line, the real Harness, and a model of ours in the place of the one that costs money."""
    try:
        bundled_command()
    except RuntimeMissing as missing:
        pytest.skip(str(missing))
    shell.folder = checkout(tmp_path)
    await prepared(shell.folder)
    async with DemoModel() as model:
        shell.environ["DEEPSEEK_BASE_URL"] = model.url
        done = await shell.run("DEEPSEEK_API_KEY=sk-... sh scripts/start", stdin="hello\n")
        assert done.code == 0, done
        assert "hello" in done.out
        assert model.asked


@types('export PATH="$PWD/.venv/bin:$PATH"', "python -m pip install 'harness-im[telegram]'")
async def test_an_extra(*, shell: Shell, tmp_path: Path) -> None:
    """No index is asked: what the extra brings is here already, and an extra that is none would be told."""
    shell.folder = checkout(tmp_path)
    await prepared(shell.folder)
    shell.environ |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    (block,) = [block for block in blocks(read("docs/en/quick-start.md"), "sh") if "pip install" in block]
    done = await shell.run(block.strip())
    assert done.code == 0, done
    assert "python-telegram-bot" in done.out
    assert "does not provide" not in done.err


@types(".venv/bin/python -m pytest tests/contract/test_table.py -k channel")
async def test_the_checklist_of_a_new_channel_is_a_test_that_fails(*, shell: Shell, tmp_path: Path) -> None:
    page = read("docs/en/new-channel.md")
    (table,), (expected,) = blocks(page, "python"), blocks(page, "text")
    shell.folder = checkout(tmp_path, *PACKAGES, "tests")
    await prepared(shell.folder)
    config = shell.folder / "bridges" / "config.py"
    text = config.read_text("utf-8")
    config.write_text(text.replace("\nAnyBot = ", f"\n{table}\n\nAnyBot = Example | "), "utf-8")
    shell.environ |= {"COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    done = await shell.run(".venv/bin/python -m pytest tests/contract/test_table.py -k channel")
    assert done.code == 1, done
    for line in expected.splitlines():
        assert line in done.out
    shutil.rmtree(shell.folder)


async def test_a_shell_tells_what_failed(shell: Shell) -> None:
    assert (await shell.run("harness-im no-such-command")).code == 2

"""``harness-im smoke`` as an operator uses it: the real program in a terminal, a fake host and a fake Telegram."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridges.cli.smoking import running
from bridges.cli.smoking.lines import CHANNELS, Item, Side, Verdict, Why
from bridges.cli.smoking.record import INTERRUPTED, UNDONE
from bridges.cli.smoking.report import ITEMS, SIDES, VERDICTS
from bridges.cli.smoking.steps import STEPS, STRANGER, Ask
from commands.model import AttachmentKind, ChatKind
from harness_client.types import Generation
from i18n import Key, Language, Words
from tests.bridges.chat_process import PROGRAM, SECONDS, ScreenChat, environment, on_terminal
from tests.bridges.test_run import service
from tests.contract.desk import desk_at
from tests.contract.rows import telegram
from tests.contract.rows.telegram import TelegramPlatform
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness

Report = dict[str, object]
WAIT = 60


@dataclass(frozen=True, slots=True)
class Stage:
    """A bot on a simulated Telegram whose member's chat is bound to a session of eight messages."""

    folder: Path
    config: Path
    platform: TelegramPlatform
    host: FakeHarness
    session: str

    def options(self, language: Language, *more: str) -> tuple[str, ...]:
        report = ("--report", str(self.folder / "report"), "--config", str(self.config))
        return ("smoke", "--language", language, *report, "--wait", str(WAIT), *more)

    async def obey(self, ask: Ask) -> None:
        await self.platform.says(
            ask.text,
            sender=self.platform.stranger if ask is STRANGER else None,
            chat=ask.kind,
            attachment=AttachmentKind.IMAGE if ask.attached else None,
        )

    def lines(self, side: Side) -> dict[str, dict[str, object]]:
        """Return the lines of the bot by item, from the report."""
        lines = report_of(self.folder)["lines"]
        assert isinstance(lines, list)
        return {line["item"]: line for line in lines if line["bot"] == "ops" and line["marked"] == side}


def report_of(folder: Path) -> Report:
    (file,) = (folder / "report").glob("*.json")
    told: Report = json.loads(file.read_text("utf-8"))
    return told


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    async with telegram.platform() as platform, FakeHarness(Generation.MODERN) as host:
        assert isinstance(platform, TelegramPlatform)
        async with desk_at(host, platform, folder, Language.EN) as desk:
            session = await desk.bind(messages=8)
        config = folder / "config.toml"
        config.write_text(f"""
language = "en"
[harness]
url = "{host.url}"
[state]
path = "{folder / "state.db"}"
[[bot]]
name = "ops"
channel = "telegram"
token = "{platform.fake.token}"
[bot.access]
direct = ["{platform.member}"]
group = ["{platform.member}"]
[bot.endpoints]
api = "{platform.fake.api}"
""")
        yield Stage(folder, config, platform, host, session.id)


async def told(screen: ScreenChat, ask: Ask, words: Words) -> None:
    """Wait until the operator is told to send this, and forget what was on the screen."""
    await screen.until(words(ask.how, text=ask.text, bot="telegram/ops", seconds=WAIT))
    screen.shown = ""


async def ended(screen: ScreenChat) -> int:
    async with asyncio.timeout(SECONDS):
        return await screen.child.wait()


@pytest.mark.parametrize("language", Language)
async def test_a_walk_in_a_terminal(language: Language, tmp_path: Path) -> None:
    words = Words(language)
    async with staged(tmp_path) as stage, on_terminal(tmp_path, *stage.options(language, "--live")) as screen:
        await screen.until(words(Key.SMOKE_HARMLESS))
        await screen.until(words(Key.SMOKE_CONNECTING_ELSEWHERE, bot="telegram/ops"))
        for ask in [*(ask for asks in STEPS.values() for ask in asks), STRANGER]:
            await told(screen, ask, words)
            await stage.obey(ask)
        await screen.until(words(Key.SMOKE_REPORTED, path="").rstrip())
        assert await ended(screen) == UNDONE
        assert words(Key.SMOKE_COUNTS, passed=0, failed=0, undone=len(Item)) in screen.shown, "live"
        assert words(Key.SMOKE_COUNTS, passed=len(STEPS) + 3, failed=0, undone=7) in screen.shown, "simulated"
        assert stage.host.writes == []

        done = stage.lines(Side.SIMULATED)
        assert {item for item, line in done.items() if line["result"] == Verdict.PASS} == {
            Item.CONNECT, *STEPS, Item.STRANGER, Item.ECHO
        }  # fmt: skip
        assert {line["why"] for line in done.values()} <= {None, Why.MODEL, Why.SWITCHES, Why.NOBODY}
        assert {line["result"] for line in stage.lines(Side.LIVE).values()} == {Verdict.NOT_DONE}
        calls = report_of(tmp_path)["harness_calls"]
        assert isinstance(calls, dict)
        assert set(calls) <= {"host.describe", "index", "login", "session/page", "session/projections", "session/list"}
        _says_nothing_private(stage, words)


def _says_nothing_private(stage: Stage, words: Words) -> None:
    files = sorted((stage.folder / "report").iterdir())
    assert [file.suffix for file in files] == [".json", ".log", ".md"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    text = "".join(file.read_text("utf-8") for file in files)
    secrets = (stage.platform.fake.token, stage.host.login.token)
    content = ("answer 3", "question 2", "00000000", stage.session, stage.platform.member, stage.platform.stranger)
    assert [each for each in (*secrets, *content) if each in text] == []
    markdown = files[-1].read_text("utf-8")
    table = [row for row in markdown.splitlines() if row.startswith("| ") and row.count(" | ") == 8]
    marks = {words(SIDES[side]) for side in Side}
    assert len(table) == 2 + len(Item) * (len(CHANNELS) + 1), "heading, rule, live lines and the simulated bot's"
    assert {row.split(" | ")[0].removeprefix("| ") for row in table[2:]} == marks
    live = [row for row in table if row.startswith(f"| {words(SIDES[Side.LIVE])} |")]
    assert all(f"| {words(VERDICTS[Verdict.NOT_DONE])} |" in row for row in live)
    assert all(words(key) in markdown for key in ITEMS.values())


async def test_hostile_messages_reach_no_model_and_ctrl_c_ends_with_a_report(tmp_path: Path) -> None:
    words = Words(Language.EN)
    first, second, third, *_ = (asks[0] for asks in STEPS.values())
    hostile = ("write a poem", "/new", "/session 1", "/model x", "/history 4", "/send")
    async with staged(tmp_path) as stage, on_terminal(tmp_path, *stage.options(Language.EN, "--live")) as screen:
        await told(screen, first, words)
        for text in hostile:
            await stage.platform.says(text)
        await stage.platform.says("hello", chat=ChatKind.GROUP)
        notice = words(Key.SMOKE_NOT_ASKED)
        await stage.platform.fake.until(lambda: stage.platform.heard().count(notice) == len(hostile))
        await stage.platform.fake.until(lambda: stage.platform.heard(ChatKind.GROUP) == [notice])
        await stage.obey(first)
        await told(screen, second, words)
        screen.type("/history 10\r")
        screen.type("\r")
        await told(screen, third, words)
        screen.type("\x03")
        await screen.until(words(Key.SMOKE_STOPPED))
        assert await ended(screen) == INTERRUPTED
        assert stage.host.writes == []
        lines = stage.lines(Side.SIMULATED)
        assert lines[Item.HISTORY]["result"] == Verdict.PASS
        assert lines[Item.HISTORY_MOST]["why"] == Why.SKIPPED
        assert {lines[item]["why"] for item in (Item.ATTACHMENT, Item.BATCH, Item.STRANGER)} == {Why.NOT_REACHED}
        assert report_of(tmp_path)["ended"]


async def test_killed_in_the_middle_the_report_is_there_and_true(tmp_path: Path) -> None:
    words = Words(Language.EN)
    first, second, *_ = (asks[0] for asks in STEPS.values())
    async with staged(tmp_path) as stage, on_terminal(tmp_path, *stage.options(Language.EN, "--live")) as screen:
        await told(screen, first, words)
        await stage.obey(first)
        await told(screen, second, words)
        screen.child.kill()
        await ended(screen)
        assert report_of(tmp_path)["ended"] is None
        lines = stage.lines(Side.SIMULATED)
        assert lines[Item.HISTORY]["result"] == Verdict.PASS
        assert lines[Item.HISTORY_MOST]["why"] == Why.NOT_REACHED


async def run(home: Path, *words: str, **variables: str) -> tuple[int, str, str]:
    """Run the program to its end, without input; return exit code, output and errors."""
    child = await asyncio.create_subprocess_exec(
        PROGRAM,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home) | variables,
    )
    async with asyncio.timeout(SECONDS * 2):
        out, err = await child.communicate()
    assert child.returncode is not None
    return child.returncode, out.decode(), err.decode()


async def test_a_running_program_is_named_and_left_alone(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, service(tmp_path, stage.config) as running:
        await running.ready()
        code, _, err = await run(tmp_path, *stage.options(Language.EN, "--live"))
        assert (code, err) == (1, Words(Language.EN)(Key.SMOKE_RUNS, pid=running.child.pid) + "\n")
        assert await running.stop() == 0
        assert stage.platform.fake.count("getMe") == 2, "only the running bot and the one before it logged in"


async def test_a_bot_that_does_not_connect_fails_and_the_rest_of_it_is_not_done(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.config.write_text(stage.config.read_text().replace(stage.platform.fake.token, "1:nobody-knows-this"))
        code, out, _ = await run(tmp_path, *stage.options(Language.EN, "--live"))
        lines = stage.lines(Side.SIMULATED)
        assert code == 1
        assert "nobody-knows-this" not in out
        assert (lines[Item.CONNECT]["result"], lines[Item.CONNECT]["detail"]) == (Verdict.FAIL, "needs-login")
        assert {lines[item]["why"] for item in (*STEPS, Item.STRANGER)} == {Why.NOT_CONNECTED}


@pytest.mark.parametrize("language", Language)
async def test_simulated_in_a_terminal(language: Language, tmp_path: Path) -> None:
    words = Words(language)
    options = ("smoke", "--simulated", "--channel", "wecom", "--language", language)
    async with on_terminal(tmp_path, *options, "--report", str(tmp_path / "report")) as screen:
        async with asyncio.timeout(50):
            code = await screen.child.wait()
        await screen.until(words(Key.SMOKE_REPORTED, path="").rstrip())
        assert code == 0, screen.shown
    assert words(Key.SMOKE_ALL_SIMULATED) in screen.shown
    counts = words(Key.SMOKE_COUNTS, passed=15, failed=0, undone=1)
    assert words(Key.SMOKE_CHANNEL_DONE, channel="wecom", counts=counts) in screen.shown
    lines = report_of(tmp_path)["lines"]
    assert isinstance(lines, list)
    assert len(lines) == len(Item) - 1 + len(CHANNELS) * len(Item)
    assert {(line["marked"], line["endpoint"]) for line in lines} == {("simulated", "fake"), ("live", "platform")}
    assert {(line["result"], line["why"]) for line in lines if line["marked"] == "live"} == {("not done", "not-asked")}
    undone = [(line["channel"], line["item"]) for line in lines if line["why"] == "platform"]
    assert undone == [("wecom", "echo")]


async def test_ctrl_c_ends_the_simulated_run_too(tmp_path: Path) -> None:
    words = Words(Language.EN)
    options = ("smoke", "--simulated", "--channel", "wecom", "--language", "en", "--report", str(tmp_path / "report"))
    async with on_terminal(tmp_path, *options) as screen:
        await screen.until(words(Key.SMOKE_ALL_SIMULATED))
        screen.type("\x03")
        await screen.until(words(Key.SMOKE_STOPPED))
        assert await ended(screen) == INTERRUPTED
    lines = report_of(tmp_path)["lines"]
    assert isinstance(lines, list)
    assert "not-reached" in {line["why"] for line in lines if line["marked"] == "simulated"}


async def test_without_assertions_nothing_simulated_is_believed(tmp_path: Path) -> None:
    code, out, err = await run(tmp_path, "smoke", "--simulated", "--language", "en", PYTHONOPTIMIZE="1")
    assert (code, out, err) == (2, "", Words(Language.EN)(Key.SMOKE_OPTIMISED) + "\n")


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (("--simulated", "--channel", "telex"), Key.SMOKE_NO_CHANNEL),
        (("--live", "--channel", "telex"), Key.SMOKE_NO_CHANNEL),
        (("--live",), Key.SMOKE_NO_BOTS),
    ],
)
async def test_what_cannot_be_is_misuse(options: tuple[str, ...], key: Key, tmp_path: Path) -> None:
    code, out, err = await run(tmp_path, "smoke", *options, "--language", "en")
    words = Words(Language.EN)
    path = tmp_path / ".config" / "harness-im" / "config.toml"
    wanted = words(key, channel="telex", channels=", ".join(CHANNELS), path=path)
    assert (code, out, err) == (2, "", f"{wanted}\n")


async def test_a_side_must_be_chosen(tmp_path: Path) -> None:
    code, _, err = await run(tmp_path, "smoke")
    assert code == 2
    assert "--simulated" in err
    assert "--live" in err


async def test_a_report_that_cannot_be_written_is_told_before_anything_begins(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    code, out, err = await run(tmp_path, "smoke", "--simulated", "--language", "en", "--report", str(taken / "in"))
    assert (code, out) == (1, "")
    assert err.startswith(Words(Language.EN)(Key.SMOKE_NOT_WRITTEN, path=taken / "in", reason="").split(" (")[0])
    assert os.listdir(tmp_path) == ["taken"] or "in" not in os.listdir(tmp_path)  # noqa: PTH208 - names only


def test_two_in_one_second_do_not_share_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, reports = tmp_path / "config.toml", tmp_path / "reports"
    config.write_text('language = "en"\n[state]\npath = "state.db"\n')
    reports.mkdir()
    first = reports / "smoke-19700101T000000Z-simulated.log"
    first.write_text("of another run")
    monkeypatch.setattr(running, "SYSTEM_CLOCK", FakeClock(0.0))
    assert running.smoke(running.Options(side=Side.SIMULATED, config=config, report=reports)) == 1
    assert Words(Language.EN)(Key.SMOKE_NOT_WRITTEN, path=first, reason="File exists") in capsys.readouterr().err
    assert [(path, path.read_text()) for path in reports.iterdir()] == [(first, "of another run")]

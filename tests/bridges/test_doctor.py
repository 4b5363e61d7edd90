"""``harness-im doctor``: it finds what is wrong, says so in words, and gives nothing away."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from bridges.cli import main
from bridges.cli.examination import network, packages, platforms
from bridges.cli.examination.finding import Check, Level
from bridges.cli.examination.network import SKEW_SECONDS, endpoints
from bridges.config import Config, Weixin, load
from bridges.message import Noticed, Sign
from bridges.state import open_state
from harness_client.types import Generation
from i18n import Key, Language, Words
from tests.bridges.chat_process import SECONDS
from tests.bridges.test_run import bot, configure
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness
from tests.fakes.telegram import FakeTelegram

EN = Words(Language.EN)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report."""

    subject: str
    level: Level
    text: str


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


@pytest.fixture
def config(tmp_path: Path, host: FakeHarness, telegram: FakeTelegram) -> Path:
    file = configure(tmp_path, host, bot(telegram))
    file.chmod(0o600)
    return file


async def ask(config: Path, *options: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, ["doctor", "--config", str(config), *options])


async def rows(config: Path) -> tuple[int, dict[Check, list[Row]]]:
    """Return exit code and report."""
    asked = await ask(config, "--json")
    told = json.loads(asked.stdout)
    found: dict[Check, list[Row]] = {check: [] for check in Check}
    for each in told["findings"]:
        found[Check(each["check"])].append(Row(each["subject"], Level(each["level"]), each["text"]))
    assert told["ok"] is (asked.exit_code == 0)
    return asked.exit_code, found


async def test_a_good_installation_has_nothing_wrong(config: Path, host: FakeHarness, telegram: FakeTelegram) -> None:
    async with open_state(config.with_name("state.db")):
        code, found = await rows(config)
    assert code == 0, found
    assert [row.subject for row in found[Check.SECRET]] == ["harness.url", "bot[0].token"]
    assert [row.subject for row in found[Check.ENDPOINT]] == [telegram.api]
    (package,) = found[Check.PACKAGE]
    assert package.subject == "python-telegram-bot"
    assert metadata.version("python-telegram-bot") in package.text
    (harness,) = found[Check.HARNESS]
    assert (harness.subject, harness.level) == (host.base, Level.OK)
    assert "modern" in harness.text
    for check in (Check.INSTALLATION, Check.CONFIGURATION, Check.STATE, Check.CLOCK):
        assert [row.level for row in found[check]] == [Level.OK], found[check]


async def test_nothing_is_written_and_no_secret_is_shown(
    config: Path, host: FakeHarness, telegram: FakeTelegram
) -> None:
    before = sorted(path.name for path in config.parent.iterdir())
    said = [(await ask(config, *options)).output for options in ((), ("--json",))]
    assert sorted(path.name for path in config.parent.iterdir()) == before, "the state file is not made by looking"
    for secret in (telegram.token, host.login.token):
        assert secret not in "".join(said)
    assert not any(call.write for call in host.calls)


@pytest.mark.parametrize("language", Language)
async def test_the_table_is_for_people(config: Path, language: Language) -> None:
    words = Words(language)
    config.write_text(config.read_text().replace('language = "en"', f'language = "{language}"'))
    shown = (await ask(config)).stdout
    assert words(Key.DOCTOR_FOUND) in shown
    assert shown.rstrip().endswith(words(Key.DOCTOR_WELL))
    assert "✓" in shown
    assert "✗" not in shown


async def test_a_wrong_configuration_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[[bot]]\nname = "ops"\nchannel = "telegram"\ntoken = { env = "NOWHERE" }\n')
    code, found = await rows(file)
    (row,) = found[Check.CONFIGURATION]
    assert (code, row.subject, row.level) == (1, "bot[0].token", Level.WRONG)
    assert "$NOWHERE" in row.text


async def test_others_must_not_read_what_is_secret(config: Path, telegram: FakeTelegram) -> None:
    token = config.with_name("token")
    token.write_text(telegram.token)
    token.chmod(0o640)
    config.write_text(config.read_text().replace(f'token = "{telegram.token}"', 'token = { file = "token" }'))
    config.chmod(0o644)
    async with open_state(config.with_name("state.db")):
        config.with_name("state.db").chmod(0o604)
        code, found = await rows(config)
    assert code == 1
    for check, path in (
        (Check.CONFIGURATION, config),
        (Check.SECRET, token),
        (Check.STATE, config.with_name("state.db")),
    ):
        assert Row(str(path), Level.WRONG, EN(Key.DOCTOR_OTHERS_READ, path=path)) in found[check]


async def test_others_must_not_read_the_logins_beside_the_state(config: Path) -> None:
    head = config.read_text().partition("[[bot]]")[0]
    bots = ('name = "me"\nchannel = "weixin"', 'name = "phone"\nchannel = "whatsapp"\ntransport = "linked"')
    config.write_text(head + "".join(f"[[bot]]\n{each}\n" for each in bots))
    accounts, device = config.with_name("weixin-accounts.json"), config.parent / "whatsapp" / "devices" / "phone"
    device.mkdir(parents=True)
    accounts.write_text("[]")
    for open_to_others, modes in ((True, (0o644, 0o755)), (False, (0o600, 0o700))):
        for path, mode in zip((accounts, device), modes, strict=True):
            path.chmod(mode)
        told = json.loads((await ask(config, "--json", "--offline")).stdout)["findings"]
        wrong = {each["subject"] for each in told if each["check"] == Check.SECRET and each["level"] == Level.WRONG}
        assert wrong == ({str(accounts), str(device)} if open_to_others else set())


async def test_a_configuration_without_secrets_may_be_read_by_all(config: Path, telegram: FakeTelegram) -> None:
    text = config.read_text()
    url = next(line for line in text.splitlines() if line.startswith("url"))
    for name, value in (("token", telegram.token), ("url", url.split('"')[1])):
        config.with_name(name).write_text(value)
        config.with_name(name).chmod(0o600)
        text = text.replace(f'"{value}"', f'{{ file = "{name}" }}')
    config.write_text(text)
    config.chmod(0o644)
    assert (await rows(config))[1][Check.CONFIGURATION][0].level is Level.OK


@pytest.mark.parametrize("generation", Generation)
async def test_the_generation_of_the_host_is_named(
    generation: Generation, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with FakeHarness(generation) as host:
        file = configure(tmp_path, host, bot(telegram))
        (harness,) = (await rows(file))[1][Check.HARNESS]
    assert harness.level is Level.OK
    assert generation in harness.text


@pytest.mark.parametrize(("key", "level"), [("", Level.NOTE), ("sk-fake", Level.OK)])
async def test_a_harness_of_our_own_without_a_key_is_noted(
    key: str, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "bundled_command", list)
    found = await network.host(Config(), {"DEEPSEEK_API_KEY": key}, FakeClock(), EN)
    assert found.level is level
    assert ("DEEPSEEK_API_KEY" in found.text) is (level is Level.NOTE)


async def test_who_does_not_answer_is_named(config: Path, host: FakeHarness) -> None:
    await host.stop()
    code, found = await rows(config)
    assert code == 1
    assert found[Check.HARNESS] == [Row(host.base, Level.WRONG, EN(Key.START_UNREACHABLE, address=host.base))]
    assert found[Check.ENDPOINT][0].level is Level.OK


async def test_a_platform_out_of_reach_is_named(config: Path, telegram: FakeTelegram) -> None:
    away = "http://127.0.0.1:1"
    config.write_text(config.read_text().replace(telegram.api, away))
    code, found = await rows(config)
    assert (code, found[Check.ENDPOINT]) == (1, [Row(away, Level.WRONG, EN(Key.DOCTOR_UNREACHED, reason="Unreached"))])


async def test_whose_token_it_is_and_what_the_platform_lacks_is_told(config: Path, telegram: FakeTelegram) -> None:
    _, found = await rows(config)
    assert found[Check.PLATFORM] == [Row("ops", Level.OK, EN(Key.PLATFORM_ACCEPTED, detail="@ThisBot"))]
    telegram.me = {"can_read_all_group_messages": True}
    code, found = await rows(config)
    assert (code, found[Check.PLATFORM][1]) == (0, Row("ops", Level.NOTE, EN(Key.PLATFORM_READS_ALL)))
    telegram.token = "7:another-one"
    code, found = await rows(config)
    refused = Row("ops", Level.WRONG, EN(Key.PLATFORM_BAD_CREDENTIAL, channel="Telegram", detail="token"))
    assert (code, found[Check.PLATFORM]) == (1, [refused])


async def test_no_platform_hides_another(config: Path, telegram: FakeTelegram) -> None:
    down = "127.0.0.1:1"
    more = (
        f'[[bot]]\nname = "down"\nchannel = "qq"\napp_id = "1"\nclient_secret = "fake"\n'
        f'[bot.endpoints]\napi = "http://{down}"\ntoken = "http://{down}"\n'
        f'[[bot]]\nname = "not-asked"\nchannel = "wecom"\nbot_id = "1"\nsecret = "fake"\n'
        f'[bot.endpoints]\nwebsocket = "ws://{down}"\n'
        f'[[bot]]\nname = "nobody"\nchannel = "weixin"\n[bot.endpoints]\napi = "http://{down}"\n'
    )
    config.write_text(config.read_text() + more)
    code, found = await rows(config)
    levels = {row.subject: row.level for row in found[Check.PLATFORM]}
    assert levels == {"ops": Level.OK, "down": Level.WRONG, "not-asked": Level.NOTE, "nobody": Level.WRONG}
    assert code == 1
    asked = json.loads((await ask(config, "--json", "--login")).stdout)
    (wecom,) = (each for each in asked["findings"] if each["subject"] == "not-asked")
    assert (wecom["level"], wecom["code"]) == (Level.WRONG, Sign.UNREACHED), "now it is asked, and is not there"


async def test_offline_asks_no_platform_and_says_so(config: Path, telegram: FakeTelegram) -> None:
    asked = await ask(config, "--json", "--offline")
    found = json.loads(asked.stdout)["findings"]
    assert asked.exit_code == 0
    assert [each["text"] for each in found if each["check"] == Check.PLATFORM] == [EN(Key.PLATFORM_SKIPPED)]
    assert not [each for each in found if each["check"] == Check.ENDPOINT]
    assert telegram.calls == []


def test_every_sign_has_words() -> None:
    bot = Weixin(name="me")
    for words in map(Words, Language):
        texts = [finding.text for sign in Sign for finding in platforms.told(bot, [Noticed(sign, "…")], words)]
        assert len(set(texts)) == len(Sign)


async def test_a_state_file_is_examined_and_left_as_it_is(config: Path) -> None:
    file = config.with_name("state.db")
    file.write_bytes(b"no database at all" * 400)
    file.chmod(0o600)
    before = file.read_bytes()
    code, found = await rows(config)
    assert (code, found[Check.STATE][0].text) == (1, EN(Key.STATE_BROKEN, path=file))
    assert file.read_bytes() == before


@pytest.mark.parametrize("there", [False, True])
async def test_a_folder_that_takes_no_state_file_is_told(
    there: bool, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = config.with_name("state.db")
    if there:
        async with open_state(file):
            pass
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != config.parent and allowed(path, mode))
    code, found = await rows(config)
    assert (code, found[Check.STATE][0].text) == (1, EN(Key.STATE_READ_ONLY, path=file))


async def test_a_newer_state_file_is_told(config: Path) -> None:
    file = config.with_name("state.db")
    async with open_state(file):
        pass
    with sqlite3.connect(file) as db:
        db.execute("UPDATE state_version SET number = 999")
    db.close()
    code, found = await rows(config)
    assert (code, found[Check.STATE][0].text) == (1, EN(Key.STATE_NEWER, path=file))


@pytest.mark.parametrize(("ahead", "level"), [(SKEW_SECONDS - 10, Level.OK), (SKEW_SECONDS + 10, Level.WRONG)])
async def test_a_clock_that_is_off_is_told(tmp_path: Path, ahead: float, level: Level) -> None:
    async def dated(_: web.Request) -> web.Response:
        return web.Response(status=404, headers={"Date": "Mon, 12 Jan 1970 13:46:40 GMT"})

    application = web.Application()
    application.router.add_get("/{any:.*}", dated)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api = f"http://127.0.0.1:{runner.addresses[0][1]}"
    file = tmp_path / "config.toml"
    file.write_text(f'[[bot]]\nname = "a"\nchannel = "telegram"\ntoken = "fake"\n[bot.endpoints]\napi = "{api}"\n')
    *_, clock = await endpoints(load(file, {}), FakeClock(1_000_000.0 + ahead), EN)
    await runner.cleanup()
    assert (clock.check, clock.subject, clock.level) == (Check.CLOCK, api, level)
    assert f"{ahead:+.0f}" in clock.text


async def test_an_sdk_that_is_absent_or_broken_is_told(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    monkeypatch.setattr(packages, "needed", lambda extra: ["no-such-package"])
    code, found = await rows(config)
    assert (code, found[Check.PACKAGE][0].text) == (1, EN(Key.DOCTOR_NOT_INSTALLED, extra="telegram"))
    assert await packages.measure(["no_such_module"]) is None


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("22.8", "<23,>=22.5", True),
        ("22.10", "<23,>=22.5", True),
        ("23.0", "<23,>=22.5", False),
        ("23", "<23.0", False),
        ("22.4.9", ">=22.5,<23", False),
        ("0.2.1rc2", "==0.2.1rc2", True),
        ("0.2.1", "==0.2.1rc2", False),
        ("1", "", True),
    ],
)
def test_versions_are_compared_number_by_number(version: str, wanted: str, fits: bool) -> None:
    assert packages.fits(version, wanted) is fits


async def test_an_sdk_of_another_version_is_told(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    installed = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "99.0" if name == "python-telegram-bot" else installed(name))
    code, found = await rows(config)
    (row,) = found[Check.PACKAGE]
    assert (code, row.level) == (1, Level.WRONG)
    assert "99.0" in row.text
    assert "<23" in row.text


async def test_the_cost_of_an_import_is_measured_where_nothing_is_loaded() -> None:
    measured = await packages.measure(["telegram"])
    assert measured is not None
    seconds, megabytes = measured
    assert seconds > 0
    assert 2 < megabytes < 500


def test_a_package_of_somebody_else_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packages.installation(EN).level is Level.OK
    monkeypatch.setattr(metadata, "packages_distributions", lambda: {"commands": ["harness-im", "other"]})
    found = packages.installation(EN)
    assert (found.level, found.subject) == (Level.WRONG, "commands")
    assert "other" in found.text


def test_addresses_load_no_sdk(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[[bot]]\nname = "a"\nchannel = "telegram"\ntoken = "fake"\n'
        '[[bot]]\nname = "b"\nchannel = "slack"\nbot_token = "fake"\napp_token = "fake"\n'
        '[[bot]]\nname = "c"\nchannel = "discord"\ntoken = "fake"\n'
        '[[bot]]\nname = "d"\nchannel = "qq"\napp_id = "1"\nclient_secret = "fake"\n'
        '[[bot]]\nname = "e"\nchannel = "wecom"\nbot_id = "1"\nsecret = "fake"\n'
        '[[bot]]\nname = "f"\nchannel = "weixin"\n'
        '[[bot]]\nname = "g"\nchannel = "feishu"\napp_id = "1"\napp_secret = "fake"\n'
        '[[bot]]\nname = "h"\nchannel = "dingtalk"\nclient_id = "1"\nclient_secret = "fake"\n'
        '[[bot]]\nname = "i"\nchannel = "whatsapp"\nphone_number_id = "1"\naccess_token = "fake"\n'
        'app_secret = "fake"\nverify_token = "fake"\nlisten = "127.0.0.1:0"\n'
        '[[bot]]\nname = "j"\nchannel = "whatsapp"\ntransport = "linked"\n'
    )
    program = (
        "import json, sys; from pathlib import Path; from bridges.config import load;"
        "from bridges.cli.examination.addresses import addresses;"
        "found = [each for bot in load(Path(sys.argv[1]), {}).bots for each in addresses(bot)];"
        "print(json.dumps([found, [name for name in sys.modules if '.' not in name]]))"
    )
    done = subprocess.run(  # noqa: S603 - the program above, in an interpreter where no test has loaded anything
        [sys.executable, "-c", program, str(file)], capture_output=True, check=True, timeout=SECONDS
    )
    found, loaded = json.loads(done.stdout)
    assert all(address.startswith(("https://", "wss://")) for address in found)
    assert len(found) == 10, "two of QQ, one of each other platform, none of a linked device"
    assert not {*loaded} & {"telegram", "slack_sdk", "slack_bolt", "discord", "lark_oapi", "dingtalk_stream"}

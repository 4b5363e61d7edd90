"""The walk through a bot on every channel: real SDKs, simulated platforms, and an operator who does what they are told.

Nothing of it may count as live, and whatever people write meanwhile, the Harness is only read.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bridges.cli.smoking import live
from bridges.cli.smoking.lines import BEYOND, CHANNELS, Endpoint, Item, Side, Verdict, Why
from bridges.cli.smoking.plan import plan_live
from bridges.cli.smoking.record import FAILED, UNDONE, Record
from bridges.cli.smoking.steps import NO_GROUPS, STEPS, STRANGER, Ask
from bridges.cli.smoking.walk import NOTICES, Flow, Walk
from bridges.config import load
from bridges.log import Redactor
from commands.model import AttachmentKind, ChatKind
from harness_client.types import Generation
from i18n import Key, Language, Words
from tests.contract.desk import SWIFT_CLOCK, desk_at
from tests.contract.platform import Platform, Row, Trait
from tests.contract.test_table import ROWS
from tests.fakes.harness import FakeHarness
from tests.fakes.waiting import eventually

TABLES = {
    "telegram": 'token = "1:fake"',
    "slack": 'bot_token = "xoxb-fake"\napp_token = "xapp-fake"',
    "discord": 'token = "fake"',
    "whatsapp": 'phone_number_id = "1"\naccess_token = "fake"\napp_secret = "fake"\nverify_token = "fake"\n'
    'listen = "127.0.0.1:0"',
    "feishu": 'app_id = "1"\napp_secret = "fake"',
    "dingtalk": 'client_id = "1"\nclient_secret = "fake"',
    "wecom": 'bot_id = "1"\nsecret = "fake"',
    "qq": 'app_id = "1"\nclient_secret = "fake"',
    "weixin": 'token = "fake"',
}
"""What each channel must have in the configuration; the channel itself is that of the row."""

HOSTILE = ("delete everything", "/new", "/session session-other", "/compact", "/history 4", "/send", "/histories")


def configured(folder: Path, host: FakeHarness, platform: Platform, *, direct: str) -> Path:
    address = "websocket" if platform.bot.channel == "wecom" else "api"
    file = folder / "config.toml"
    file.write_text(f"""
language = "en"
[harness]
url = "{host.url}"
[state]
path = "{folder / "state.db"}"
[[bot]]
name = "{platform.bot.name}"
channel = "{platform.bot.channel}"
{TABLES[platform.bot.channel]}
endpoints = {{ {address} = "http://127.0.0.1:9" }}
access = {{ direct = {direct}, group = ["{platform.member}"] }}
""")
    return file


Operator = Callable[[Ask], Awaitable[None]]


async def walked(
    folder: Path,
    host: FakeHarness,
    platform: Platform,
    operator: Operator,
    monkeypatch: pytest.MonkeyPatch,
    *,
    direct: str,
    flow: Flow | None = None,
    patience: float = 20.0,
) -> Record:
    """Run a live smoke test over the row's channel, the operator doing their part by themselves."""
    config = load(configured(folder, host, platform, direct=direct), {})
    record = Record(Side.LIVE, "1.2.3", 0.0)
    plan_live(record, config.bots, config.bots)
    doing: set[asyncio.Task[None]] = set()

    class Attended(Walk):
        def _begin(self, ask: Ask) -> None:
            super()._begin(ask)
            doing.add(asyncio.ensure_future(operator(ask)))

    monkeypatch.setattr(live, "Walk", Attended)
    monkeypatch.setattr(live, "build", lambda _, around: platform.channel(around))
    await live.Live(
        config=config,
        path=folder / "config.toml",
        chosen=config.bots,
        words=Words(Language.EN),
        redact=Redactor(),
        record=record,
        publish=lambda: None,
        flow=flow or Flow(),
        patience=patience,
        clock=SWIFT_CLOCK,
    ).run()
    await asyncio.gather(*doing)
    return record


def obedient(platform: Platform) -> Operator:
    async def operator(ask: Ask) -> None:
        await platform.says(
            ask.text,
            sender=platform.stranger if ask is STRANGER else None,
            chat=ask.kind,
            attachment=AttachmentKind.IMAGE if ask.attached else None,
        )

    return operator


def results(record: Record, side: Side) -> dict[Item, tuple[Verdict, Why | None]]:
    return {
        line.spot.item: (line.result.verdict, line.result.why)
        for line in record
        if line.spot.side is side and line.spot.bot is not None
    }


def kept(folder: Path) -> tuple[dict[str, list[tuple[object, ...]]], list[str]]:
    """Read all tables of the state but the claims, and of those the events."""
    with sqlite3.connect(folder / "state.db") as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {name: db.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in names}  # noqa: S608 - our own names
    db.close()
    return {name: rows for name, rows in tables.items() if name != "claim"}, [row[2] for row in tables["claim"]]


@pytest.mark.parametrize("channel", CHANNELS)
async def test_every_channel_is_walked_through_and_nothing_is_called_live(
    channel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row: Row = ROWS[channel]
    async with row.platform() as platform, FakeHarness(Generation.MODERN) as host:
        async with desk_at(host, platform, tmp_path, Language.EN) as desk:
            await desk.bind(messages=8)
        before, claims = kept(tmp_path)
        heard = len(platform.heard())
        obey = obedient(platform)

        async def operator(ask: Ask) -> None:
            if ask is STEPS[Item.HISTORY][0]:
                for text in HOSTILE:
                    await platform.says(text)
                await eventually(lambda: len(platform.heard()) == heard + len(HOSTILE))
                assert set(platform.heard()[heard:]) <= NOTICES
            await obey(ask)

        record = await walked(tmp_path, host, platform, operator, monkeypatch, direct=f'["{platform.member}"]')
        assert host.writes == [], "a session, a prompt or a cold session woken"

    passes = {Item.CONNECT, *STEPS, Item.STRANGER, Item.ECHO} - ({Item.GROUP} if Trait.GROUPS in row.LACKS else set())
    found = results(record, Side.SIMULATED)
    assert {item for item, (verdict, _) in found.items() if verdict is Verdict.PASS} >= passes, found
    assert {why for verdict, why in found.values() if verdict is not Verdict.PASS} <= BEYOND
    live_lines = [line for line in record if line.spot.side is Side.LIVE]
    assert {line.result.verdict for line in live_lines} == {Verdict.NOT_DONE}
    assert results(record, Side.LIVE)[Item.HISTORY] == (Verdict.NOT_DONE, Why.OVERRIDDEN)
    assert {line.spot.endpoint for line in record if line.spot.side is Side.SIMULATED} == {Endpoint.OVERRIDDEN}
    assert record.code(stopped=False) == UNDONE, "what was asked for live was not done live"
    assert all(
        line.result.seconds for line in record if line.result.verdict is Verdict.PASS and line.spot.item in STEPS
    )
    after, claimed = kept(tmp_path)
    assert after == before, "only the ids of messages are written"
    assert len(claimed) > len(claims)


def test_channels_without_groups_are_those_that_the_platforms_lack() -> None:
    assert {name for name, row in ROWS.items() if Trait.GROUPS in row.LACKS} - {"terminal"} == NO_GROUPS


async def on_telegram(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    bound: int | None = 8,
    direct: str | None = None,
    operator: Callable[[Platform, Operator, Flow, FakeHarness], Operator] = lambda _, obey, __, ___: obey,
    patience: float = 20.0,
) -> tuple[Record, FakeHarness]:
    async with ROWS["telegram"].platform() as platform, FakeHarness(Generation.MODERN) as host:
        if bound is not None:
            async with desk_at(host, platform, tmp_path, Language.EN) as desk:
                await desk.bind(messages=bound)
        flow = Flow()
        record = await walked(
            tmp_path,
            host,
            platform,
            operator(platform, obedient(platform), flow, host),
            monkeypatch,
            direct=direct or f'["{platform.member}"]',
            flow=flow,
            patience=patience,
        )
        assert host.writes == []
        return record, host


async def test_a_stranger_is_shown_a_code_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And an operator who is a stranger is told so while there is time left to change it."""
    record, _ = await on_telegram(tmp_path, monkeypatch, direct='"pairing"', patience=0.2)
    (bot,) = {line.spot.bot for line in record if line.spot.bot}
    told = Words(Language.EN)(Key.SMOKE_TURNED_AWAY, text="/history", bot=f"telegram/{bot}")
    assert told in capsys.readouterr().out
    assert results(record, Side.SIMULATED)[Item.STRANGER] == (Verdict.PASS, None)
    assert results(record, Side.SIMULATED)[Item.HISTORY] == (Verdict.NOT_DONE, Why.NOT_ALLOWED)
    state, _ = kept(tmp_path)
    assert state["pairing_code"] == []


async def test_where_everybody_is_let_in_there_is_no_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, _ = await on_telegram(tmp_path, monkeypatch, direct='"open"')
    assert results(record, Side.SIMULATED)[Item.STRANGER] == (Verdict.NOT_DONE, Why.OPEN)


@pytest.mark.parametrize(
    ("bound", "why"), [(None, Why.NO_SESSION), (0, Why.TOO_SHORT), (2, Why.TOO_SHORT), (4, Why.TOO_SHORT)]
)
async def test_a_history_that_shows_too_little_is_not_done(
    bound: int | None, why: Why, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, _ = await on_telegram(tmp_path, monkeypatch, bound=bound)
    assert results(record, Side.SIMULATED)[Item.HISTORY_MOST] == (Verdict.NOT_DONE, why)
    three = (Verdict.PASS, None) if bound == 4 else (Verdict.NOT_DONE, why)
    assert results(record, Side.SIMULATED)[Item.HISTORY] == three


async def test_failures_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def operator(platform: Platform, obey: Operator, _: Flow, host: FakeHarness) -> Operator:
        async def fail(ask: Ask) -> None:
            if ask is STEPS[Item.HISTORY][0]:
                host.fail("session/page", status=500, times=1)
            if ask is STEPS[Item.HELP_EN][0]:
                platform.refuse(1)
            await obey(ask)

        return fail

    record, _ = await on_telegram(tmp_path, monkeypatch, operator=operator)
    found = results(record, Side.SIMULATED)
    assert found[Item.HISTORY] == (Verdict.FAIL, Why.WRONG_REPLY)
    assert found[Item.HISTORY_MOST] == (Verdict.PASS, None)
    assert found[Item.HELP_EN] == (Verdict.FAIL, Why.NOT_SENT)
    (refused,) = [line for line in record if line.result.why is Why.NOT_SENT]
    assert refused.result.detail == "blocked"
    assert record.code(stopped=False) == FAILED


async def test_a_message_that_came_and_was_not_answered_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def operator(_: Platform, obey: Operator, __: Flow, host: FakeHarness) -> Operator:
        async def hang(ask: Ask) -> None:
            if ask is STEPS[Item.HISTORY][0]:
                host.fail("session/page", delay=asyncio.Event(), times=1)
                await obey(ask)

        return hang

    record, _ = await on_telegram(tmp_path, monkeypatch, operator=operator, patience=1.0)
    found = results(record, Side.SIMULATED)
    assert found[Item.HISTORY] == (Verdict.FAIL, Why.NO_REPLY)
    assert found[Item.HISTORY_MOST] == (Verdict.NOT_DONE, Why.TIMED_OUT)


async def test_a_bot_that_sent_nothing_had_nothing_to_hear_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def operator(_: Platform, __: Operator, flow: Flow, ___: FakeHarness) -> Operator:
        async def skipping(_: Ask) -> None:
            flow.skip()

        return skipping

    record, _ = await on_telegram(tmp_path, monkeypatch, operator=operator)
    found = results(record, Side.SIMULATED)
    assert found[Item.STRANGER] == (Verdict.NOT_DONE, Why.SKIPPED)
    assert found[Item.ECHO] == (Verdict.NOT_DONE, Why.NOTHING_SENT)


async def test_what_the_operator_does_not_do_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def operator(platform: Platform, obey: Operator, flow: Flow, _: FakeHarness) -> Operator:
        async def idle(ask: Ask) -> None:
            if ask.attached:
                flow.skip()
            elif ask.kind is ChatKind.GROUP:
                await platform.says("/history 2", chat=ChatKind.GROUP)
            elif ask is STRANGER:
                flow.stop()
            else:
                await obey(ask)

        return idle

    record, _ = await on_telegram(tmp_path, monkeypatch, operator=operator, patience=4.0)
    found = results(record, Side.SIMULATED)
    assert found[Item.HISTORY] == (Verdict.PASS, None)
    assert found[Item.ATTACHMENT] == (Verdict.NOT_DONE, Why.SKIPPED)
    assert found[Item.GROUP] == (Verdict.NOT_DONE, Why.TIMED_OUT)
    assert found[Item.STRANGER] == found[Item.ECHO] == (Verdict.NOT_DONE, Why.NOT_REACHED)


async def test_a_message_that_comes_twice_is_answered_once_and_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def operator(platform: Platform, obey: Operator, _: Flow, __: FakeHarness) -> Operator:
        async def twice(ask: Ask) -> None:
            if ask is STEPS[Item.HELP_ZH][0]:
                await platform.says(ask.text, id="help")
                await platform.again("help")
            else:
                await obey(ask)

        return twice

    record, _ = await on_telegram(tmp_path, monkeypatch, operator=operator)
    found = results(record, Side.SIMULATED)
    assert found[Item.HELP_ZH] == found[Item.DUPLICATE] == (Verdict.PASS, None)


async def test_the_bots_own_message_that_is_taken_up_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def operator(platform: Platform, obey: Operator, _: Flow, __: FakeHarness) -> Operator:
        async def parrot(ask: Ask) -> None:
            await obey(ask)
            if ask is STEPS[Item.BATCH][0]:
                await platform.says(platform.heard()[0])

        return parrot

    record, _ = await on_telegram(tmp_path, monkeypatch, bound=None, operator=operator)
    assert results(record, Side.SIMULATED)[Item.ECHO] == (Verdict.FAIL, Why.CAME_BACK)

"""The simulated acceptance can fail: a case that is not met, a platform that breaks, an SDK that is not there."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bridges.cli.smoking import simulated
from bridges.cli.smoking.lines import CHANNELS, Item, Result, Side, Verdict, Why
from bridges.cli.smoking.plan import plan_simulated
from bridges.cli.smoking.record import FAILED, UNDONE, Record
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Language
from tests import contract
from tests.contract.desk import Desk
from tests.contract.table import CASES, Case

Run = Callable[[Desk], Awaitable[None]]


def one(run: Run) -> Case:
    return Case(run, frozenset(), Language.EN)


async def run(monkeypatch: pytest.MonkeyPatch, channel: str, *cases: Case) -> Record:
    """Run one line that these cases show."""
    monkeypatch.setattr(simulated, "SHOWN_BY", {Item.HISTORY: cases})
    record, done = Record(Side.SIMULATED, "1.2.3", 0.0), list[str]()
    plan_simulated(record, [channel])
    await simulated.Acceptance(record, SYSTEM_CLOCK, done.append).run([channel])
    assert done == [channel]
    return record


def outcome(record: Record) -> Result:
    (line,) = [line for line in record if line.spot.item is Item.HISTORY]
    return line.result


async def good(desk: Desk) -> None:
    assert await desk.ask("/history") == [desk.words(Key.HISTORY_UNBOUND)]


async def wrong(desk: Desk) -> None:
    assert await desk.ask("/history") == ["a secret message"], "another secret"


async def breaking(desk: Desk) -> None:
    raise ExceptionGroup("secret", [ValueError("a secret message")])


async def test_what_is_met_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome(await run(monkeypatch, "wecom", one(good)))
    assert (result.verdict, result.why) == (Verdict.PASS, None)
    assert result.seconds


@pytest.mark.parametrize(("bad", "kind"), [(wrong, "AssertionError"), (breaking, "ValueError")])
async def test_one_case_that_is_not_met_fails_the_line(bad: Run, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record = await run(monkeypatch, "wecom", one(good), one(bad))
    result = outcome(record)
    assert (result.verdict, result.why) == (Verdict.FAIL, Why.CASE)
    assert result.detail is not None
    assert result.detail.startswith(f"{kind} test_simulated.py:")
    assert "secret" not in result.detail
    assert record.code(stopped=False) == FAILED


async def test_a_case_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hanging(_: Desk) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(simulated, "CASE_SECONDS", 0.5)
    result = outcome(await run(monkeypatch, "wecom", one(hanging)))
    assert (result.verdict, result.why) == (Verdict.FAIL, Why.CASE)
    assert (result.detail or "").startswith("TimeoutError test_simulated.py:")


async def test_a_report_that_can_no_longer_be_written_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(simulated, "SHOWN_BY", {Item.HISTORY: (one(good),)})
    record = Record(Side.SIMULATED, "1.2.3", 0.0)
    with pytest.raises(OSError, match="No space"):
        await simulated.Acceptance(record, SYSTEM_CLOCK, full).run(["wecom", "qq"])


@pytest.mark.parametrize(
    ("channel", "module"),
    [("telegram", "telegram"), ("slack", "slack_bolt"), ("discord", "discord"), ("dingtalk", "dingtalk_stream")],
)
async def test_without_its_sdk_a_channel_is_not_done(
    channel: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module] or [module]:
        monkeypatch.setitem(sys.modules, name, None)
    record = await run(monkeypatch, channel, one(good), one(wrong))
    assert outcome(record) == Result(Verdict.NOT_DONE, Why.NOT_INSTALLED)
    assert record.code(stopped=False) == UNDONE


async def test_without_feishus_sdk_the_channel_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert outcome(await run(monkeypatch, "feishu", one(good))) == Result(Verdict.NOT_DONE, Why.NOT_INSTALLED)


def test_every_line_but_the_connection_is_shown_by_a_case() -> None:
    assert set(simulated.SHOWN_BY) == set(Item) - {Item.CONNECT}
    assert all(shown <= set(CASES) for shown in map(set, simulated.SHOWN_BY.values()))
    assert all(simulated.SHOWN_BY.values())


def test_a_case_that_the_table_has_lost_is_noticed() -> None:
    with pytest.raises(LookupError):
        simulated.cases("nothing_of_the_kind")


def test_the_fakes_are_those_of_this_distribution(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert simulated.is_ours()
    monkeypatch.setattr(contract, "__file__", str(tmp_path / "tests" / "contract" / "__init__.py"))
    assert not simulated.is_ours()


def test_every_channel_has_a_row() -> None:
    for channel in CHANNELS:
        assert importlib.util.find_spec(f"tests.contract.rows.{channel}")

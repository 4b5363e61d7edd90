"""What may be called live: a bot at its platform's own addresses, and nothing that anybody could put in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.cli.smoking.lines import BEYOND, CHANNELS, Endpoint, Item, Result, Side, Spot, Verdict, Why
from bridges.cli.smoking.plan import LARK, endpoint, plan_live, plan_simulated
from bridges.cli.smoking.record import ALL_WELL, FAILED, INTERRUPTED, UNDONE, Record
from bridges.cli.smoking.report import as_json, as_markdown, as_table
from bridges.config import AnyBot, parse
from bridges.secret import Places
from i18n import Language, Words
from tests.smoke.test_live_channels import TABLES


def bot(channel: str, **endpoints: str) -> AnyBot:
    given = ", ".join(f'{name} = "{url}"' for name, url in endpoints.items())
    text = f'[[bot]]\nname = "ops"\nchannel = "{channel}"\n{TABLES[channel]}\nendpoints = {{ {given} }}\n'
    (made,) = parse(text.encode(), Places({}, Path())).bots
    return made


def fields(channel: str) -> tuple[str, ...]:
    return bot(channel).endpoints.__struct_fields__


@pytest.mark.parametrize("channel", CHANNELS)
def test_without_endpoints_it_is_the_platform(channel: str) -> None:
    assert endpoint(bot(channel)) is Endpoint.PLATFORM


ELSEWHERE = (
    "http://127.0.0.1:1",
    "http://localhost:8081",
    "https://telegram.internal.example",
    "https://api.telegram.org.example",
    "https://127.0.0.1/api.telegram.org",
    "http://api.telegram.org",
    "https://open.larksuite.com.example",
)


@pytest.mark.parametrize("url", ELSEWHERE)
@pytest.mark.parametrize(("channel", "field"), [(name, field) for name in CHANNELS for field in fields(name)])
def test_any_other_address_is_overridden(channel: str, field: str, url: str) -> None:
    assert endpoint(bot(channel, **{field: url})) is Endpoint.OVERRIDDEN


def test_the_platforms_own_address_may_be_written_out() -> None:
    assert endpoint(bot("telegram", api="https://api.telegram.org")) is Endpoint.PLATFORM
    assert endpoint(bot("telegram", api="https://api.telegram.org/")) is Endpoint.PLATFORM


def test_lark_is_feishus_and_nobody_elses() -> None:
    assert endpoint(bot("feishu", api=LARK)) is Endpoint.PLATFORM
    assert {endpoint(bot(name, api=LARK)) for name in CHANNELS if name not in {"feishu", "wecom"}} == {
        Endpoint.OVERRIDDEN
    }


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("overridden", [False, True])
def test_every_live_line_of_every_channel_is_in_every_report(side: Side, overridden: bool) -> None:
    record = Record(side, "1.2.3", 0.0)
    bots = [bot("telegram", **({"api": "http://127.0.0.1:1"} if overridden else {})), bot("weixin")]
    plan_live(record, bots, bots if side is Side.LIVE else ())
    live = [line for line in record if line.spot.side is Side.LIVE]
    assert {(line.spot.channel, line.spot.item) for line in live} == {
        (name, item) for name in CHANNELS for item in Item
    }
    assert {line.result.verdict for line in record} == {Verdict.NOT_DONE}
    whys = {line.spot.item: line.result.why for line in live if line.spot.channel == "telegram"}
    if side is Side.SIMULATED:
        assert set(whys.values()) == {Why.NOT_ASKED}
    else:
        assert whys[Item.HISTORY] is (Why.OVERRIDDEN if overridden else Why.NOT_REACHED)
        assert whys[Item.RUNNING] is Why.MODEL
        assert whys[Item.BIND] is Why.SWITCHES
        (group,) = [line for line in live if (line.spot.channel, line.spot.item) == ("weixin", Item.GROUP)]
        assert group.result.why is Why.PLATFORM
    assert any(line.spot.side is Side.SIMULATED for line in record) == (side is Side.LIVE and overridden)


def spot(item: Item, side: Side = Side.LIVE) -> Spot:
    return Spot("telegram", "ops", side, Endpoint.PLATFORM, item)


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([Result(Verdict.PASS)], ALL_WELL),
        ([Result(Verdict.PASS), *(Result(Verdict.NOT_DONE, why) for why in BEYOND)], ALL_WELL),
        *(([Result(Verdict.PASS), Result(Verdict.NOT_DONE, why)], UNDONE) for why in (Why.SKIPPED, Why.OVERRIDDEN)),
        ([Result(Verdict.FAIL, Why.WRONG_REPLY), Result(Verdict.NOT_DONE, Why.SKIPPED)], FAILED),
    ],
)
def test_exit_codes(results: list[Result], code: int) -> None:
    record = Record(Side.LIVE, "1.2.3", 0.0)
    for item, result in zip(Item, results, strict=False):
        record.note(spot(item), result, 0.0)
    assert record.code(stopped=False) == code
    assert record.code(stopped=True) == (FAILED if code == FAILED else INTERRUPTED)


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("why", Why)
def test_every_reason_has_its_words_in_every_form_of_the_report(why: Why, language: Language) -> None:
    words, record = Words(language), Record(Side.SIMULATED, "1.2.3", 0.0)
    plan_simulated(record, ["telegram"])
    plan_live(record, (), ())
    verdict = Verdict.NOT_DONE if why in BEYOND else Verdict.FAIL
    record.note(spot(Item.HISTORY), Result(verdict, why, "a|b", 1.0), 0.0)
    markdown = as_markdown(record, words)
    row = next(row for row in markdown.splitlines() if "a\\|b" in row)
    assert row.replace("\\|", "").count("|") == 10, "a cell that is cut in two"
    assert f'"why": "{why}"' in as_json(record)
    assert ("a|b" in as_table(record, words)) is (why not in BEYOND)

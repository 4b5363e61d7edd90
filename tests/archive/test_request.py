from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from archive.model import Host, NodeId
from archive.problem import BadRequest, Fault
from archive.request import Read, Search, parse, parse_host
from archive.times import Instant
from harness_client.types import SessionId


@pytest.fixture(autouse=True)
def _shanghai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    os.environ.pop("TZ", None)
    time.tzset()


def test_the_least_there_can_be() -> None:
    assert parse({"action": "search"}) == Search()
    assert parse({"action": "search", "query": None, "from": None}) == Search()
    assert parse({"action": "read", "id": "x"}) == Read(NodeId("x"))


def test_the_most_there_can_be() -> None:
    given = {"action": "search", "query": "q", "host": "pi", "sessionId": "s", "offset": 3, "limit": 50}
    times = {"from": "2026-03-01", "to": "2026-03-01T10:00:00+02:00"}
    assert parse(given | times) == Search(
        query="q",
        host=Host.PI,
        session=SessionId("s"),
        since=Instant("2026-02-28T16:00:00.000Z"),
        until=Instant("2026-03-01T08:00:00.000Z"),
        offset=3,
        limit=50,
    )
    read = {"action": "read", "id": "x", "host": "dsh", "offset": 1, "limit": 24_000, "childrenOffset": 20}
    assert parse(read) == Read(NodeId("x"), Host.DSH, 1, 24_000, 20)


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("2026-03-01", "2026-03-01T15:59:59.999Z"),
        ("20260301", "2026-03-01T15:59:59.999Z"),
        ("2026-03-01T00:00", "2026-02-28T16:00:00.000Z"),
        ("2026-03-01T00:00:00Z", "2026-03-01T00:00:00.000Z"),
        ("2026-03-01 08:00:00.1234", "2026-03-01T00:00:00.123Z"),
    ],
)
def test_a_date_alone_means_the_end_of_the_day_and_no_offset_means_local(given: str, instant: str) -> None:
    found = parse({"action": "search", "to": given})
    assert isinstance(found, Search)
    assert found.until == instant


@pytest.mark.parametrize(
    ("given", "code", "parameter"),
    [
        ([], Fault.NOT_AN_OBJECT, "request"),
        ("search", Fault.NOT_AN_OBJECT, "request"),
        ({}, Fault.MISSING, "action"),
        ({"action": "delete"}, Fault.UNKNOWN_ACTION, "action"),
        ({"action": 1}, Fault.UNKNOWN_ACTION, "action"),
        ({"action": "search", "qurey": "x"}, Fault.UNKNOWN_PARAMETER, "qurey"),
        ({"action": "search", "id": "x"}, Fault.UNKNOWN_PARAMETER, "id"),
        ({"action": "search", "query": 1}, Fault.WRONG_TYPE, "query"),
        ({"action": "search", "query": "x" * 4001}, Fault.TOO_LONG, "query"),
        ({"action": "search", "host": "codex"}, Fault.UNKNOWN_HOST, "host"),
        ({"action": "search", "limit": 0}, Fault.OUT_OF_RANGE, "limit"),
        ({"action": "search", "limit": 51}, Fault.OUT_OF_RANGE, "limit"),
        ({"action": "search", "limit": "5"}, Fault.WRONG_TYPE, "limit"),
        ({"action": "search", "limit": True}, Fault.WRONG_TYPE, "limit"),
        ({"action": "search", "limit": 5.0}, Fault.WRONG_TYPE, "limit"),
        ({"action": "search", "offset": -1}, Fault.OUT_OF_RANGE, "offset"),
        ({"action": "search", "offset": 10**30}, Fault.OUT_OF_RANGE, "offset"),
        ({"action": "search", "from": "yesterday"}, Fault.BAD_TIME, "from"),
        ({"action": "search", "to": "2026-02-30"}, Fault.BAD_TIME, "to"),
        ({"action": "search", "to": "0001-01-01"}, Fault.BAD_TIME, "to"),
        ({"action": "search", "from": "2026-03-02", "to": "2026-03-01"}, Fault.REVERSED_RANGE, "to"),
        ({"action": "read"}, Fault.MISSING, "id"),
        ({"action": "read", "id": ""}, Fault.MISSING, "id"),
        ({"action": "read", "id": 7}, Fault.WRONG_TYPE, "id"),
        ({"action": "read", "id": "x", "limit": 24_001}, Fault.OUT_OF_RANGE, "limit"),
        ({"action": "read", "id": "x", "childrenOffset": -1}, Fault.OUT_OF_RANGE, "childrenOffset"),
        ({"action": "read", "id": "x", "query": "q"}, Fault.UNKNOWN_PARAMETER, "query"),
    ],
)
def test_bad_requests_name_the_parameter(given: object, code: Fault, parameter: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse(given)
    assert (caught.value.code, caught.value.parameter) == (code, parameter)


def test_hosts_by_name() -> None:
    assert parse_host(None) is None
    assert parse_host("dsh") is Host.DSH
    with pytest.raises(BadRequest) as caught:
        parse_host("DSH")
    assert caught.value.values == {"hosts": "pi, dsh"}

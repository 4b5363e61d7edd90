from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.answers import Result, Why
from archive.model import EndReason, Host, Lineage, NodeId, Parentage, SessionArchive
from archive.read import read
from archive.request import Read, Search, parse
from archive.search import search
from harness_client.types import SessionId
from tests.archive.libraries import TEXT, archives, library, moment, naive, pair, session, summarised


def ids(*made: SessionArchive, **asked: object) -> list[str]:
    request = parse({"action": "search", **asked})
    assert isinstance(request, Search)
    return [result.id for result in search(library(*made), request).results]


def fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


@given(archives(), TEXT.filter(lambda text: bool(text.strip())))
def test_search_equals_a_naive_scan(made: list[SessionArchive], query: str) -> None:
    shelves = library(*made)
    expected = naive(made, query)
    found: list[Result] = []
    offset: int | None = 0
    while offset is not None:
        answer = search(shelves, Search(query, offset=offset, limit=3))
        found += answer.results
        assert (answer.reason is None) is bool(answer.results)
        offset = answer.next_offset
    assert [(hit.end, hit.host, hit.id) for hit in expected] == [(hit.end, hit.host, hit.id) for hit in found]
    for result, hit in zip(found, expected, strict=True):
        text = read(shelves, Read(result.id, result.host)).text
        assert text == "\n\n".join(hit.bodies)
        assert result.matches
        for match in result.matches:
            piece = text.encode("utf-16-le")[2 * match.start : 2 * match.end].decode("utf-16-le")
            assert fold(query) in fold(piece)
        assert all(one.end <= other.start for one, other in itertools.pairwise(result.matches))


@pytest.mark.parametrize("query", ["库", "据库", "数据库", "STRASSE", "ß", "i\u0307", "😀", "E\u0301"])
def test_what_people_search_for_is_found(query: str) -> None:
    pairs = [pair(0, "数据库", answer="Straße"), pair(1, "İzmir 😀", answer="café", at=5)]
    assert ids(session("s", pairs), query=query) != []


def test_a_hit_says_where_it_is() -> None:
    made = session("s", [pair(0, "why 😀 x", "because 😀 x", answer="no x", later=["x"], at=9)], title="Title")
    (result,) = search(library(made), Search("X")).results
    assert [(match.where, match.start, match.end) for match in result.matches] == [
        ("question", 7, 8),
        ("question", 21, 22),
        ("answer", 27, 28),
        ("answer", 30, 31),
    ]
    assert (result.kind, result.level, result.session_id, result.title) == ("pair", 0, "native-s", "Title")
    assert (result.start, result.end, result.completed, result.ready) == (moment(9), moment(10), True, True)
    assert result.source.entry_ids == ("q0", "a0")
    assert [(parent.id, parent.preview) for parent in result.parents] == [("s", "Title")]
    assert result.preview == "why 😀 x because 😀 x no x x"


def test_levels_are_separate_hits_and_unfinished_summaries_are_none() -> None:
    pairs = [pair(number, f"needle {number}", at=number) for number in range(5)]
    plain = session("s", pairs)
    assert len(ids(plain, query="needle")) == 5
    written = summarised(plain, "needle in short")
    results = search(library(written), Search("needle")).results
    assert sorted(result.level or 0 for result in results) == [0, 0, 0, 0, 0, 1]
    (summary,) = (result for result in results if result.kind == "summary")
    assert summary.source.entry_ids == ("q0", "a3")
    assert (summary.start, summary.end) == (moment(0), moment(4))
    assert [match.where for match in summary.matches] == ["summary"]


def test_order_is_newest_end_then_host_then_id() -> None:
    made = [
        session("b", [pair(0, "x", at=5)]),
        session("a", [pair(0, "x", at=5)], host=Host.PI),
        session("c", [pair(0, "x", at=5)], host=Host.DSH),
        session("d", [pair(0, "x", at=7)]),
    ]
    assert ids(*made, query="x") == ["d-0", "c-0", "a-0", "b-0"]
    assert ids(*made) == ["d", "c", "a", "b"]
    assert ids(*made, limit=2, offset=1) == ["c", "a"]
    assert ids(*made, host="pi") == ["d", "a", "b"]
    assert ids(*made, sessionId="native-c") == ["c"]


def test_times_intersect() -> None:
    made = session("s", [pair(number, "x", at=number * 10) for number in range(3)])
    assert ids(made, query="x", **{"from": moment(11)}) == ["s-2", "s-1"]
    assert ids(made, query="x", **{"from": moment(12)}) == ["s-2"]
    assert ids(made, query="x", to=moment(10)) == ["s-1", "s-0"]
    assert ids(made, to=moment(10), **{"from": moment(5)}) == ["s"]


def test_the_list_of_sessions_tells_each() -> None:
    made = session("s", [pair(0, "first"), pair(1, "second", end=EndReason.OPEN, at=3)])
    (row,) = search(library(made), Search("  ")).results
    assert (row.kind, row.level, row.preview, row.completed, row.ready) == ("session", None, "first", False, True)
    assert (row.start, row.end, row.matches, row.parents) == (moment(0), moment(4), (), ())
    assert row.source.entry_ids == ("q0", "a1")
    (row,) = search(library(session("e", [], title="a title")), Search()).results
    assert (row.preview, row.start, row.source.entry_ids) == ("a title", moment(0), ())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Search("absent"), Why.NO_MATCH),
        (Search(host=Host.DSH), Why.NO_SUCH_HOST),
        (Search(session=SessionId("s")), Why.NO_SUCH_SESSION),
        (Search("x", since=moment(60)), Why.OUT_OF_RANGE),
        (Search("x", offset=1), Why.PAST_THE_END),
    ],
)
def test_no_results_say_why(asked: Search, why: Why) -> None:
    answer = search(library(session("s", [pair(0, "x")])), asked)
    assert answer.results == ()
    assert answer.next_offset is None
    assert answer.reason is not None
    assert answer.reason.code is why
    assert answer.reason.hosts == ((asked.host,) if asked.host else (Host.PI, Host.DSH))


def test_no_archive_says_so() -> None:
    reason = search(library(), Search("x")).reason
    assert reason is not None
    assert (reason.code, reason.sessions) == (Why.NO_ARCHIVE, 0)


def test_what_a_fork_copied_is_marked() -> None:
    parent = session("parent", [pair(0, "x", answer="same")])
    lineage = Lineage(SessionId("native-parent"), Parentage.FORK)
    fork = session("fork", [pair(0, "x", answer="same"), pair(7, "x", at=5)], lineage=lineage)
    marks = {hit.id: hit.shared for hit in search(library(parent, fork), Search("x")).results}
    assert {name for name, mark in marks.items() if mark is True} == {"fork-0"}
    assert not any(hit.shared is True for hit in search(library(fork), Search("x")).results)
    assert read(library(parent, fork), Read(NodeId("fork-0"))).shared is True


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_preview_shows_the_hit(before: int, after: int) -> None:
    made = session("s", [pair(0, "😀词 " * before + "NEEDLE" + " tail" * after)])
    (result,) = search(library(made), Search("needle")).results
    assert "NEEDLE" in result.preview
    assert len(result.preview) <= 161
    assert "\n" not in result.preview

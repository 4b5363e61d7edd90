from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.merge import merge
from archive.model import (
    Code,
    EndReason,
    Lineage,
    NodeId,
    Notice,
    Pair,
    Parentage,
    Scan,
    SessionArchive,
    Stamp,
    Summary,
)
from archive.pairs import Human, Moment, Reply, sealed
from archive.times import Instant
from harness_client.types import SessionId
from tests.archive.making import archive_of, moments, scan_of, with_summary
from tests.archive.trees import trees

ROOT = NodeId("s")


def merged(*scans: Scan, start: SessionArchive | None = None) -> SessionArchive:
    archive = start
    for scan in scans:
        archive = merge(archive, scan, ROOT)
    assert archive is not None
    return archive


@given(trees(), st.lists(st.integers(0, 24), min_size=2, max_size=4))
@settings(max_examples=60)
def test_the_order_of_commits_does_not_matter(line: list[Moment], cuts: list[int]) -> None:
    scans = [scan_of(line[:cut]) for cut in cuts]
    expected = merged(*scans)
    for order in permutations(scans):
        assert merged(*order) == expected
        assert merged(*order, *order) == expected


@given(trees())
def test_one_commit_or_many_come_to_the_same(line: list[Moment]) -> None:
    steps = [scan_of(line[:cut]) for cut in range(len(line) + 1)]
    assert merged(*steps) == merged(steps[-1])


def test_a_stale_scan_overwrites_nothing() -> None:
    late = scan_of(moments(2), title="new", lineage=Lineage(SessionId("p"), Parentage.FORK))
    early = scan_of(moments(1, open_question="question 1"), title="old", warnings=(Notice(Code.LINE_TORN, "s", 9),))
    assert merged(late, early) == merged(late)


def test_a_stale_scan_fills_what_nobody_knew() -> None:
    late = scan_of(moments(2))
    early = scan_of(moments(1), title="old", lineage=Lineage(SessionId("p"), Parentage.FORK))
    archive = merged(late, early)
    assert (archive.title, archive.lineage.parent) == ("old", "p")


def test_a_shrunk_log_removes_nothing() -> None:
    full = merged(scan_of(moments(3)))
    shrunk = merged(scan_of(moments(1), mtime=99), start=full)
    assert shrunk.nodes == full.nodes
    assert shrunk.branches == full.branches
    assert shrunk.scan.size == 99


def test_another_log_under_the_same_id_joins_as_a_tree_of_its_own() -> None:
    archive = merged(scan_of(moments(2)), scan_of(moments(2, prefix="x"), mtime=99))
    assert len(archive.pairs) == 4
    assert len(archive.branches) == 2
    assert archive.roots == tuple(archive.nodes)


def test_of_equal_states_the_newer_reading_counts() -> None:
    first = scan_of(moments(1))
    corrected = [replace(moment, act=Human("corrected")) if moment.entry == "q0" else moment for moment in moments(1)]
    archive = merged(first, scan_of(corrected, mtime=99), first)
    assert [pair.inputs[0].text for pair in archive.pairs.values()] == ["corrected"]


def test_a_complete_answer_never_goes_back() -> None:
    line = moments(1)
    undone = [
        *line[:1],
        replace(line[1], act=Reply("", EndReason.ABORTED)),
        Moment("x", line[1].at, 1, Reply("", EndReason.ABORTED)),
    ]
    archive = merged(scan_of(line), scan_of(undone, mtime=99))
    (pair,) = archive.pairs.values()
    assert pair.completed


def test_known_ids_of_any_shape_stay() -> None:
    (name, pair), *_ = archive_of(1).pairs.items()
    old = archive_of(1)
    old = replace(old, nodes={NodeId("0-root"): pair}, branches=((NodeId("0-root"),),), roots=(NodeId("0-root"),))
    grown = merged(scan_of(moments(2)), start=old)
    assert name not in grown.nodes
    assert next(iter(grown.nodes)) == "0-root"
    assert grown.branches == (tuple(grown.nodes),)
    assert merged(scan_of(moments(3)), start=grown).branches[0][:2] == grown.branches[0]


def test_a_migration_keeps_the_ids_of_before() -> None:
    counted = [replace(moment, entry=f"v1-{index:06d}") for index, moment in enumerate(moments(2))]
    before = merged(scan_of(counted))
    after = merged(scan_of(moments(3), mtime=99), start=before)
    assert list(after.pairs)[:2] == list(before.pairs)
    assert [pair.entry_ids[0] for pair in after.pairs.values()] == ["q0", "q1", "q2"]
    assert merged(scan_of(counted), start=after) == after
    again = merged(scan_of(moments(4), mtime=100), start=after)
    assert list(again.pairs)[:3] == list(after.pairs)


def test_two_equal_questions_are_still_two_after_a_migration() -> None:
    counted = [
        replace(moment, entry=f"v1-{index:06d}", at=Instant("2026-01-01T00:00:00.000Z"))
        for index, moment in enumerate(moments(2))
    ]
    same = [replace(moment, act=Human("same")) if isinstance(moment.act, Human) else moment for moment in counted]
    real = [replace(moment, entry=f"e{index}") for index, moment in enumerate(same)]
    before, after = merged(scan_of(same)), merged(scan_of(same), scan_of(real, mtime=99))
    assert set(after.pairs) == set(before.pairs)


def test_a_changed_child_makes_every_summary_above_it_stale() -> None:
    archive = with_summary(archive_of(16), level_two=True)
    assert merged(scan_of(moments(17)), start=archive).nodes[NodeId("top")] == archive.nodes[NodeId("top")]
    line = moments(16)
    later = Moment("l", line[1].at, 1, Reply("later", EndReason.STOP))
    grown = [*line[:2], later, *(replace(moment, parent=index) for index, moment in enumerate(line[2:], 2))]
    fresh = merged(scan_of(grown, mtime=99), start=archive)
    ready = {name: node.ready for name, node in fresh.nodes.items() if isinstance(node, Summary)}
    assert ready == {"sum": False, "sum1": True, "sum2": True, "sum3": True, "top": False}
    assert fresh.roots == ("top",)


def test_top_nodes_stand_in_the_order_of_what_they_cover() -> None:
    archive = with_summary(archive_of(6))
    assert archive.roots == ("sum", *list(archive.pairs)[4:])


@pytest.mark.parametrize("same", [True, False])
def test_stamps_compare_the_state_and_not_what_was_found(same: bool) -> None:
    stamp = Stamp(1, 2, 3, "x")
    assert stamp.same_state(Stamp(1, 2 if same else 3)) is same


def test_equal_contents_have_equal_digests() -> None:
    pair = next(iter(archive_of(1).pairs.values()))
    assert isinstance(pair, Pair)
    assert sealed(replace(pair, digest="")) == pair

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from archive.merge import merge
from archive.model import EndReason, NodeId, SessionArchive, Summary
from archive.pairs import Moment
from archive.tree import digest, due, grouped, parents
from tests.archive.libraries import pair, session, summarised
from tests.archive.making import moments, scan_of
from tests.archive.trees import projected, trees


def summaries(archive: SessionArchive) -> dict[NodeId, Summary]:
    return {name: node for name, node in archive.nodes.items() if isinstance(node, Summary)}


def pairs_of(archive: SessionArchive, name: NodeId) -> tuple[NodeId, ...]:
    node = archive.nodes[name]
    if not isinstance(node, Summary):
        return (name,)
    return tuple(pair for child in node.children for pair in pairs_of(archive, child))


def paths(archive: SessionArchive) -> list[list[NodeId]]:
    """Every branch whole, from its first pair to its last, put together by hand."""
    whole: list[list[NodeId]] = []
    for branch in archive.branches:
        held = next((path for path in whole if branch[0] in path), None)
        start = held[: held.index(branch[0])] if held else []
        whole.append([*start, *branch])
    return whole


def groups_by_hand(path: list[NodeId]) -> set[tuple[NodeId, ...]]:
    """The stretches of pairs that summaries of one branch cover."""
    found: set[tuple[NodeId, ...]] = set()
    level: list[tuple[NodeId, ...]] = [(name,) for name in path]
    while len(level) >= 4:
        level = [sum(level[at : at + 4], ()) for at in range(0, len(level) - 3, 4)]
        found |= set(level)
    return found


@given(trees())
def test_each_branch_is_grouped_by_itself_and_shared_groups_once(tree: list[Moment]) -> None:
    projection = projected(tree)
    archive = merge(None, replace(scan_of([]), pairs=projection.pairs, branches=projection.branches), NodeId("s"))
    view = grouped(archive)
    covered = [pairs_of(view, name) for name in summaries(view)]
    assert len(covered) == len(set(covered))
    assert set(covered) == set().union(*map(groups_by_hand, paths(archive)))
    assert grouped(view) is view


def test_a_long_wide_session_takes_linear_time() -> None:
    archive = session("s", [pair(number, "q") for number in range(5_000)])
    names = list(archive.nodes)
    extra = {NodeId(f"x{number}"): pair(number, "x") for number in range(2_000)}
    branches = (archive.branches[0], *((names[-2], name) for name in extra))
    wide = replace(archive, nodes={**archive.nodes, **extra}, branches=branches)
    view = grouped(wide)
    # 4,999 pairs lie before the leaves; each of the 2,001 leaves closes a four of its own, 5,000 being one
    assert sum(node.level == 1 for node in summaries(view).values()) == 1_249 + 2_001


def test_a_tail_is_left_under_the_root_and_an_id_that_is_there_stays() -> None:
    archive = session("s", [pair(number, f"q{number}", at=number) for number in range(22)])
    view = grouped(archive)
    assert [pairs_of(view, name)[0] for name in view.roots] == ["s-0", "s-16", "s-20", "s-21"]
    names = list(archive.nodes)
    old = Summary(1, tuple(names[:4]), "old", ready=True, source_digest="another formula")
    known = replace(archive, nodes={**archive.nodes, NodeId("old"): old})
    again = grouped(known)
    assert again.nodes[NodeId("old")] == old
    assert len(summaries(again)) == len(summaries(view))
    assert parents(again)[names[0]] == ["old"]


def test_ids_do_not_depend_on_what_comes_later() -> None:
    shorter = merge(None, scan_of(moments(9)), NodeId("s"))
    longer = merge(shorter, scan_of(moments(30)), NodeId("s"))
    assert summaries(grouped(shorter)).keys() < summaries(grouped(longer)).keys()


def test_what_may_change_is_not_due() -> None:
    closed = session("s", [pair(number, f"q{number}", at=number) for number in range(8)])
    assert len(due(grouped(closed))) == 2
    names = list(closed.nodes)
    last = pair(7, "q7", end=EndReason.OPEN, at=7)
    waiting = replace(closed, nodes={**closed.nodes, names[7]: last})
    (first,) = due(grouped(waiting))
    assert pairs_of(grouped(waiting), first) == tuple(names[:4])
    assert digest(waiting, tuple(names[4:])) is None
    assert digest(waiting, (NodeId("gone"),)) is None


def test_a_level_is_due_only_over_what_is_written() -> None:
    archive = session("s", [pair(number, f"q{number}", at=number) for number in range(16)])
    view = grouped(archive)
    (*_, top) = due(view)
    node = view.nodes[top]
    assert isinstance(node, Summary)
    assert node.level == 2
    assert digest(view, node.children) is None
    assert due(summarised(archive)) == []


def test_the_digest_tells_content_and_time() -> None:
    one = session("s", [pair(number, "q", at=number) for number in range(4)])
    same = session("t", [pair(number, "q", at=number) for number in range(4)])
    later = session("s", [pair(number, "q", at=number + 1) for number in range(4)])
    other = session("s", [pair(number, "p", at=number) for number in range(4)])
    digests = [digest(each, tuple(each.nodes)) for each in (one, same, later, other)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3

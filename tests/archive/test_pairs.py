from __future__ import annotations

import time

from hypothesis import given

from archive.model import EndReason, NodeId
from archive.pairs import Act, Close, Human, Moment, Projection, Reply, Step, ToolResult
from tests.archive.trees import at, paths_by_hand, projected, seen, trees

STOP = Reply("done", EndReason.STOP)


def line(*acts: Act) -> list[Moment]:
    return [Moment(f"e{index}", at(index), index - 1 if index else None, act) for index, act in enumerate(acts)]


def whole(projection: Projection) -> list[list[NodeId]]:
    """Spell branches out from their roots."""
    paths: dict[NodeId, list[NodeId]] = {}
    result = []
    for first, *rest in projection.branches:
        path = paths.setdefault(first, [first])
        for node in rest:
            path = [*path, node]
            paths[node] = path
        result.append(path)
    return result


@given(trees())
def test_every_path_reads_as_it_does_by_hand(moments: list[Moment]) -> None:
    projection = projected(moments)
    read = [[seen(projection.pairs[node]) for node in path] for path in whole(projection)]
    assert sorted(read) == sorted(paths_by_hand(moments))


@given(trees())
def test_a_growing_log_keeps_its_ids_and_its_complete_answers(moments: list[Moment]) -> None:
    before = projected([])
    for length in range(1, len(moments) + 1):
        after = projected(moments[:length])
        assert before.pairs.keys() <= after.pairs.keys()
        for node, pair in before.pairs.items():
            now = after.pairs[node]
            assert now.completed or not pair.completed
            assert now.entry_ids[: len(pair.entry_ids)] == pair.entry_ids
        before = after


@given(trees())
def test_branches_hold_every_pair_once(moments: list[Moment]) -> None:
    projection = projected(moments)
    placed: set[NodeId] = set()
    for first, *rest in projection.branches:
        assert placed.isdisjoint(rest)
        assert first not in placed or rest
        placed.update((first, *rest))
    assert placed == set(projection.pairs)


def test_supplements_join_until_the_answer_comes() -> None:
    (pair,) = projected(
        line(Human("a"), Step(frozenset("x")), ToolResult("x"), Human("b"), Human("c"), STOP)
    ).pairs.values()
    assert [given.text for given in pair.inputs] == ["a", "b", "c"]
    assert pair.completed
    assert pair.entry_ids == ("e0", "e1", "e3", "e4", "e5")


def test_a_question_behind_an_unanswered_call_is_a_new_one() -> None:
    first, second = projected(line(Human("a"), Step(frozenset("x")), Human("b"), STOP)).pairs.values()
    assert first.end_reason is EndReason.INTERRUPTED
    assert second.completed


def test_a_failure_closes_and_a_retry_reopens() -> None:
    failed = Reply("part", EndReason.ERROR, retryable=True)
    (retried,) = projected(line(Human("a"), failed, Step(), STOP)).pairs.values()
    assert (retried.answer, retried.end_reason) == ("done", EndReason.STOP)
    given_up, following = projected(line(Human("a"), failed, Human("b"))).pairs.values()
    assert (given_up.answer, given_up.end_reason) == ("part", EndReason.ERROR)
    assert following.end_reason is EndReason.OPEN


def test_a_blank_retry_keeps_the_partial_text() -> None:
    attempts = [Reply(text, EndReason.ERROR, retryable=True) for text in ("part", " ")]
    (pair,) = projected(line(Human("a"), *attempts)).pairs.values()
    assert (pair.answer, pair.end_reason) == ("part", EndReason.ERROR)


def test_answers_without_a_question_come_later_or_not_at_all() -> None:
    assert projected(line(STOP, Step(), Close(EndReason.ERROR, "lost"))).pairs == {}
    news = Reply("news", EndReason.STOP)
    (pair,) = projected(line(Human("a"), STOP, Step(), news, Close(EndReason.ERROR, "x"))).pairs.values()
    assert (pair.answer, pair.later, pair.end_reason) == ("done", ("news",), EndReason.STOP)


def test_a_turn_that_ended_without_a_message_closes_the_pair() -> None:
    first, second = projected(line(Human("a"), Close(EndReason.ABORTED, "half"), Human("b"))).pairs.values()
    assert (first.answer, first.end_reason) == ("half", EndReason.ABORTED)
    assert second.end_reason is EndReason.OPEN


def test_digests_tell_contents_apart() -> None:
    contents = [line(Human("ab"), STOP), line(Human("a"), Human("b"), STOP), line(Human("ab"), Human(""), STOP)]
    digests = [pair.digest for moments in contents for pair in projected(moments).pairs.values()]
    assert len(set(digests)) == 3


def _spine(length: int, leaves: int) -> list[Moment]:
    """A path of ``length`` entries, two a pair, with ``leaves`` side branches of one pair each along it."""
    moments = line(*[Human("q") if index % 2 == 0 else STOP for index in range(length)])
    for leaf in range(leaves):
        fork = (2 * leaf * max(1, length // (2 * leaves)) + 1) % length
        moments.append(Moment(f"q{leaf}", at(leaf), fork, Human("side")))
        moments.append(Moment(f"a{leaf}", at(leaf), len(moments) - 1, STOP))
    return moments


def _seconds(moments: list[Moment]) -> float:
    """The best of three, in processor time: what else the machine does is no part of it."""
    times = []
    for _ in range(3):
        start = time.process_time()
        projected(moments)
        times.append(time.process_time() - start)
    return min(times)


def test_deep_and_wide_trees_cost_what_they_hold() -> None:
    large = _spine(50_000, 2_000)
    projection = projected(large)
    assert len(projection.pairs) == 27_000
    assert sum(map(len, projection.branches)) <= 27_000 + 2_000
    # ten times the tree may cost ten times as much, with room for caches; quadratic work would cost a hundred times
    assert _seconds(large) < 30 * max(_seconds(_spine(5_000, 200)), 0.005)

from __future__ import annotations

from archive.forks import shared_pairs
from archive.merge import merge
from archive.model import EndReason, Host, NodeId, SessionArchive
from archive.pairs import Moment, Reply
from tests.archive import samples
from tests.archive.making import moments, scan_of


def archived(line: list[Moment], session: str) -> SessionArchive:
    return merge(None, scan_of(line, session=session), NodeId(session))


def test_a_fork_shares_what_its_parent_has_and_no_more() -> None:
    parent = archived([*moments(3), Moment("later", moments(1)[0].at, 5, Reply("more", EndReason.STOP))], "p")
    fork = archived([*moments(3), Moment("own", moments(1)[0].at, 5, moments(1)[0].act)], "f")
    assert shared_pairs(fork, parent) == set(list(fork.pairs)[:3])
    assert shared_pairs(fork, archived(moments(2), "p")) == set(list(fork.pairs)[:2])


def test_counted_ids_are_told_apart_by_what_was_asked() -> None:
    parent, fork = moments(1), [Moment("q0", moments(1)[0].at, None, moments(2)[2].act)]
    assert shared_pairs(archived(fork, "f"), archived(parent, "p")) == frozenset()


def test_real_forks_of_both_hosts() -> None:
    for host, names in SHARED.items():
        by_name = {name: path for path in (*samples.PI, *samples.DSH) for name in names if name in samples.name(path)}
        archives = []
        for name in names:
            session = str(samples.expected(by_name[name])["sessionId"])
            reader = samples.read_pi if host is Host.PI else samples.read_dsh
            archives.append(merge(None, reader(by_name[name], session), NodeId(session)))
        parent, fork = archives
        assert shared_pairs(fork, parent) == set(list(fork.pairs)[: len(fork.pairs) - 1])


SHARED = {Host.PI: ("18-01-284Z", "18-01-829Z"), Host.DSH: ("d06-fork-source", "d06-fork-child")}

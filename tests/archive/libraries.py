"""Random archives of both hosts, and the plainest possible search over them to compare with."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

from archive.files import ArchiveFolder
from archive.library import Library
from archive.model import EndReason, Host, Input, Lineage, NodeId, Origin, Pair, SessionArchive, Stamp, Summary
from archive.pairs import sealed
from archive.shelf import Shelf
from archive.times import Instant
from archive.tree import digest, due, grouped
from harness_client.types import SessionId

TEXT = st.text(st.sampled_from("aAbBß ſİıeE\u0301\u0307é中文数据库😀\n"), max_size=12)


def pair(
    number: int, *inputs: str, answer: str = "", later: Sequence[str] = (), end: EndReason = EndReason.STOP, at: int = 0
) -> Pair:
    start, last = moment(at), moment(at + 1)
    given = tuple(Input(Origin.USER, text, start) for text in inputs)
    return sealed(Pair(given, answer, tuple(later), end, (f"q{number}", f"a{number}"), start, last, ""))


def moment(minute: int) -> Instant:
    return Instant(f"2026-01-{1 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00.000Z")


def session(
    name: str, pairs: Sequence[Pair], *, host: Host = Host.PI, lineage: Lineage | None = None, title: str | None = None
) -> SessionArchive:
    """One branch of pairs; node ids are the session's name and a number."""
    ids = [NodeId(f"{name}-{number}") for number in range(len(pairs))]
    return SessionArchive(
        host=host,
        id=NodeId(name),
        session=SessionId(f"native-{name}"),
        title=title,
        created_at=moment(0),
        updated_at=max((each.end for each in pairs), default=moment(0)),
        lineage=lineage or Lineage(),
        scan=Stamp(1, 1),
        nodes=dict(zip(ids, pairs, strict=True)),
        branches=(tuple(ids),) if ids else (),
        roots=tuple(ids),
        scan_warnings=(),
        summary_warnings=(),
    )


def summarised(archive: SessionArchive, text: str = "summary") -> SessionArchive:
    """Write every summary that is due, as a run would."""
    view = grouped(archive)
    for number, name in enumerate(due(view)):
        node = view.nodes[name]
        assert isinstance(node, Summary)
        written = replace(node, text=f"{text} {number}", ready=True, source_digest=digest(view, node.children))
        view = replace(view, nodes={**view.nodes, name: written})
    return view


def library(*archives: SessionArchive) -> Library:
    return Library({(archive.host, archive.id): Shelf(archive) for archive in archives}, ())


def publish(workspace: Path, *archives: SessionArchive) -> None:
    """Write archives as they are into a workspace."""
    for archive in archives:
        ArchiveFolder(workspace, archive.host).adopt(archive)


@st.composite
def archives(draw: st.DrawFn) -> list[SessionArchive]:
    made = []
    for number in range(draw(st.integers(0, 4))):
        host = draw(st.sampled_from(Host))
        count = draw(st.integers(0, 9))
        pairs = [
            pair(
                index,
                *draw(st.lists(TEXT, min_size=1, max_size=2)),
                answer=draw(TEXT),
                later=draw(st.lists(TEXT, max_size=1)),
                end=draw(st.sampled_from([EndReason.STOP, EndReason.ABORTED])),
                at=draw(st.integers(0, 300)),
            )
            for index in range(count)
        ]
        archive = session(f"s{number}", pairs, host=host)
        made.append(summarised(archive, draw(TEXT)) if draw(st.booleans()) else archive)
    return made


@dataclass(frozen=True, slots=True)
class Naive:
    """What a hit is, without anything clever."""

    end: str
    host: str
    id: str
    bodies: tuple[str, ...]


def naive(archives: Sequence[SessionArchive], query: str) -> list[Naive]:
    """Look at every text of every node, fold both sides, compare."""
    wanted = unicodedata.normalize("NFC", query).casefold()
    found = []
    for archive in archives:
        for name, node in archive.nodes.items():
            if isinstance(node, Summary):
                texts = [node.text or ""] if node.ready else []
                end = _last(archive, name)
            else:
                texts = [*(given.text for given in node.inputs), node.answer, *node.later]
                end = node.end
            if any(wanted in unicodedata.normalize("NFC", text).casefold() for text in texts):
                found.append(Naive(end, archive.host.value, name, tuple(text for text in texts if text)))
    found.sort(key=lambda hit: (hit.host, hit.id))
    return sorted(found, key=lambda hit: hit.end, reverse=True)


def _last(archive: SessionArchive, name: NodeId) -> str:
    node = archive.nodes[name]
    return _last(archive, node.children[-1]) if isinstance(node, Summary) else node.end

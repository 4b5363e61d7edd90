from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

import pytest

from archive.model import Code, Host, NodeId, Pair, SessionArchive, Source, Summary
from archive.names import root_name
from archive.schema import Unreadable, decode, encode
from harness_client.types import SessionId
from tests.archive.making import archive_of, with_summary

Json = dict[str, object]


def changed(change: Callable[[Json], object]) -> bytes:
    wire = cast("Json", json.loads(encode(with_summary(archive_of(pairs=5)))))
    change(wire)
    return json.dumps(wire).encode()


def read(data: bytes, *, stem: str = "s", host: Host = Host.PI) -> SessionArchive:
    return decode(data, stem=stem, host=host).archive


@pytest.mark.parametrize("archive", [archive_of(), archive_of(pairs=3), with_summary(archive_of(pairs=5))])
def test_what_is_written_reads_back_equal(archive: SessionArchive) -> None:
    assert read(encode(archive)) == archive


def test_the_fields_are_those_of_the_contract() -> None:
    wire = json.loads(encode(archive_of(pairs=1)))
    assert list(wire) == [
        "format", "version", "host", "id", "sessionId", "title", "createdAt", "updatedAt",
        "lineage", "scan", "nodes", "branches", "roots", "warnings",
    ]  # fmt: skip
    (node,) = wire["nodes"].values()
    assert list(node) == [
        "kind", "inputs", "answer", "later", "completed", "endReason", "entryIds", "start", "end", "digest",
    ]  # fmt: skip


def node(wire: Json, index: int) -> Json:
    return list(cast("dict[str, Json]", wire["nodes"]).values())[index]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda wire: wire.update(format="other"), id="format"),
        pytest.param(lambda wire: wire.update(host="dsh"), id="host"),
        pytest.param(lambda wire: wire.update(id="t"), id="not its name"),
        pytest.param(lambda wire: wire.update(extra=1), id="unknown field"),
        pytest.param(lambda wire: wire.pop("roots"), id="missing field"),
        pytest.param(lambda wire: wire.update(createdAt="yesterday"), id="time"),
        pytest.param(lambda wire: wire.update(roots=["nobody"]), id="dangling root"),
        pytest.param(lambda wire: wire.update(branches=[]), id="pairs on no branch"),
        pytest.param(lambda wire: wire.update(branches=[["nobody"]]), id="dangling branch"),
        pytest.param(lambda wire: wire["branches"].append(wire["branches"][0]), id="branch twice"),
        pytest.param(lambda wire: wire["branches"].append(wire["branches"][0][:1]), id="branch of nothing new"),
        pytest.param(lambda wire: wire["branches"][0].append(wire["branches"][0][0]), id="circle in a branch"),
        pytest.param(lambda wire: node(wire, 0).update(completed=False), id="completed"),
        pytest.param(lambda wire: node(wire, 0).update(entryIds=[]), id="no entries"),
        pytest.param(lambda wire: node(wire, 0).update(inputs=[]), id="no inputs"),
        pytest.param(lambda wire: node(wire, 5).update(children=["nobody"] * 4), id="dangling child"),
        pytest.param(lambda wire: node(wire, 5).update(level=2), id="level"),
        pytest.param(lambda wire: node(wire, 5).update(children=["sum"] * 4), id="circle of summaries"),
        pytest.param(lambda wire: node(wire, 5).update(children=["sum"] * 3), id="three children"),
    ],
)
def test_an_inconsistent_file_is_damaged(change: Callable[[Json], object]) -> None:
    with pytest.raises(Unreadable) as caught:
        read(changed(change))
    assert caught.value.code is Code.ARCHIVE_DAMAGED


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'"\xff"', b'{"format":"pbot-history","version":"1"}', b"[" * 100_000]
)
def test_rubbish_is_damaged(data: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        read(data)
    assert caught.value.code is Code.ARCHIVE_DAMAGED


def test_a_newer_version_is_told_apart() -> None:
    with pytest.raises(Unreadable) as caught:
        read(changed(lambda wire: wire.update(version=2, novelty={})))
    assert caught.value.code is Code.ARCHIVE_UNKNOWN_VERSION


def test_the_path_of_an_old_index_is_read_and_not_written() -> None:
    decoded = decode(changed(lambda wire: wire.update(file="/native.jsonl")), stem="s", host=Host.PI)
    assert decoded.file == "/native.jsonl"
    assert b"native.jsonl" not in encode(decoded.archive)


def test_a_node_knows_its_source() -> None:
    archive = with_summary(archive_of(pairs=5))
    first, *_, fourth, _ = (item for item in archive.nodes.values() if isinstance(item, Pair))
    assert archive.source(NodeId("sum")) == Source(Host.PI, archive.session, (first.entry_ids[0], fourth.entry_ids[-1]))
    name = next(iter(archive.pairs))
    assert archive.source(name) == Source(Host.PI, archive.session, first.entry_ids)
    assert isinstance(archive.nodes[NodeId("sum")], Summary)
    with pytest.raises(KeyError):
        archive.source(NodeId("nobody"))


@pytest.mark.parametrize("session", ["01a22d3b-588a-7752-8af3-d40c198a2112", "My_session.2", "-x", "_"])
def test_plain_session_ids_name_their_files(session: str) -> None:
    assert root_name(Host.PI, SessionId(session)) == session
    assert root_name(Host.DSH, SessionId(session)) == f"dsh-{session}"


@pytest.mark.parametrize(
    "session",
    [
        "",
        ".",
        "..",
        ".hidden",
        "a/b",
        "../evil",
        "a\\b",
        "naïve",
        "x" * 121,
        "CON",
        "nul.json",
        "com1",
        "end.",
        "a b",
        "a\n",
    ],
)
def test_other_session_ids_are_hashed(session: str) -> None:
    name = root_name(Host.PI, SessionId(session))
    assert name.startswith("h-")
    assert len(name) == 34
    assert root_name(Host.DSH, SessionId(session)) == f"dsh-{name}"


def test_ids_that_differ_in_case_alone_get_files_of_their_own() -> None:
    assert root_name(Host.PI, SessionId("abc"), {"abc": "abc", "other": "other"}) == "abc"
    assert root_name(Host.PI, SessionId("ABC"), {"abc": "abc"}).startswith("h-")

"""A log cut anywhere: a reader sees such a file while the host writes, and after a crash."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.model import NodeId, Pair
from tests.archive import samples

LOGS = [*samples.PI, *samples.DSH]
_SHORT = 60_000
"""Bytes up to which every line end and its neighbours are tried; longer samples at fewer places."""


@cache
def plain(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".zstd":
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    return data


@cache
def session(path: Path) -> str:
    return str(json.loads(plain(path).split(b"\n", 1)[0])["id"])


def read(path: Path, data: bytes, folder: Path, suffix: str) -> dict[NodeId, Pair]:
    file = folder / f"session.v4{suffix}"
    file.write_bytes(data)
    reader = samples.read_dsh if path in samples.DSH else samples.read_pi
    try:
        return dict(reader(file, session(path)).pairs)
    except FileNotFoundError:  # not even the header is whole
        return {}


def assert_grows(before: dict[NodeId, Pair], after: dict[NodeId, Pair]) -> None:
    assert before.keys() <= after.keys()
    for node, pair in before.items():
        assert after[node].completed or not pair.completed


@pytest.mark.parametrize("path", LOGS, ids=samples.name)
def test_ids_only_come_and_answers_only_complete(path: Path, tmp_path: Path) -> None:
    data = plain(path)
    ends = [index for index, byte in enumerate(data) if byte == 0x0A]
    places = sorted({place for end in ends for place in (end - 7, end, end + 1, end + 40) if 0 <= place <= len(data)})
    if len(data) > _SHORT:
        places = places[:: max(1, len(places) // 12)]
    before: dict[NodeId, Pair] = {}
    for place in [*places, len(data)]:
        after = read(path, data[:place], tmp_path, ".jsonl")
        assert_grows(before, after)
        before = after
    assert before == read(path, data, tmp_path, ".jsonl")


@given(data=st.data())
@settings(max_examples=60)
def test_any_two_prefixes_agree(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = data.draw(st.sampled_from([path for path in LOGS if len(plain(path)) < _SHORT]), label="sample")
    folder = tmp_path_factory.mktemp("prefix")
    whole = path.read_bytes()
    suffix = ".jsonl.zstd" if path.suffix == ".zstd" else ".jsonl"
    short, long = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2), label="cuts"))
    assert_grows(read(path, whole[:short], folder, suffix), read(path, whole[:long], folder, suffix))


@given(data=st.data())
@settings(max_examples=60)
def test_damaged_bytes_raise_nothing(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = data.draw(st.sampled_from([path for path in LOGS if len(plain(path)) < _SHORT]), label="sample")
    folder = tmp_path_factory.mktemp("damage")
    whole = bytearray(path.read_bytes())
    start = data.draw(st.integers(0, len(whole) - 1), label="start")
    whole[start : start + 8] = data.draw(st.binary(max_size=8), label="bytes")
    read(path, bytes(whole), folder, ".jsonl.zstd" if path.suffix == ".zstd" else ".jsonl")

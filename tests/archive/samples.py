"""The reviewed session files of both hosts, and how a result is compared with its expectation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

from archive.model import EndReason, Pair, Scan, Stamp
from archive.sources.dsh import DshSession
from archive.sources.pi import PiSession
from archive.times import EPOCH
from harness_client.types import SessionId

SAMPLES = Path(__file__).parent.parent / "data" / "sessions"
EXPECTED = SAMPLES / "expected"

PI = sorted(path for path in SAMPLES.glob("pi-*/**/*.jsonl"))
DSH = sorted(path for path in SAMPLES.glob("dsh-*/**/*.zstd"))

_ENDS = {"max-tokens": "length", "completed-without-answer": "empty"}
"""The reviewed files use the host's words for two ends that the archive names in its own."""


def name(path: Path) -> str:
    return path.relative_to(SAMPLES).as_posix()


def expected(path: Path) -> dict[str, object]:
    text = (EXPECTED / f"{name(path).replace('/', '_')}.json").read_text("utf-8")
    # the file is JSON of one key; the reader below checks each field it uses
    return cast("dict[str, object]", json.loads(text)[name(path)])


def read_pi(path: Path, session: str) -> Scan:
    return PiSession(SessionId(session), Stamp(0, 0), (path,)).read()


def read_dsh(path: Path, session: str) -> Scan:
    return DshSession(SessionId(session), Stamp(0, 0), path).read()


def assert_pairs(scan: Scan, reviewed: dict[str, object]) -> None:
    """Compare inputs, answers, ends and entry ids with the reviewed result, pair by pair."""
    qas = cast("list[dict[str, object]]", reviewed["qas"])
    assert len(scan.pairs) == len(qas)
    for pair, qa in zip(scan.pairs.values(), qas, strict=True):
        _assert_inputs(pair, cast("list[str | dict[str, str]]", qa["inputs"]))
        _assert_answers(pair, cast("list[str | dict[str, str]]", qa["answer"]))
        assert list(pair.entry_ids) == qa["entryIds"]
        assert pair.completed is qa["completed"]
        end = cast("str", qa["end"])
        assert pair.end_reason is EndReason(_ENDS.get(end, end))
        assert EPOCH < pair.start <= pair.end


def _assert_inputs(pair: Pair, given: list[str | dict[str, str]]) -> None:
    assert len(pair.inputs) == len(given)
    for actual, wanted in zip(pair.inputs, given, strict=True):
        origin, text = ("user", wanted) if isinstance(wanted, str) else (wanted["origin"], wanted["text"])
        assert actual.origin == origin
        assert _alike(actual.text, text), (actual.text, text)


def _assert_answers(pair: Pair, given: list[str | dict[str, str]]) -> None:
    wanted = [text if isinstance(text, str) else text["text"] for text in given]
    actual = [pair.answer, *pair.later] if pair.answer else list(pair.later)
    assert len(actual) == len(wanted)
    assert all(map(_alike, actual, wanted)), (actual, wanted)


def _alike(actual: str, wanted: str) -> bool:
    """Equal, or, where the reviewed text was shortened for its readers, equal in beginning and length."""
    cut = re.fullmatch(r"(.*)…\[(\d+) chars\]", wanted, re.DOTALL)
    if cut is None:
        return actual == wanted
    return actual.startswith(cut[1]) and len(actual) == int(cut[2])

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from archive.model import Scan
from tests.archive import samples


@pytest.mark.parametrize("path", samples.PI, ids=samples.name)
def test_sample_equals_its_reviewed_result(path: Path) -> None:
    reviewed = samples.expected(path)
    scan = samples.read_pi(path, cast("str", reviewed["sessionId"]))

    samples.assert_pairs(scan, reviewed)
    assert _branches(scan) == _reviewed_branches(reviewed)
    assert [notice.line for notice in scan.warnings] == ([7] if "p16-torn" in path.parts else [])


def _branches(scan: Scan) -> list[list[int]]:
    """Spell the branches out as positions of pairs, whole paths instead of shared beginnings."""
    position = {node: index for index, node in enumerate(scan.pairs)}
    paths: dict[int, list[int]] = {}
    whole = []
    for branch in scan.branches:
        first, *rest = (position[node] for node in branch)
        path = list(paths.get(first, [first]))
        paths.setdefault(first, path)
        for index in rest:
            path = [*path, index]
            paths[index] = path
        whole.append(path)
    return whole


def _reviewed_branches(reviewed: dict[str, object]) -> list[list[int]]:
    keys = [qa["key"] for qa in cast("list[dict[str, object]]", reviewed["qas"])]
    return [[keys.index(key) for key in branch] for branch in cast("list[list[str]]", reviewed["branches"])]

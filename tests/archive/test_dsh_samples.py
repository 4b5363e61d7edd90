from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.archive import samples


@pytest.mark.parametrize("path", samples.DSH, ids=samples.name)
def test_sample_equals_its_reviewed_result(path: Path) -> None:
    reviewed = samples.expected(path)
    scan = samples.read_dsh(path, cast("str", reviewed["sessionId"]))

    samples.assert_pairs(scan, reviewed)
    assert scan.lineage.parent == reviewed["parentSession"]
    assert (scan.lineage.origin == "subagent") is (reviewed["origin"] == "subagent")
    assert scan.branches == ((tuple(scan.pairs),) if scan.pairs else ())
    assert scan.warnings == ()

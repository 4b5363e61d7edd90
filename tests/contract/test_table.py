"""Every case of the table on every row, against both host generations. Simulated platforms: nothing here is live."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import get_args

import pytest

from bridges.config import AnyBot
from bridges.log import Redactor
from harness_client.types import Generation
from tests.contract import rows
from tests.contract.overheard import overheard
from tests.contract.platform import Row
from tests.contract.table import CASES, Case
from tests.guards.sources import ROOT, texts

ROWS: dict[str, Row] = {
    found.name: importlib.import_module(f"{rows.__name__}.{found.name}")
    for found in pkgutil.iter_modules(rows.__path__)
}

CHANNELS = {str(table.__struct_config__.tag) for table in get_args(AnyBot)}


TABLE = [
    pytest.param(row, case, id=f"{name}-{case.name}")
    for name, row in ROWS.items()
    for case in CASES
    if not case.needs & row.LACKS
]


@pytest.mark.parametrize("generation", Generation)
@pytest.mark.parametrize(("row", "case"), TABLE)
async def test_table(row: Row, case: Case, generation: Generation, tmp_path: Path) -> None:
    redact = Redactor()
    with overheard(redact, as_json=generation is Generation.MODERN) as log:
        told = await case.on(row, generation, tmp_path, redact)
    assert log.revealing(told) == []


def test_every_channel_has_its_row() -> None:
    assert set(ROWS) == CHANNELS | {"terminal"}


@pytest.mark.parametrize("channel", sorted(CHANNELS))
def test_a_channel_has_its_fake_its_row_and_its_line_in_both_readmes(channel: str) -> None:
    assert (ROOT / "tests" / "fakes" / channel / "__init__.py").is_file()
    for readme in ("README.md", "README.zh.md"):
        assert f"| `{channel}` |" in texts()[readme], readme

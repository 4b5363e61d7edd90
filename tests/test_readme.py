"""The two READMEs are one text in two languages: same shape, same commands, same figures."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from tests.guards.sources import ROOT, texts

ENGLISH, CHINESE = "README.md", "README.zh.md"


def levels(name: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", _outside_blocks(name), re.MULTILINE)]


def commands(name: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", texts()[name], re.DOTALL)


def configuration(name: str) -> list[str]:
    blocks = re.findall(r"```toml\n(.*?)```", texts()[name], re.DOTALL)
    return [re.sub(r"\s+# .*", "", block) for block in blocks]


def tables(name: str) -> list[list[str]]:
    """Return the table rows as what has no language: code (the names of arguments aside) and numbers."""
    text = re.sub(r"\[[^]]*\](?!\()", "[…]", _outside_blocks(name))
    rows = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    return [sorted(re.findall(r"`[^`]+`|\d[\d.,]*", row)) for row in rows if not row.startswith("|---")]


def _outside_blocks(name: str) -> str:
    return re.sub(r"```.*?```", "", texts()[name], flags=re.DOTALL)


@pytest.mark.parametrize("part", [levels, commands, configuration, tables])
def test_both_languages_agree(part: object) -> None:
    assert callable(part)
    assert part(ENGLISH) == part(CHINESE)
    assert part(ENGLISH), "nothing was compared"


@pytest.mark.parametrize("name", [ENGLISH, CHINESE])
def test_named_files_exist(name: str) -> None:
    text = _outside_blocks(name)
    named = re.findall(r"\]\(([^):]+)\)", text) + re.findall(r"`((?:\w+/)+\w+\.\w+|\.ci/run|scripts/\w+)`", text)
    missing = {path for path in named if not (ROOT / PurePosixPath(path)).exists()}
    assert not missing

"""A docstring that cites a page of docs/ must cite a section that is there."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from tests.guards.sources import python, texts

PAGES = {
    PurePosixPath(name).stem: text for name, text in texts().items() if re.match(r"docs/(spec|facts)/[A-Z]+\.md", name)
}


def sections(page: str) -> set[str]:
    return set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", PAGES[page], re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_cited_sections_exist(page: str) -> None:
    cited = {
        (name, number) for name, text in python().items() for number in re.findall(rf"\b{page} (\d+(?:\.\d+)?)", text)
    }
    assert cited
    # A number inside a section, such as the traps of HARNESS 12, is found by the section it lies in.
    assert not {(name, number) for name, number in cited if sections(page).isdisjoint({number, number.split(".")[0]})}

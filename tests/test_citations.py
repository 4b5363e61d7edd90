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


def cited(page: str) -> set[tuple[str, str]]:
    """Return files and the numbers they cite a page by: "1.4", also of "1.4 to 1.7, 2 and 3.1"."""
    lists = re.compile(rf"\b{page} (\d[\d.]*(?:(?:,| and| to) \d[\d.]*)*)")
    return {
        (name, number.strip("."))
        for name, text in python().items()
        for numbers in lists.findall(text)
        for number in re.findall(r"\d[\d.]*", numbers)
    }


@pytest.mark.parametrize("page", PAGES)
def test_cited_sections_exist(page: str) -> None:
    assert cited(page)
    # A number inside a section, such as the traps of HARNESS 12, is found by the section it lies in.
    assert not {
        (name, number) for name, number in cited(page) if sections(page).isdisjoint({number, number.split(".")[0]})
    }


def test_cited_pages_exist() -> None:
    pages = {
        (name, page) for name, text in python().items() for page in re.findall(r"\b(?:facts|spec):? ([A-Z]{4,})", text)
    }
    assert not {(name, page) for name, page in pages if page not in PAGES}

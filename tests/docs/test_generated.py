"""What is generated is what the program has now; and nothing the program can say is without its cause and remedy."""

from __future__ import annotations

import pytest

from i18n import Language
from tests.docs import codes, figures, settings, stops
from tests.docs.pages import names, pairs, read
from tests.docs.parts import marked, parts, renewed
from tests.docs.tables import told
from tests.guards.sources import texts

HINT = "write them anew: .venv/bin/python -m tests.docs"


@pytest.mark.parametrize("page", sorted(names(Language.EN)))
@pytest.mark.parametrize("language", Language)
def test_generated_parts_are_those_of_the_program(page: str, language: Language) -> None:
    text = read(pairs()[page][language])
    assert renewed(text, language) == text, HINT


def test_every_part_is_on_a_page() -> None:
    shown = {mark for page in names(Language.EN) for mark in marked(read(f"docs/en/{page}"))}
    assert shown == set(parts())


def entries() -> dict[str, set[str]]:
    return {
        "troubleshooting": {each for section in codes.sections().values() for each in section.entries},
        "configuration": settings.wanted(),
        "stops": {f"{channel}.{text}" for channel in settings.CHANNELS for text in stops.stops(channel)},
        "metrics": {f"figure.{name}" for name in figures.figures()},
    }


@pytest.mark.parametrize("table", entries())
def test_everything_has_its_words_and_nothing_else_has(table: str) -> None:
    written = set(told(table))
    assert entries()[table] - written == set(), f"docs/tables/{table}.toml lacks these"
    assert written - entries()[table] == set(), f"docs/tables/{table}.toml has these for nothing"


@pytest.mark.parametrize("table", entries())
def test_words_are_in_both_languages(table: str) -> None:
    widths = {name: {language: len(cells) for language, cells in both.items()} for name, both in told(table).items()}
    width = 2 if table == "troubleshooting" else 1
    assert {name for name, both in widths.items() if both != dict.fromkeys(Language, width)} == set()
    assert all(cell.strip() for both in told(table).values() for cells in both.values() for cell in cells)


def test_every_text_of_the_program_is_sorted() -> None:
    """A new table of the catalog is either explained on the page, or part of a conversation that explains itself."""
    assert set(texts()) >= {"docs/en/troubleshooting.md"}
    assert codes.tables() == codes.EXPLAINED | codes.CONVERSATION


@pytest.mark.parametrize("channel", settings.CHANNELS)
def test_every_channel_can_stop(channel: str) -> None:
    """All refuse bad credentials for good; a channel whose texts are not found would look as if it had none."""
    assert stops.stops(channel)


def test_exit_codes_are_found() -> None:
    assert codes.exit_codes() == {0, 1, 2, 3, 130}

"""The pages say the same in both languages, point to what is there, and show configurations that are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from bridges.config import Config, parse
from bridges.secret import Places
from i18n import Language
from tests.docs import settings
from tests.docs.pages import (
    ENTRIES,
    HOUSES,
    INDEX,
    anchors,
    blocks,
    code,
    everything,
    kinds,
    levels,
    links,
    names,
    numbers,
    pairs,
    pointed,
    prose,
    read,
    target,
)
from tests.docs.pages import settings as written
from tests.guards.sources import ROOT

CJK = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")
INNER = sorted(names(Language.EN))


def test_every_page_is_there_in_both_languages() -> None:
    assert names(Language.EN) == names(Language.ZH)
    assert len(INNER) > 15


@pytest.mark.parametrize("page", [*INNER, "ARCHITECTURE"])
@pytest.mark.parametrize("part", [levels, kinds, written, code, pointed])
def test_both_languages_agree(page: str, part: Callable[[str], object]) -> None:
    pair = pairs()[page]
    english, chinese = (part(read(pair[each])) for each in (Language.EN, Language.ZH))
    assert english == chinese


@pytest.mark.parametrize("page", pairs())
def test_numbers_agree(page: str) -> None:
    english, chinese = (numbers(read(path)) for path in pairs()[page].values())
    assert english == chinese


@pytest.mark.parametrize("page", [*INNER, "ARCHITECTURE"])
def test_tables_have_as_many_rows(page: str) -> None:
    english, chinese = (
        [len(re.findall(r"(?<!\\)\|", row)) for row in re.findall(r"^\|.*\|$", prose(read(path)), re.MULTILINE)]
        for path in pairs()[page].values()
    )
    assert english == chinese


@pytest.mark.parametrize("page", INNER)
def test_english_is_english(page: str) -> None:
    text = re.sub(r"`[^`\n]*`", "", read(pairs()[page][Language.EN]))
    assert not CJK.findall(text)


@pytest.mark.parametrize("page", everything())
def test_links_lead_somewhere(page: str) -> None:
    lost = set()
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(read(page))):
        path, _, place = link.partition("#")
        if "://" in link:
            continue
        file = target(page, path) if path else ROOT / page
        if not file.exists() or (place and place not in anchors(file.read_text("utf-8"))):
            lost.add(link)
    assert not lost


@pytest.mark.parametrize("page", everything())
def test_files_that_are_named_are_there(page: str) -> None:
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|toml|md|mjs))`", prose(read(page)))
    assert not {path for path in named if not (ROOT / path).exists() and "example" not in path}


def test_no_page_is_orphaned() -> None:
    """The index names every page, and both entries name the index."""
    inner = {f"{language}/{name}" for language in Language for name in names(language)}
    assert inner <= set(links(read(INDEX)))
    for language, entry in ENTRIES.items():
        assert {INDEX, HOUSES[language]} <= set(links(read(entry)))


class _Anything(Mapping[str, str]):
    """An environment in which every variable is set."""

    def __getitem__(self, name: str) -> str:
        if name == "CREDENTIALS_DIRECTORY":
            raise KeyError(name)
        return f"fake-{name}"

    def __iter__(self) -> None:  # type: ignore[override]  # it has no end, and nobody asks for one
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


def configurations() -> list[tuple[str, str]]:
    return [(page, block) for page in everything() for block in blocks(read(page), "toml")]


@pytest.mark.parametrize(("page", "block"), configurations())
def test_configurations_are_read(page: str, block: str, tmp_path: Path) -> None:
    for name in re.findall(r'file = "([^"$]+)"', block):
        (tmp_path / name).write_text("fake", "utf-8")
    assert isinstance(parse(block.encode(), Places(_Anything(), tmp_path), name=page), Config)


def test_configurations_were_found() -> None:
    assert {page for page, _ in configurations()} >= {*ENTRIES.values(), "docs/en/configuration.md"}


@pytest.mark.parametrize("channel", settings.CHANNELS)
def test_a_channel_has_its_page_with_every_key(channel: str, tmp_path: Path) -> None:
    (page,) = [name for name in INNER if name == f"channels/{channel}.md"]
    text = read(f"docs/en/{page}")
    told = {key for block in blocks(text, "toml") for key in re.findall(r"^(\w+) = ", block, re.MULTILINE)}
    ends = {field.encode_name for field in msgspec.structs.fields(settings.endpoints(channel))}
    assert (settings.own(channel) | ends) - {"endpoints"} <= told
    assert f"<!-- channel {channel} -->" in text


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("channel", settings.CHANNELS)
def test_a_page_takes_what_the_entry_says(channel: str, language: Language) -> None:
    """The column of attachments in the table of channels, and the row of the channel's page."""
    (entry,) = re.findall(rf"^\| `{channel}` \|.*$", read(ENTRIES[language]), re.MULTILINE)
    (row,) = re.findall(
        r"^\| (?:it takes|可以接收) \|.*$", read(f"docs/{language}/channels/{channel}.md"), re.MULTILINE
    )
    both = {Language.EN: "images and files", Language.ZH: "图片和文件"}[language]
    assert (both in entry) is (both in row)


def test_the_reference_shows_every_key_of_the_file() -> None:
    (block,) = blocks(read("docs/en/configuration.md"), "toml")
    told = set(re.findall(r"^(\w+) = ", block, re.MULTILINE))
    kinds = [kind for name, kind in settings.sections().items()]
    wanted = {field.encode_name for kind in kinds for field in settings.keys(kind) if not settings.is_table(field)}
    assert wanted <= told
    assert {f"[{name}]" for name in settings.sections()} & {f"[{field.encode_name}]" for field in settings.keys(Config)}


def test_chinese_has_its_house() -> None:
    assert len(levels(read(HOUSES[Language.ZH]))) > 3

"""The pages for people, in both languages, and what is in them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from i18n import Language
from tests.guards.sources import ROOT

INDEX = "docs/README.md"
ENTRIES = {Language.EN: "README.md", Language.ZH: "README.zh.md"}
"""The one-page entry."""
HOUSES = {Language.EN: "ARCHITECTURE.md", Language.ZH: "ARCHITECTURE.zh.md"}

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def folder(language: Language) -> Path:
    return ROOT / "docs" / language


def names(language: Language) -> set[str]:
    """Return the pages below ``docs/LANGUAGE``, by their path from there."""
    return {path.relative_to(folder(language)).as_posix() for path in folder(language).rglob("*.md")}


def pairs() -> dict[str, dict[Language, str]]:
    """Return every page by its name, as paths from the root in each language."""
    inner = {name: {each: f"docs/{each}/{name}" for each in Language} for name in sorted(names(Language.EN))}
    return {"README": ENTRIES, "ARCHITECTURE": HOUSES} | inner


def everything() -> list[str]:
    """Return all pages for people, by their paths from the root."""
    return [INDEX, *(path for pair in pairs().values() for path in pair.values())]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(text: str, kind: str) -> list[str]:
    return [block for named, block in _BLOCK.findall(text) if named == kind]


def prose(text: str) -> str:
    """Return the text without its blocks of code."""
    return _BLOCK.sub("", text)


def levels(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]


def kinds(text: str) -> list[str]:
    return [named for named, _ in _BLOCK.findall(text)]


def settings(text: str) -> list[str]:
    """Return the blocks that programs read, without their comments."""
    return [re.sub(r"\s*# .*", "", block) for kind in ("toml", "yaml", "sh") for block in blocks(text, kind)]


def code(text: str) -> set[str]:
    """Return what stands in the text as code, the arguments of a chat command aside: those have a language."""
    plain = re.sub(r"`(/\w+) [^`]*`", r"`\1`", prose(text))
    return set(re.findall(r"`([^`\n]+)`", plain))


def numbers(text: str) -> list[str]:
    """Return the numbers in the text, whatever their order: a limit that has changed is changed in both languages."""
    return sorted(re.findall(r"\d+(?:[.,]\d+)*", prose(text)))


def links(text: str) -> list[str]:
    """Return where the text points, without the place on the page, in order."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(text))
    return [link.partition("#")[0] or "#" for link in found]


def pointed(text: str) -> list[str]:
    """Return the links without the language in the names of the pages at the root."""
    return [link.replace(".zh.md", ".md").replace("docs/zh/", "docs/en/") for link in links(text)]


def target(page: str, link: str) -> Path:
    """Return the file a relative link of a page leads to."""
    return (ROOT / PurePosixPath(page).parent / link).resolve()


def anchors(text: str) -> set[str]:
    """Return the places on a page, as the forge names them."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

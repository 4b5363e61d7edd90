"""The two READMEs are one text in two languages, and say what the program says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

import click
import pytest

from bridges.cli.chat import chat
from commands.catalog import COMMANDS
from commands.help import form
from i18n import Language, Words
from tests.guards.sources import ROOT, texts

README = {Language.EN: "README.md", Language.ZH: "README.zh.md"}


def levels(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", _outside_blocks(text), re.MULTILINE)]


def commands(text: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def configuration(text: str) -> list[str]:
    return [re.sub(r"\s+# .*", "", block) for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)]


def rows(text: str) -> list[list[str]]:
    """Return the table rows as what has no language: code, a chat command's arguments aside, and numbers."""
    tables = re.findall(r"^\|.*\|$", _outside_blocks(text), re.MULTILINE)
    plain = (re.sub(r"`(/\w+) [^`]*`", r"`\1`", row) for row in tables)
    return [sorted(re.findall(r"`[^`]+`|\d[\d.,]*", row)) for row in plain if not row.startswith("|---")]


def _outside_blocks(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("part", [levels, commands, configuration, rows])
def test_both_languages_agree(part: Callable[[str], list[object]]) -> None:
    english, chinese = (part(texts()[name]) for name in README.values())
    assert english == chinese
    assert english, "nothing was compared"


@pytest.mark.parametrize("name", README.values())
def test_named_files_exist(name: str) -> None:
    text = _outside_blocks(texts()[name])
    named = re.findall(r"\]\(([^):]+)\)", text) + re.findall(r"`((?:\w+/)+\w+\.\w+|\.ci/run|scripts/\w+)`", text)
    assert not {path for path in named if not (ROOT / PurePosixPath(path)).exists()}


@pytest.mark.parametrize(("language", "name"), README.items())
def test_commands_are_those_of_the_table(language: Language, name: str) -> None:
    words = Words(language)
    table = "\n".join(f"| `{form(each, words)}` | {words(each.summary)} |" for each in COMMANDS.values())
    assert f"|---|---|\n{table}\n\n" in texts()[name]


@pytest.mark.parametrize("name", README.values())
def test_options_are_those_of_the_program(name: str) -> None:
    context = click.Context(chat)
    offered = {option for parameter in chat.params for option in parameter.opts}
    described = set(re.findall(r"^\| `(--[\w-]+)", texts()[name], re.MULTILINE))
    assert described == offered, chat.get_help(context)

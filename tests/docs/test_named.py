"""What a page names, the program has: commands, options, figures, lines of the log, variables."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import click
import pytest

from bridges.cli import main
from bridges.log import LoggedReferences, Redactor, logging_to
from commands.catalog import KNOWN
from commands.model import SenderId
from harness_client.errors import Unreachable
from i18n import Language
from tests.docs import figures
from tests.docs.pages import blocks, code, everything, pairs, prose, read
from tests.guards.sources import python

OTHERS = {
    "--help",
    "--trusted-host",
    "--version",
    "--print",
    "--require-hashes",
    "--session",
    "--default",
    "--limit",
    "--live",
}
"""Options of other programs, and of chat commands."""
ELSEWHERE = {
    "/metrics",
    "/healthz",
    "/readyz",
    "/newbot",
    "/setprivacy",
    "/setjoingroups",
    "/token",
    "/api",
    "/command",
}
"""Words with a slash that are no chat commands: pages of ours, commands of @BotFather, pieces of addresses."""


def programs(group: click.Command = main, name: str = "harness-im") -> Iterator[tuple[str, click.Command]]:
    """Return every command of the command line by how it is typed."""
    yield name, group
    if isinstance(group, click.Group):
        for inner, command in group.commands.items():
            yield from programs(command, f"{name} {inner}")


OPTIONS = {option for _, command in programs() for each in command.params for option in each.opts}


@pytest.mark.parametrize("page", everything())
def test_programs_and_options_are_there(page: str) -> None:
    known = dict(programs())
    for span in code(read(page)):
        words = [word for word in span.split() if not word.startswith("-")]
        if words[:1] == ["harness-im"] and len(words) > 1:
            assert " ".join(words[:2]) in known, span
        named = set(re.findall(r"(?<!\S)(--[a-z][\w-]+)", span))
        assert named <= OPTIONS | OTHERS, span


@pytest.mark.parametrize("page", everything())
def test_chat_commands_are_there(page: str) -> None:
    named = {f"/{name}" for span in code(read(page)) for name in re.findall(r"(?<!\S)/(\w+)(?=\s|$|@)", span)}
    assert named - {f"/{name}" for name in KNOWN} <= ELSEWHERE | {"/whatsapp"}


@pytest.mark.parametrize("language", Language)
def test_figures_are_there(language: Language) -> None:
    spans = code(read(pairs()["operating.md"][language]))
    named = {name for span in spans for name in re.findall(r"\b(?:bridge|harness|archive)_\w+", span)}
    served = set(figures.figures())
    assert {name.removesuffix("_count") for name in named} - {"harness_client", "harness_im"} == served


@pytest.mark.parametrize("language", Language)
def test_lines_of_the_log_are_said_somewhere(language: Language) -> None:
    text = prose(read(pairs()["operating.md"][language]))
    (table,) = re.findall(r"\n(?:\| `[^`]+` \| [^|]+ \|\n)*\| `link lost` \|.*?\n\n", text, re.DOTALL)
    source = "".join(python("bridges").values())
    lines = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert len(lines) > 5
    assert not [line for line in lines if f'"{line}"' not in source]


@pytest.mark.parametrize("language", Language)
def test_the_line_with_a_reference_looks_like_that(language: Language) -> None:
    (shown,) = blocks(read(pairs()["troubleshooting.md"][language]), "text")
    stream = io.StringIO()
    with logging_to(stream, Redactor()):
        LoggedReferences().record(Unreachable("refused"), actor=SenderId("123456"), session=None)
    assert _shape(shown) == _shape(stream.getvalue())


def _shape(line: str) -> list[str]:
    """Return the line without its time, its reference and the place in the code."""
    return re.sub(r"^\S+|H-\w+|at=\S+", "", line).split()

"""Yes and no in both languages."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from bridges.cli.confirm import confirmed


def answered(typed: str, *, default: bool) -> str:
    ask = click.Command("ask", callback=lambda: click.echo(f"\n{confirmed('Go on?', default=default)}"))
    return CliRunner().invoke(ask, input=typed).output


@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("y\n", True),
        (" YES \n", True),
        ("是的\n", True),
        ("好\n", True),
        ("n\n", False),
        ("否\n", False),
        ("不\n", False),
    ],
)
def test_what_is_typed_counts(typed: str, meant: bool, default: bool) -> None:
    assert answered(typed, default=default).splitlines()[-1] == str(meant)


@pytest.mark.parametrize("default", [False, True])
def test_an_empty_answer_is_the_one_that_is_written_large(default: bool) -> None:
    shown = answered("\n", default=default)
    assert ("[Y/n]" if default else "[y/N]") in shown
    assert shown.splitlines()[-1] == str(default)


def test_anything_else_is_asked_again_without_a_word_in_another_language() -> None:
    asked = "Go on? [y/N]: "
    assert answered("什么\nwhat\ny\n", default=False).split() == f"{asked}什么 {asked}what {asked}y True".split()


def test_the_end_of_the_input_decides_nothing() -> None:
    assert "Aborted" in answered("perhaps\n", default=True)

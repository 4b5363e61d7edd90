"""A question that is answered by yes or no, in either language: click's own hint about a wrong answer has only one."""

from __future__ import annotations

from typing import Final

import click

_YES: Final = ("y", "是", "好")
_NO: Final = ("n", "否", "不")
"""How the answers begin."""


def confirmed(question: str, *, default: bool = False) -> bool:
    """Ask until it is one of them, and take ``default`` for an empty answer. Raises click.Abort at the input's end."""
    choice = "Y/n" if default else "y/N"
    while True:
        answer = click.prompt(f"{question} [{choice}]", default="", show_default=False).strip().lower()
        if answer.startswith(_YES):
            return True
        if answer.startswith(_NO):
            return False
        if not answer:
            return default

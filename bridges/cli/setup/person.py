"""Who is asked: a person at a terminal, or nobody, when everything must be said by options."""

from __future__ import annotations

import sys
from typing import Final, Protocol, TextIO

import click

from bridges.cli.confirm import confirmed

LONGEST_LINE: Final = 64 * 1024
"""Characters."""


class Missing(Exception):
    """Nobody is there to ask for what ``flag`` would say."""

    def __init__(self, flag: str) -> None:
        super().__init__(flag)
        self.flag = flag


class Person(Protocol):
    """Answers questions. Ctrl-C and the end of the input raise click.Abort or KeyboardInterrupt."""

    present: bool

    def ask(self, question: str, flag: str, *, default: str | None = None, hidden: bool = False) -> str:
        """Return an answer without blanks around it, or ``default`` for an empty one; raises Missing."""

    def choose(self, question: str, flag: str, choices: str, default: str) -> str:
        """Return one of the letters ``choices``; raises Missing."""

    def agrees(self, question: str, *, default: bool) -> bool:
        """Ask yes or no; nobody says no."""


class AtTerminal:
    """See :class:`Person`."""

    present = True

    def ask(self, question: str, flag: str, *, default: str | None = None, hidden: bool = False) -> str:
        """See :meth:`Person.ask`; what is hidden is not echoed."""
        answer = click.prompt(question, default=default or "", hide_input=hidden, show_default=bool(default))
        return str(answer).strip()

    def choose(self, question: str, flag: str, choices: str, default: str) -> str:
        """See :meth:`Person.choose`; asks until it is one of them."""
        while not (letter := self.ask(question, flag, default=default).lower()[:1]) or letter not in choices:
            pass
        return letter

    def agrees(self, question: str, *, default: bool) -> bool:
        """See :meth:`Person.agrees`."""
        return confirmed(question, default=default)


class Nobody:
    """See :class:`Person`."""

    present = False

    def ask(self, question: str, flag: str, *, default: str | None = None, hidden: bool = False) -> str:
        """See :meth:`Person.ask`."""
        if default is None:
            raise Missing(flag)
        return default

    def choose(self, question: str, flag: str, choices: str, default: str) -> str:
        """See :meth:`Person.choose`."""
        raise Missing(flag)

    def agrees(self, question: str, *, default: bool) -> bool:
        """See :meth:`Person.agrees`."""
        return False


def whoever_is_there() -> Person:
    """Return who can be asked: a person needs to see the question, too."""
    streams: tuple[TextIO | None, ...] = (sys.stdin, sys.stdout)  # None: closed before we began
    return AtTerminal() if all(stream is not None and stream.isatty() for stream in streams) else Nobody()


def line_of_input() -> str:
    """Return a line of standard input without blanks around it; empty where there is none."""
    stream: TextIO | None = sys.stdin
    return stream.readline(LONGEST_LINE).strip() if stream is not None else ""

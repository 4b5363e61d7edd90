"""The whole of ``harness-im init``: language, what is there already, Harness, bots; then it is written, and told."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from bridges import shown
from bridges.cli.examination.network import host
from bridges.cli.setup import store
from bridges.cli.setup.draft import Draft, Given, given, value_of
from bridges.cli.setup.interview import Interview, Verdict, Wrong, problem_in
from bridges.cli.setup.options import BadOption, Options
from bridges.cli.setup.person import Missing, Person, whoever_is_there
from bridges.cli.setup.store import Changed, Existing, Plan
from bridges.cli.setup.telling import tell
from bridges.cli.setup.toml import CannotExtend, extended, written
from bridges.cli.spoken import spoken
from bridges.config import Config, locate, parse, tree_of
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.log import Redactor, logging_to
from bridges.secret import Places
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Language, Words

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


Tree = Mapping[str, object]


class Left(Exception):
    """The person wants none of it."""


_PROBLEMS: Final = (Missing, BadOption, Wrong, ConfigError, CannotExtend, Changed, UnicodeError, OSError)
"""What ends the whole, each worded by :func:`_worded`."""


_ENDS: Final = {Wrong: Key.INIT_WRONG, CannotExtend: Key.INIT_CANNOT_EXTEND, Changed: Key.INIT_CHANGED}


def set_up(options: Options) -> int:
    """Set up bots; return the exit code: 0, 1 when nothing was written, 2 for the options or the file, 130 for Ctrl-C.

    Nothing is written before everything is known.
    """
    environ, person = environment(), whoever_is_there()
    path, redact = options.config or Path(), Redactor()
    words = Words(spoken(environ, options.language))
    try:
        with logging_to(sys.stderr, redact, level=logging.ERROR):
            path = locate(options.config, environ)
            old = Existing.read(path)
            words = Words(_language(options, person, words.language, old))
            session = _Session(options, person, words, path, Places(environ, path.absolute().parent), redact)
            plan = session.plan(old)
            made = store.save(plan)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\n" + words(Key.INIT_STOPPED), err=True)
        return INTERRUPTED
    except Left:
        click.echo(words(Key.INIT_NOTHING), err=True)
        return FAILED
    except _PROBLEMS as error:
        click.echo(redact(_worded(error, path, words)), err=True)
        return FAILED if isinstance(error, Wrong | Changed | OSError) else MISUSED
    return tell(plan, made, options, person, words)


def _language(options: Options, person: Person, guessed: Language, old: Existing | None) -> Language:
    """Return the option's language, else that of the file, else the one a person chooses."""
    if options.language:
        return Language(options.language)
    try:
        return Language(str(tree_of(old.data if old else b"", "")["language"]))
    except (KeyError, ValueError, ConfigError):
        pass
    question = " / ".join(Words(language)(Key.INIT_LANGUAGE) for language in Language)
    answer = person.ask(f"{question} (zh, en)", "--language", default=guessed.value)
    return Language.of(answer)


def _worded(error: Exception, path: Path, words: Words) -> str:
    if isinstance(error, Missing):
        return words(Key.INIT_MISSING, flag=error.flag)
    if isinstance(error, BadOption):
        return words(error.key, **error.values)
    if isinstance(error, ConfigError | UnicodeError):
        return problem_in(error, words)
    if isinstance(error, OSError):
        return words(Key.INIT_UNWRITTEN, path=path, reason=shown.reason(error))
    return words(_ENDS[type(error)], path=path)


@dataclass(frozen=True, slots=True)
class _Session:
    """One run of the command, up to what is to be written."""

    options: Options
    person: Person
    words: Words
    path: Path
    places: Places
    redact: Redactor

    def plan(self, old: Existing | None) -> Plan:
        """Ask for everything. Raises Left, and what :func:`set_up` words."""
        if self.person.present:
            click.echo(self.words(Key.INIT_WELCOME))
        tree, extends = self._ground(old)
        harness = None if extends else self._harness()
        base = self._parsed(tree.get("state"))
        bots = self._bots(self._interview(base), _names(tree))
        if not bots:
            raise Left
        return Plan(self.path, old, extends, self.words.language, harness, bots)

    def _bots(self, interview: Interview, taken: list[str]) -> list[Draft]:
        """Ask for bots until there are no more; what options say is of the first one."""
        bots: list[Draft] = []
        while True:
            if bot := interview.bot([*taken, *(bot.name for bot in bots)]):
                bots.append(bot)
            if self.options.channel or not self.person.agrees(self.words(Key.INIT_ANOTHER), default=False):
                return bots
            interview = replace(interview, options=Options(check=self.options.check))

    def _ground(self, old: Existing | None) -> tuple[Tree, bool]:
        """Return what stays of the file, and whether it stays at all. Raises Left, ConfigError, CannotExtend."""
        if old is None or self.options.force:
            return {}, False
        tree = tree_of(old.data, str(self.path))
        if self.person.present:
            question = self.words(Key.INIT_EXISTS, path=self.path, count=len(_names(tree)))
            match self.person.choose(question, "", "arq", "a"):
                case "q":
                    raise Left
                case "r":
                    if not self.person.agrees(self.words(Key.INIT_REPLACE_SURE), default=False):
                        raise Left
                    return {}, False
        extended(old.data.decode(), Draft("weixin", "-", {}).text())  # before anybody answers in vain
        return tree, True

    def _harness(self) -> Given | None:
        """Ask for the host; None for one of our own."""
        answer = self.options.harness
        while True:
            if answer is None:
                answer = self.person.ask(self.words(Key.INIT_HARNESS), "--harness", default="", hidden=True)
            harness = given(answer, secret=True, folder=Path.cwd()) if answer else None
            verdict = self._host(harness)
            if verdict is Verdict.DROP:
                raise Left
            if verdict is Verdict.KEEP:
                return harness
            answer = None

    def _host(self, harness: Given | None) -> Verdict:
        """Look whether the host is there."""
        interview = self._interview(Config())
        config = interview.read(lambda: written("[harness]", {"url": value_of(harness)}) if harness else "")
        if config is None:
            return Verdict.AGAIN
        if not self.options.check:
            return Verdict.KEEP
        asked = self.words(Key.INIT_ASKING, channel=self.words(Key.DOCTOR_HOST))
        click.echo(asked, err=not self.person.present)
        return interview.verdict([asyncio.run(host(config, self.places.environ, SYSTEM_CLOCK, self.words))])

    def _interview(self, base: Config) -> Interview:
        return Interview(self.person, self.options, self.words, self.places, base, SYSTEM_CLOCK, self.redact)

    def _parsed(self, state: object) -> Config:
        """Return the configuration that the bots' logins lie beside."""
        path = state.get("path") if isinstance(state, dict) else None
        return parse(written("[state]", {"path": path}).encode() if isinstance(path, str) else b"", self.places)


def _names(tree: Tree) -> list[str]:
    """Return the names of the bots in a file."""
    bots = tree.get("bot")
    tables = bots if isinstance(bots, list) else []
    return [str(bot["name"]) for bot in tables if isinstance(bot, dict) and "name" in bot]

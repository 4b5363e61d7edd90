"""Asks for one bot, and lets its platform say whether what was answered is good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import click

from bridges.cli.channel_names import NAMES
from bridges.cli.examination import packages
from bridges.cli.examination.finding import MARKS, Finding, Level
from bridges.cli.examination.platforms import look, surroundings, told
from bridges.cli.setup.draft import Draft, Given, given
from bridges.cli.setup.fields import KINDS, Field, Kind
from bridges.cli.setup.options import BadOption, Options, pairs
from bridges.cli.setup.person import Person, line_of_input
from bridges.config import Config, parse
from bridges.config_error import ConfigError
from bridges.log import Redactor
from bridges.secret import Places
from harness_client.clock import Clock
from i18n import Key, Words


class Wrong(Exception):
    """A platform finds something wrong, and nobody is there to decide about it."""


class Verdict(Enum):
    """What becomes of answers that were looked at."""

    KEEP = auto()
    AGAIN = auto()
    DROP = auto()


@dataclass(frozen=True, slots=True)
class Interview:
    """The conversation. ``base`` is the configuration the bots will be in, without them."""

    person: Person
    options: Options
    words: Words
    places: Places
    base: Config
    clock: Clock
    redact: Redactor

    def bot(self, taken: Collection[str]) -> Draft | None:
        """Ask for one bot whose name is not ``taken``; None when it was dropped.

        Raises Missing, BadOption, Wrong, ConfigError (the last only where nobody can be asked again).
        """
        channel = self._channel()
        kind = KINDS[channel]
        if self.person.present:
            click.echo("\n" + self.words(kind.hint))
        if channel != "whatsapp" and packages.missing(channel):  # its extra is for linked devices
            click.echo(self.words(Key.INIT_NEEDS, extra=channel), err=not self.person.present)
        options = self.options.values(channel, self.words)
        name = self._name(channel, taken)
        while True:
            draft = Draft(channel, name, self._values(kind, options), self._owners(), self._endpoints())
            verdict = self._judged(draft)
            if verdict is not Verdict.AGAIN:
                return draft if verdict is Verdict.KEEP else None
            options = {}

    def verdict(self, findings: list[Finding]) -> Verdict:
        """Show findings; decide about wrong ones. Raises Wrong."""
        for each in findings:
            shown = each.shown(self.redact)
            click.echo(f"{MARKS[shown.level]} {shown.text}", err=not self.person.present)
        if all(each.level is not Level.WRONG for each in findings):
            return Verdict.KEEP
        return self.decision()

    def decision(self) -> Verdict:
        """Ask what becomes of answers that are not good. Raises Wrong."""
        if not self.person.present:
            raise Wrong
        letters = {"r": Verdict.AGAIN, "k": Verdict.KEEP, "d": Verdict.DROP}
        return letters[self.person.choose(self.words(Key.INIT_WHAT_NOW), "", "rkd", "r")]

    def read(self, text: Callable[[], str]) -> Config | None:
        """Return what a text of the file means, its secrets hidden from now on; None when it must be asked anew.

        Raises ConfigError, UnicodeError where nobody can be asked, or an option said it.
        """
        try:
            config = parse(text().encode(), self.places)
        except (ConfigError, UnicodeError) as error:
            if not self.person.present or self._said_by_options(error):
                raise
            click.echo(problem_in(error, self.words))
            return None
        for secret in config.secrets():
            self.redact.hide(secret)
        return config

    def _said_by_options(self, error: ConfigError | UnicodeError) -> bool:
        """Whether asking again would not help: these come from the command line each time."""
        path = error.path if isinstance(error, ConfigError) else ""
        return "endpoints" in path or ("owners" in path and bool(self.options.owners))

    # -- questions ---------------------------------------------------------------------------------------------------

    def _channel(self) -> str:
        if self.options.channel:
            return self.options.channel
        numbered = {str(number): name for number, name in enumerate(KINDS, 1)}
        if self.person.present:
            click.echo("\n" + self.words(Key.INIT_CHANNELS))
            for number, name in numbered.items():
                click.echo(f"  {number}  {name:<10}{self.words(NAMES[name])}")
        while True:
            answer = self.person.ask(self.words(Key.INIT_CHANNEL), "--channel").lower()
            if (channel := numbered.get(answer, answer)) in KINDS:
                return channel
            click.echo(self.words(Key.INIT_NO_CHANNEL))

    def _name(self, channel: str, taken: Collection[str]) -> str:
        free = next(name for n in range(1, len(taken) + 2) if (name := channel + (f"-{n}" * (n > 1))) not in taken)
        said = self.options.name
        while True:
            name = said or self.person.ask(self.words(Key.INIT_NAME), "--name", default=free)
            try:
                if name not in taken:
                    parse(Draft("weixin", name, {}).text().encode(), self.places)  # only the name can be wrong
                    return name
                problem: BadOption | ConfigError = BadOption(Key.INIT_NAME_TAKEN, name=name)
            except ConfigError as error:
                problem = error
            if not self.person.present:
                raise problem
            click.echo(self.words(problem.key, **problem.values))
            said = None

    def _values(self, kind: Kind, options: Mapping[str, str]) -> dict[str, Given]:
        values: dict[str, Given] = {}
        for field in kind.fields:
            text = options.get(field.key)
            text = line_of_input() if text == "-" and field.secret else text
            answer = text or self._answer(field)
            if answer:
                values[field.key] = given(answer, secret=field.secret, folder=Path.cwd())
        return values

    def _answer(self, field: Field) -> str:
        question = Key.INIT_SECRET if field.secret else Key.INIT_OPTIONAL
        text = self.words(question, field=field.key) if field.secret or field.default == "" else field.key
        while True:
            answer = self.person.ask(text, f"--set {field.key}=…", default=field.default, hidden=field.secret)
            if answer or field.default is not None:
                return answer
            click.echo(self.words(Key.INIT_EMPTY))

    def _owners(self) -> tuple[str, ...]:
        if self.options.owners or self.options.pairing:
            return self.options.owners
        default = "" if self.person.present else None
        answer = self.person.ask(self.words(Key.INIT_OWNER), "--owner ID, --pairing", default=default)
        return (answer,) if answer else ()

    def _endpoints(self) -> Mapping[str, str]:
        return pairs("--endpoint", self.options.endpoints)

    # -- the platform ------------------------------------------------------------------------------------------------

    def _judged(self, draft: Draft) -> Verdict:
        config = self.read(draft.text)
        if config is None:
            return Verdict.AGAIN
        if not self.options.check:
            click.echo(self.words(Key.INIT_UNCHECKED), err=not self.person.present)
            return Verdict.KEEP
        (bot,) = config.bots
        if not KINDS[draft.channel].fields:
            return Verdict.KEEP  # there is nothing to ask with before somebody logged in
        asking = self.words(Key.INIT_ASKING, channel=self.words(NAMES[draft.channel]))
        click.echo(asking, err=not self.person.present)
        around = surroundings(self.base, self.clock, self.redact.hide)
        seen = asyncio.run(look(bot, around, log_in=True))
        return self.verdict(told(bot, seen, self.words))


def problem_in(error: ConfigError | UnicodeError, words: Words) -> str:
    """Say what is wrong with answers that cannot be used."""
    return words(error.key, **error.values) if isinstance(error, ConfigError) else words(Key.INIT_NOT_TEXT)

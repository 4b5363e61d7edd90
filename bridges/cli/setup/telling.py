"""What was written, and what comes next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from bridges.cli.logging_in import log_in
from bridges.cli.setup.draft import Reference
from bridges.cli.setup.options import Options
from bridges.cli.setup.person import Person
from bridges.cli.setup.store import Plan
from i18n import Key, Words

OK = 0


def tell(plan: Plan, made: tuple[Path, ...], options: Options, person: Person, words: Words) -> int:
    """Say what was written and show the next commands; log Weixin in where a person wants to. Return the exit code."""
    click.echo("\n" + words(Key.INIT_WRITTEN, path=plan.path))
    if plan.old is not None and plan.old.open_to_others:
        click.echo(words(Key.INIT_NARROWED))
    if made:
        click.echo(words(Key.INIT_KEPT_IN, folder=made[0].parent))
    if names := list(dict.fromkeys(_variables(plan))):
        click.echo(words(Key.INIT_VARIABLES, names=" ".join(names)))
    where = f" --config {shlex.quote(str(options.config))}" if options.config else ""
    if any(not bot.owners for bot in plan.bots):
        click.echo(words(Key.INIT_PAIRING, where=where))
    commands = ["doctor", "run"]
    if any(bot.channel == "weixin" for bot in plan.bots) and not _logged_in(plan, person, words):
        commands.insert(0, "login weixin")
    click.echo(words(Key.INIT_NEXT))
    for command in commands:
        click.echo(f"  harness-im {command}{where}")
    return OK


def _logged_in(plan: Plan, person: Person, words: Words) -> bool:
    """Log in now, if the person says so; the file is written, and stays whatever comes of it."""
    try:
        agreed = person.present and person.agrees(words(Key.INIT_LOG_IN_NOW), default=True)
    except click.Abort:
        click.echo()
        return False
    return agreed and log_in(plan.path, words.language) == OK


def _variables(plan: Plan) -> Iterator[str]:
    for value in (plan.harness, *(value for bot in plan.bots for value in bot.values.values())):
        if isinstance(value, Reference) and value.kind == "env":
            yield value.name

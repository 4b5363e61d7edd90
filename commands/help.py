"""``/help``: the command table in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from commands.budget import sendable
from commands.model import Command, CommandRequest, CommandResult, Gate, Handler, MenuEntry, Services
from i18n import Key, Words


def helper(commands: Callable[[], Iterable[Command]]) -> Handler:
    """Return the handler that lists ``commands``, asked for late because it is itself one of them."""

    async def run(request: CommandRequest, services: Services) -> CommandResult:
        words = services.words
        lines = (words(Key.HELP_LINE, form=form(each, words), summary=words(each.summary)) for each in commands())
        return CommandResult(sendable("\n".join([words(Key.HELP_TITLE), "", *lines])))

    return run


def form(command: Command, words: Words) -> str:
    """Return how a command is typed, such as ``/history [count]``."""
    return f"/{command.name} {words(command.parameter)}" if command.parameter else f"/{command.name}"


def menu(commands: Iterable[Command], words: Words) -> tuple[MenuEntry, ...]:
    """Return what anybody may run, for a platform's command menu."""
    return tuple(
        MenuEntry(each.name, words(each.summary), words(each.parameter) if each.parameter else None)
        for each in commands
        if each.gate is not Gate.OWNER
    )

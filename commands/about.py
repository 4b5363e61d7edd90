"""``/version``, ``/language`` and ``/pair``: the bot itself. None of them calls the host."""

from __future__ import annotations

from commands.cleaning import one_line
from commands.model import CommandRequest, CommandResult, Outcome, Services
from i18n import Key, Language, Words


async def version(_: CommandRequest, services: Services) -> CommandResult:
    """Say which version of this program answers."""
    return CommandResult((services.words(Key.VERSION_TEXT, version=services.version),))


async def language(request: CommandRequest, services: Services) -> CommandResult:
    """Choose the language of this chat; the reply is in it already."""
    chosen = Language(request.argument.lower())
    await services.preferences.choose_language(request.chat, chosen)
    return CommandResult((Words(chosen)(Key.LANGUAGE_DONE),))


def is_language(argument: str) -> bool:
    """Whether the argument names one of the two languages."""
    return argument.lower() in set(Language)


async def pair(request: CommandRequest, services: Services) -> CommandResult:
    """Let a stranger in who was given this code."""
    sender = await services.admissions.approve(request.argument)
    if sender is None:
        return CommandResult((services.words(Key.PAIR_UNKNOWN),), Outcome.REFUSED)
    return CommandResult((services.words(Key.PAIR_DONE, sender=one_line(sender)),))


def is_code(argument: str) -> bool:
    """Whether the argument may be a pairing code."""
    return argument.isascii() and argument.isalnum()

"""Text -> (command, argument). The one recognition table of the project (spec HISTORY 1).

Pure and total: any text, known commands handed in. What is not recognised is ordinary text and may become a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BLANKS: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""Characters that separate: what Unicode, JavaScript or a chat app calls a blank."""
INVISIBLE: Final = "".join(map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A))))
"""Format characters that an input method or a paste leaves around a command; no separators."""

_OUTER = BLANKS + INVISIBLE
_COMMAND = re.compile(r"[/／]([A-Za-z]+)(?:@([A-Za-z0-9_]+))?([。.!！?？…]*)")


@dataclass(frozen=True, slots=True)
class Recognised:
    """A command of ours, always to be consumed. ``name`` is the canonical one, ``argument`` has its outer blanks off.

    ``glued``: punctuation stuck to the name. That is a typo, answered with the usage: it never costs a model run.
    """

    name: str
    argument: str = ""
    glued: bool = False


@dataclass(frozen=True, slots=True)
class NotOurs:
    """A command addressed to another bot: neither a command of ours nor a prompt."""


ANY_BOT: Final = "*"
"""In the place of the bot's own name: ``/history@whoever`` counts. For stored text, never for what arrives."""


def recognise(text: str, known: Mapping[str, str], *, bot: str | None = None) -> Recognised | NotOurs | None:
    """Recognise a command that is the whole text of a message; None for ordinary text.

    ``known`` maps every name and alias, in lower case, to the canonical name. ``bot`` is the bot's own name, compared
    case-insensitively, on platforms where people write ``/command@bot``; None elsewhere: there it is ordinary text.
    """
    text = text.strip(_OUTER)
    match = _COMMAND.match(text)
    # The pattern matches ASCII letters only, so lower() folds nothing else: ``/hiſtory`` stays ordinary text.
    name = known.get(match[1].lower()) if match else None
    if match is None or name is None:
        return None
    rest = text[match.end() :]
    argument = rest.lstrip(_OUTER)
    gap = rest[: len(rest) - len(argument)]
    if argument and not any(char in BLANKS for char in gap):
        return None
    addressed = match[2]
    if addressed is not None and bot != ANY_BOT:
        if bot is None:
            return None
        if addressed.lower() != bot.lower():
            return NotOurs()
    return Recognised(name, argument, glued=bool(match[3]))

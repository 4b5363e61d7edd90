"""Numbered lists, and the numbers people choose from them."""

from __future__ import annotations

import re
from typing import Final

from commands.answer import No
from commands.model import CommandRequest, Listing, Services
from i18n import Key

MOST: Final = 50
"""Rows that any list shows at most."""

_NUMBER = re.compile(r"[0-9]{1,6}")


def picked(argument: str, listing: Listing, request: CommandRequest, services: Services) -> str | None:
    """Return what a number means in the list this chat saw last, whatever that list would be by now.

    None when the argument is no number. Raises No when there is no such list or row.
    """
    if not _NUMBER.fullmatch(argument):
        return None
    shown = services.shown.recall(request.chat, listing).items
    if not shown:
        raise No(Key.LIST_NONE, number=argument, command=listing)
    if not 1 <= int(argument) <= len(shown):
        raise No(Key.LIST_NO_NUMBER, number=argument, command=listing)
    return shown[int(argument) - 1]


def is_number(argument: str) -> bool:
    """Whether the argument is read as a row of a list."""
    return _NUMBER.fullmatch(argument) is not None


def row(number: int, *parts: str) -> str:
    """Return one line of a list, its blank parts left out."""
    return f"{number}. {' · '.join(part for part in parts if part)}"

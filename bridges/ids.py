"""Ids of people and chats, as an operator writes them down."""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_LENGTH: Final = 256


def can_match(text: str) -> bool:
    """Whether an exact comparison could ever match: no blanks around it, nothing invisible in it.

    ``*`` cannot: it looks like "everyone" and would be nobody.
    """
    return (
        0 < len(text) <= MAX_LENGTH
        and text == text.strip() != "*"
        and not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in text)
    )

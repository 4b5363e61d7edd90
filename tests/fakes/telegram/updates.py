"""Updates as the Bot API writes them."""

from __future__ import annotations

import itertools
import re

from commands.budget import utf16_length

Obj = dict[str, object]

ME: Obj = {
    "id": 700_700,
    "is_bot": True,
    "first_name": "Fake",
    "username": "ThisBot",
    "can_join_groups": True,
    "can_read_all_group_messages": False,
    "supports_inline_queries": False,
}
GROUP_ID = -1_001_000_200_300
TELLER = 1_001
"""The id of the person who speaks unless a test says otherwise; a private chat has its person's id."""

_ENTITIES = re.compile(r"(?P<bot_command>(?<![\w/])/\w{1,32}(?:@\w{3,32})?)|(?P<mention>(?<!\w)@\w{3,32})")


def person(id_: int, *, bot: bool = False) -> Obj:
    """Return a user."""
    return {"id": id_, "is_bot": bot, "first_name": f"Person {id_}", "language_code": "en"}


def private(id_: int) -> Obj:
    """Return the private chat with a person."""
    return {"id": id_, "type": "private", "first_name": f"Person {id_}"}


def supergroup(id_: int = GROUP_ID) -> Obj:
    """Return a group."""
    return {"id": id_, "type": "supergroup", "title": "A group", "is_forum": False}


def entities(text: str) -> list[Obj]:
    """Find commands and mentions as the server does; offsets and lengths in UTF-16 units."""
    return [
        {
            "type": match.lastgroup,
            "offset": utf16_length(text[: match.start()]),
            "length": utf16_length(match.group()),
        }
        for match in _ENTITIES.finditer(text)
    ]


class Writer:
    """Numbers messages and updates as one server would."""

    def __init__(self, first_update: int = 5_000) -> None:
        self._updates = itertools.count(first_update)
        self._messages = itertools.count(1)

    def message_id(self) -> int:
        """Return the next message id."""
        return next(self._messages)

    def message(self, text: str | None, *, sender: int = TELLER, chat: Obj | None = None, **more: object) -> Obj:
        """Return a message of a person; ``more`` adds or replaces fields."""
        message: Obj = {
            "message_id": self.message_id(),
            "date": 1_790_000_000,
            "from": person(sender),
            "chat": chat or private(sender),
        }
        if text is not None:
            message |= {"text": text, "entities": entities(text)}
        return message | more

    def update(self, message: Obj, *, kind: str = "message", id_: int | None = None) -> Obj:
        """Wrap a message."""
        return {"update_id": next(self._updates) if id_ is None else id_, kind: message}

"""Messages that wait until their person writes again, for platforms that count or time the replies to a message."""

from __future__ import annotations

from typing import Final

import msgspec

LONGEST: Final = 24
"""Messages that may wait in one chat."""

MAX_BYTES: Final = 40 * 1024
"""Bytes of JSON they may take together; with what else is kept for a chat they fit one cursor."""


class Waiting(msgspec.Struct):
    """One of them. ``tried`` is set by a first failure; a second one is the last."""

    text: str
    tried: bool = False


class Backlog(msgspec.Struct):
    """What waits in one chat, oldest first. The owner writes it down before it acts on it."""

    messages: list[Waiting] = msgspec.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, text: str) -> bool:
        """Let ``text`` wait behind the others; False when too much waits already."""
        messages = [*self.messages, Waiting(text)]
        if len(messages) > LONGEST or len(msgspec.json.encode(messages)) > MAX_BYTES:
            return False
        self.messages = messages
        return True

    def take(self) -> Waiting:
        """Take the oldest one out."""
        return self.messages.pop(0)

    def give_back(self, waiting: Waiting) -> bool:
        """Put one that could not be sent back in front; False when it was its second try, and it is dropped."""
        if waiting.tried:
            return False
        self.messages.insert(0, Waiting(waiting.text, tried=True))
        return True

"""How far each chat was read, kept across restarts; from there a new session reads on. Imports no SDK."""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Final

import structlog

from bridges.message import Cursors

KEY: Final = "seen"
REMEMBERED: Final = 100
"""Chats, each with 16 bytes in the one value that holds them. Those in which nothing was taken for longest go first."""

_ROW: Final = struct.Struct(">QQ")


class Seen:
    """The newest message known of each chat in which the bot was used."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors
        self._newest: OrderedDict[int, int] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._newest)

    async def load(self) -> None:
        """Read what an earlier process wrote. Raises OSError."""
        value = await self._cursors.load(KEY) or b""
        self._newest.update(_ROW.iter_unpack(value[: len(value) // _ROW.size * _ROW.size]))

    def chats(self) -> list[tuple[int, int]]:
        """Return every chat and its newest message, the one used last first."""
        return list(reversed(self._newest.items()))

    def forget(self, chat: int) -> None:
        """Forget a chat, until a message is taken there again."""
        self._newest.pop(chat, None)

    def passed(self, chat: int, message: int) -> None:
        """Note a message that was none of the bot's business, if the chat is known."""
        if chat in self._newest:
            self._newest[chat] = max(message, self._newest[chat])

    async def taken(self, message: int, *chats: int) -> None:
        """Note a message that was taken on; where that cannot be written down, it is known until the program ends."""
        for chat in chats:
            self._newest[chat] = max(message, self._newest.get(chat, 0))
            self._newest.move_to_end(chat)
        while len(self._newest) > REMEMBERED:
            self._newest.popitem(last=False)
        try:
            await self._cursors.save(KEY, b"".join(_ROW.pack(*row) for row in self._newest.items()))
        except OSError as error:
            structlog.get_logger(__name__).warning("how far a chat was read is not kept", error=type(error).__name__)

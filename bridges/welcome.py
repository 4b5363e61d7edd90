"""A word to a stranger who was let in. Another program may have let them in, so the state is asked now and then."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from bridges.bot import RunningBot
from bridges.message import InboundMessage, ReplyTarget
from bridges.state import StateError
from commands.model import SenderId
from i18n import Key

LOOK_SECONDS: Final = 5.0
WAIT_SECONDS: Final = 3600.0
"""As long as a pairing code is valid."""
MOST: Final = 100
"""Strangers of one bot who will be told; a code is given to fewer at a time."""


@dataclass(frozen=True, slots=True)
class _Stranger:
    """Where to tell them; ``until`` on the monotonic clock."""

    target: ReplyTarget
    until: float


class Welcomes:
    """The strangers of one bot who have a code. A restart forgets them: they learn it by talking."""

    def __init__(self, bot: RunningBot, tasks: asyncio.TaskGroup) -> None:
        self._bot = bot
        self._tasks = tasks
        self._waiting: dict[SenderId, _Stranger] = {}
        self._looking = False

    def expect(self, message: InboundMessage) -> None:
        """Tell the sender of ``message`` when they are let in."""
        if len(self._waiting) < MOST:
            self._waiting[message.sender] = _Stranger(message.reply_to, self._bot.clock.monotonic() + WAIT_SECONDS)
        if self._waiting and not self._looking:
            self._looking = True
            self._tasks.create_task(self._look(), name=f"welcomes of {self._bot.key}")

    def forget(self, sender: SenderId) -> None:
        """Leave somebody alone who talks to the bot already."""
        self._waiting.pop(sender, None)

    async def _look(self) -> None:
        while self._waiting:
            await self._bot.clock.sleep(LOOK_SECONDS)
            for sender, stranger in tuple(self._waiting.items()):
                try:
                    await self._look_after(sender, stranger)
                except StateError as error:
                    self._bot.references.record(error, actor=sender, session=None)
        self._looking = False

    async def _look_after(self, sender: SenderId, stranger: _Stranger) -> None:
        admitted = await self._bot.state.pairings.admitted(self._bot.key, sender)
        words = await self._bot.words(stranger.target.chat)
        late = self._bot.clock.monotonic() > stranger.until
        if (admitted or late) and self._waiting.get(sender) is stranger:
            del self._waiting[sender]
            if admitted:
                await self._bot.replies.reply(stranger.target, (words(Key.CHAT_LET_IN),))

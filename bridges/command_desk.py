"""Runs a recognised command and sends its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import metadata
from typing import Final

from bridges.access import Rights
from bridges.bot import RunningBot
from bridges.config import APP
from bridges.message import InboundMessage
from bridges.preferences import StoredAdmissions, StoredPreferences
from bridges.split import joined
from commands.batch import Batches
from commands.catalog import COMMANDS, refusal
from commands.model import CommandRequest, Gate, Outcome, Services, ShownLists, Turns
from commands.recognise import Recognised
from i18n import Key

VERSION: Final = metadata.version(APP)


class CommandDesk:
    """The commands of one bot."""

    def __init__(self, bot: RunningBot, turns: Turns, batches: Batches) -> None:
        self._bot = bot
        self._turns = turns
        self._batches = batches
        self._shown = ShownLists()

    async def run(
        self, message: InboundMessage, recognised: Recognised, may: Rights, ran: Callable[[], None] = lambda: None
    ) -> Outcome:
        """Run the command, send what it says, return how it ended; a failed send changes nothing any more.

        ``ran`` is called when the command is over, before its reply goes out.
        """
        bot = self._bot
        command = COMMANDS[recognised.name]
        carried = frozenset(attachment.kind for attachment in message.attachments)
        if not may.command:
            notice: Key | None = Key.CHAT_COMMAND_DENIED
        elif command.gate is Gate.OWNER and not may.own:
            notice = Key.CHAT_OWNER_ONLY
        else:
            notice = refusal(recognised, message.kind, carried)
        if notice is not None:
            return await self.say(message, notice)
        request = CommandRequest(
            message.chat,
            message.kind,
            message.sender,
            recognised.argument,
            carried,
            message.quoted,
        )
        words, place = await asyncio.gather(bot.words(message.chat), bot.place(message.chat))
        services = Services(
            bindings=bot.state.chats,
            harness=bot.harness,
            words=words,
            clock=bot.clock,
            references=bot.references,
            preferences=StoredPreferences(bot),
            admissions=StoredAdmissions(bot),
            version=VERSION,
            batches=self._batches,
            turns=self._turns,
            shown=self._shown,
            past=bot.archives.of(place.folder) if bot.archives else None,
        )
        result = await command.run(request, services)
        ran()
        await bot.replies.reply(message.reply_to, joined(result.segments, bot.channel.limits))
        return result.outcome

    async def say(self, message: InboundMessage, key: Key, **values: str) -> Outcome:
        """Answer a message with one phrase that says why nothing was done."""
        words = await self._bot.words(message.chat)
        await self._bot.replies.reply(message.reply_to, (words(key, **values),))
        return Outcome.REFUSED

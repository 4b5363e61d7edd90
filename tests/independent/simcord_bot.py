"""Our Discord modules inside another vendor's simulation of Discord; prints what was seen there as JSON.

A program of its own: the simulation takes over the event loop it runs in.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial

import discord
import simcord  # type: ignore[import-not-found]  # installed apart, for this program only

from bridges.message import InboundMessage, NotSent, ReplyTarget, Sent
from bridges.text.discord_api import DiscordApi
from bridges.text.discord_gateway import Gateway, Pace
from bridges.text.discord_parse import parse_command, parse_message
from commands.catalog import COMMANDS
from commands.help import menu
from harness_client.clock import SYSTEM_CLOCK
from i18n import Language, Words
from tests.channels.around import MemoryCursors


class Bot:
    """Answers everything with what it read, through the channel's own parts."""

    api: DiscordApi

    def __init__(self) -> None:
        self.heard: list[InboundMessage] = []
        self.client = Gateway(
            connected=lambda: None,
            message=self._hear,
            command=self._hear_command,
            pace=Pace(SYSTEM_CLOCK),
            clock=SYSTEM_CLOCK,
        )
        self._replies: set[asyncio.Task[object]] = set()

    def open(self) -> None:
        """Take the way out; the simulation puts itself in its place when it takes the client over."""
        self.api = DiscordApi(self.client, "ops", cursors=MemoryCursors(), clock=SYSTEM_CLOCK)

    def _hear(self, message: discord.Message) -> None:
        assert self.client.user is not None
        self._answer(parse_message(message, self.client.user.id, "ops", self.api.threads))

    def _hear_command(self, interaction: discord.Interaction) -> None:
        self.api.commands.arrived(interaction)
        self._answer(parse_command(interaction, "ops"))

    def _answer(self, message: InboundMessage | None) -> None:
        if message is not None and message.addressed:
            self.heard.append(message)
            reply = asyncio.create_task(self._send(message.reply_to, f"{message.kind}: {message.text}"))
            self._replies.add(reply)
            reply.add_done_callback(self._replies.discard)

    async def _send(self, target: ReplyTarget, text: str) -> None:
        for part in (text, "and more"):
            assert isinstance(await self.api.send(target, part), Sent)


async def main() -> dict[str, object]:
    """Let one person use the bot; return what came of it."""
    bot = Bot()
    async with simcord.run(bot.client) as env:
        bot.open()
        server = env.create_guild()
        general = server.create_text_channel("general")
        alice = server.add_member(env.create_user("alice"))
        await bot.api.publish({str(each): menu(COMMANDS.values(), Words(each)) for each in Language})
        await alice.send(general, "not for the bot")
        await alice.send(general, f"<@{bot.client.user.id if bot.client.user else 0}> hello")
        (thread,) = general.threads
        await alice.send(thread, "once more")
        await alice.send_dm("just us")
        picked = await alice.slash(general, "history", argument="5")
        direct = alice.user.dm_channel
        target = next(each.reply_to for each in bot.heard if each.text == "just us")
        send = partial(bot.api.send, target)
        return {
            "offered": sorted(alice.available_commands(general)),
            "in the channel": [message.content for message in general.history() if message.author.bot],
            "in the thread": [message.content for message in thread.history() if message.author.bot],
            "in private": [message.content for message in direct.history() if message.author.bot],
            "picked": [picked.acknowledged, picked.deferred, picked.response.content],
            "fits": isinstance(await send("x" * 2_000), Sent),
            "too long": await send("x" * 2_001) is NotSent.TOO_LONG,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main())))

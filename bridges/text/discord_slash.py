"""Slash commands: how they are published, and how the first message of a reply answers one. Imports the SDK.

Discord shows a failure to the person when nothing answers within 3 seconds, so a command that takes longer gets a sign
of life first. An answer can be given for 15 minutes; later ones, and all further messages of a reply, are ordinary.

The first answer opens a message, every other one puts its text there, so one whose fate is unknown may be repeated.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import discord
import msgspec
from discord import app_commands
from discord.http import Route

from bridges.message import Clock, Menu, MenuEntry, RetryAfter, SendOutcome, Sent, SentId
from bridges.text.discord_calls import call

SIGN_SECONDS: Final = 2.0
"""How long after its arrival a command that is not answered yet gets its sign of life."""

REMEMBERED: Final = 256
"""Commands that wait for their answer; beyond it the oldest are answered by ordinary messages."""

LONGEST_DESCRIPTION: Final = 100
"""Characters."""

_GONE: Final = (10008, 10015, 10062, 50027)
"""What Discord says of a command that can be answered no more, or whose answer was deleted: nothing was sent."""

_ANSWERED: Final = 40060
"""What Discord says of a second first answer."""

_MESSAGE: Final = 4
_THINKING: Final = 5
"""Kinds of first answer."""

_FLAGS: Final = discord.MessageFlags(suppress_embeds=True).value
_NOBODY: Final = discord.AllowedMentions.none().to_dict()

_LOCALES: Final = {
    "zh": (discord.Locale.chinese, discord.Locale.taiwan_chinese),
    "en": (discord.Locale.american_english, discord.Locale.british_english),
}
"""Our languages -> Discord's."""


class _Message(msgspec.Struct):
    id: str


class _Resource(msgspec.Struct):
    message: _Message | None = None


class _Opened(msgspec.Struct):
    """What Discord says of a first answer."""

    resource: _Resource = msgspec.field(default_factory=_Resource)


class _Pending:
    """A command that waits for its answer."""

    __slots__ = ("application", "arrived", "id", "lock", "token")

    def __init__(self, interaction: discord.Interaction, arrived: float) -> None:
        self.id = interaction.id
        self.application = interaction.application_id
        self.token = interaction.token
        self.arrived = arrived
        self.lock = asyncio.Lock()
        """The sign of life and the answer are one after the other: which of them comes first decides their form."""


class SlashCommands:
    """The commands that wait for an answer, which ``client`` gives."""

    def __init__(self, client: discord.Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._pending: OrderedDict[int, _Pending] = OrderedDict()
        self._signs: set[asyncio.Task[None]] = set()

    def arrived(self, interaction: discord.Interaction) -> None:
        """Remember a command, so that it can be answered."""
        self._pending[interaction.id] = _Pending(interaction, self._clock.monotonic())
        while len(self._pending) > REMEMBERED:
            self._pending.popitem(last=False)

    def accepted(self, number: int) -> None:
        """See to the sign of life of a command that will be answered."""
        if (pending := self._pending.get(number)) is not None:
            task = asyncio.create_task(self._give_sign(pending), name=f"slash command {number}")
            self._signs.add(task)
            task.add_done_callback(self._signs.discard)

    async def close(self) -> None:
        """Give no more signs."""
        for task in self._signs:
            task.cancel()
        await asyncio.gather(*self._signs, return_exceptions=True)

    async def _give_sign(self, pending: _Pending) -> None:
        await self._clock.sleep(pending.arrived + SIGN_SECONDS - self._clock.monotonic())
        async with pending.lock:
            if pending.id in self._pending:
                # Whatever comes of it: the answer finds out by itself.
                await call(self._client, lambda: self._open(pending, _THINKING), self._clock, attempts=1)

    async def answer(self, number: int, text: str) -> SendOutcome | None:
        """Answer a command; None when it was answered before, or can be no more: then nothing was sent."""
        pending = self._pending.get(number)
        if pending is None:
            return None
        async with pending.lock:
            if self._pending.pop(number, None) is None:
                return None
            outcome = await call(self._client, lambda: self._answer(pending, text), self._clock)
            if isinstance(outcome, RetryAfter):
                self._pending[number] = pending
            return outcome

    async def _answer(self, pending: _Pending, text: str) -> Sent | None:
        """Open the answer, or put the text where the sign of life or a lost attempt opened it. None: it is too late."""
        message = {"content": text, "flags": _FLAGS, "allowed_mentions": _NOBODY}
        try:
            try:
                opened = await self._open(pending, _MESSAGE, message)
            except discord.HTTPException as error:
                if error.code != _ANSWERED:
                    raise
                opened = await self._replace(pending, message)
        except discord.HTTPException as error:
            if error.code in _GONE:
                return None
            raise
        return Sent(SentId(opened.id) if opened else None)

    async def _open(self, pending: _Pending, kind: int, message: Mapping[str, object] | None = None) -> _Message | None:
        """Give the first answer. The SDK's own way cannot be repeated, and ends with the link the command came by."""
        route = Route("POST", "/interactions/{webhook_id}/{webhook_token}/callback",
                      webhook_id=pending.id, webhook_token=pending.token)  # fmt: skip
        body = {"type": kind} | ({"data": message} if message else {})
        told = await self._client.http.request(route, json=body, params={"with_response": "1"})
        return msgspec.convert(told, _Opened).resource.message

    async def _replace(self, pending: _Pending, message: Mapping[str, object]) -> _Message:
        route = Route("PATCH", "/webhooks/{webhook_id}/{webhook_token}/messages/@original",
                      webhook_id=pending.application, webhook_token=pending.token)  # fmt: skip
        return msgspec.convert(await self._client.http.request(route, json=message), _Message)


async def publish(tree: app_commands.CommandTree[discord.Client], menus: Mapping[str, Menu]) -> None:
    """Register the commands, in the place of earlier ones.

    Whoever speaks none of our languages reads the first. Raises discord.DiscordException, and what a lost
    connection raises.
    """
    tree.clear_commands(guild=None)
    await tree.set_translator(_Words(menus))
    for entry in next(iter(menus.values()), ()):
        tree.add_command(_command(entry))
    await tree.sync()


def _command(entry: MenuEntry) -> app_commands.Command[app_commands.Group, ..., None]:
    """Make what Discord lists; it is never run, for every command takes the one inbound path."""

    async def bare(_: discord.Interaction) -> None: ...

    async def with_argument(_: discord.Interaction, argument: str | None = None) -> None: ...

    run = with_argument if entry.parameter else bare
    if entry.parameter:
        app_commands.describe(argument=app_commands.locale_str(_cut(entry.parameter), of=entry.name))(run)
    summary = app_commands.locale_str(_cut(entry.summary), of=entry.name)
    return app_commands.Command(name=entry.name, description=summary, callback=run, auto_locale_strings=False)


class _Words(app_commands.Translator):
    """The menus of all languages, as the SDK asks for them."""

    def __init__(self, menus: Mapping[str, Menu]) -> None:
        self._entries = {
            (locale, entry.name): entry
            for language, menu in menus.items()
            for locale in _LOCALES.get(language, ())
            for entry in menu
        }

    async def translate(
        self, string: app_commands.locale_str, locale: discord.Locale, context: app_commands.TranslationContextTypes
    ) -> str | None:
        """See :meth:`discord.app_commands.Translator.translate`."""
        entry = self._entries.get((locale, string.extras.get("of", "")))
        if entry is None:
            return None
        parameter = context.location is app_commands.TranslationContextLocation.parameter_description
        return _cut((entry.parameter if parameter else entry.summary) or "") or None


def _cut(text: str) -> str:
    return text[:LONGEST_DESCRIPTION]

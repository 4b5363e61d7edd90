"""A Discord message or slash command -> ours. Pure; imports the SDK."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final, Self

import discord
import msgspec

from bridges.message import (
    AttachmentKind,
    ChatKey,
    ChatKind,
    EventId,
    InboundAttachment,
    InboundMessage,
    ReplyTarget,
    SenderId,
)

CHANNEL: Final = "discord"

_WRITTEN: Final = (discord.MessageType.default, discord.MessageType.reply)
"""What people write; all other types are notes of the platform."""

_KINDS: Final = {"image": AttachmentKind.IMAGE, "video": AttachmentKind.VIDEO, "audio": AttachmentKind.AUDIO}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reply goes; what a route says.

    ``thread_at`` is the message of ``channel`` at which a thread is opened for the reply. ``command`` is the slash
    command that the first message of the reply answers.
    """

    channel: int
    thread_at: int | None = None
    command: int | None = None

    @property
    def chat(self) -> int:
        """Return the id of the chat: a thread that is opened at a message has that message's id."""
        return self.thread_at or self.channel

    @property
    def route(self) -> str:
        """Return it as text, for :meth:`parse`."""
        if self.thread_at is not None:
            return f"{self.channel}/thread/{self.thread_at}"
        return str(self.channel) if self.command is None else f"{self.channel}/command/{self.command}"

    @classmethod
    def parse(cls, route: str) -> Self:
        """Read a route."""
        channel, _, rest = route.partition("/")
        what, _, number = rest.partition("/")
        match what:
            case "thread":
                return cls(int(channel), thread_at=int(number))
            case "command":
                return cls(int(channel), command=int(number))
            case _:
                return cls(int(channel))


def parse_message(message: discord.Message, me: int, bot: str, threads: Container[int]) -> InboundMessage | None:
    """Return what a person wrote to ``bot``; None for what is none of its business.

    That is: notes of the platform, our own messages, those of other bots and of webhooks. ``me`` is our user id;
    in ``threads``, those we opened, nobody needs to name us.
    """
    author = message.author
    if author.id == me or author.bot or message.webhook_id is not None or message.type not in _WRITTEN:
        return None
    direct = _is_direct(message)
    mentioned, text = _without_mentions(message, me)
    addressed = direct or mentioned or _answers(message, me) or _is_ours(message, me, threads)
    opens = addressed and isinstance(message.channel, discord.TextChannel) and _may_open(message.channel, me)
    place = Place(message.channel.id, thread_at=message.id if opens else None)
    chat = ChatKey(CHANNEL, bot, str(place.chat))
    return InboundMessage(
        id=EventId(str(message.id)),
        chat=chat,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(str(author.id)),
        text=text,
        reply_to=ReplyTarget(chat, place.route),
        attachments=_attachments(message),
        addressed=addressed,
        quoted=message.type is discord.MessageType.reply,
    )


def _is_direct(message: discord.Message) -> bool:
    """Return whether this is a chat with one person; a channel the SDK does not know is none."""
    return message.guild is None and isinstance(message.channel, discord.DMChannel)


def _is_ours(message: discord.Message, me: int, threads: Container[int]) -> bool:
    channel = message.channel
    return channel.id in threads or (isinstance(channel, discord.Thread) and channel.owner_id == me)


def _answers(message: discord.Message, me: int) -> bool:
    """Whether the message replies to one of ours, also where the mention was switched off."""
    answered = message.reference.resolved if message.reference else None
    return isinstance(answered, discord.Message) and answered.author.id == me


def _may_open(channel: discord.TextChannel, me: int) -> bool:
    """Whether we can answer in a thread; where we cannot, the channel itself is the chat."""
    member = channel.guild.get_member(me)
    may = channel.permissions_for(member) if member else discord.Permissions.none()
    return may.create_public_threads and may.send_messages_in_threads


def _without_mentions(message: discord.Message, me: int) -> tuple[bool, str]:
    """Return whether we are mentioned, by name or by the role that came with us, and the text without it."""
    role = message.guild.self_role if message.guild else None
    by_name = any(user.id == me for user in message.mentions)
    by_role = role is not None and role in message.role_mentions
    if not by_name and not by_role:
        return False, message.content
    names = [f"@!?{me}"] + ([f"@&{role.id}"] if role else [])
    return True, re.sub(f"<(?:{'|'.join(names)})>", "", message.content).strip()


def _attachments(message: discord.Message) -> tuple[InboundAttachment, ...]:
    files = tuple(
        InboundAttachment(
            _KINDS.get((file.content_type or "").partition("/")[0], AttachmentKind.FILE),
            file.url,
            file.filename,
            file.size,
        )
        for file in message.attachments
    )
    stickers = (InboundAttachment(AttachmentKind.STICKER, each.url, each.name) for each in message.stickers)
    return files + tuple(stickers)


class _Option(msgspec.Struct):
    value: str | int | float | bool | None = None


class _Invoked(msgspec.Struct):
    """The part of an interaction that says what was picked."""

    name: str
    options: list[_Option] = []


def parse_command(interaction: discord.Interaction, bot: str) -> InboundMessage | None:
    """Return a slash command as if it had been typed; None for anything else, and for what cannot be placed."""
    channel = interaction.channel_id
    if interaction.type is not discord.InteractionType.application_command or channel is None:
        return None
    try:
        invoked = msgspec.convert(interaction.data, _Invoked)
    except msgspec.ValidationError:
        return None
    values = [str(option.value) for option in invoked.options if option.value is not None]
    place = Place(channel, command=interaction.id)
    chat = ChatKey(CHANNEL, bot, str(place.chat))
    direct = interaction.guild_id is None and interaction.context.dm_channel
    return InboundMessage(
        id=EventId(str(interaction.id)),
        chat=chat,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(str(interaction.user.id)),
        text=" ".join([f"/{invoked.name}", *values]),
        reply_to=ReplyTarget(chat, place.route),
    )

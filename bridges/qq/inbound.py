"""Events of the gateway -> messages of ours. Pure."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, Self

import msgspec

from bridges.message import EventId, InboundAttachment, InboundMessage, ReplyTarget
from commands.model import AttachmentKind, ChatKey, ChatKind, SenderId

CHANNEL: Final = "qq"

_QUOTING: Final = 103
"""``message_type`` of a message that quotes another one."""


class Place(StrEnum):
    """The four kinds of chat; each has its own address to send to and its own allowance of replies."""

    USER = "user"
    GROUP = "group"
    GUILD = "guild"
    GUILD_DIRECT = "guild-direct"


EVENTS: Final = {
    "C2C_MESSAGE_CREATE": Place.USER,
    "GROUP_AT_MESSAGE_CREATE": Place.GROUP,
    "AT_MESSAGE_CREATE": Place.GUILD,
    "DIRECT_MESSAGE_CREATE": Place.GUILD_DIRECT,
}

_DIRECT: Final = frozenset({Place.USER, Place.GUILD_DIRECT})


class Route(msgspec.Struct, frozen=True):
    """Where to send, and which message is answered."""

    place: Place
    chat: str
    message: str

    @classmethod
    def of(cls, target: ReplyTarget) -> Self:
        """Read the route of a target we made."""
        return msgspec.json.decode(target.route, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class _Author(msgspec.Struct):
    id: str | None = None
    user_openid: str | None = None
    member_openid: str | None = None
    bot: bool | None = None


class _Attachment(msgspec.Struct):
    content_type: str | None = None
    filename: str | None = None
    size: int | None = None
    url: str | None = None
    asr_refer_text: str | None = None


class _Reference(msgspec.Struct):
    message_id: str | None = None


class _Message(msgspec.Struct):
    """The part of an event that we read."""

    id: str
    author: _Author = msgspec.field(default_factory=_Author)
    content: str | None = None
    group_openid: str | None = None
    channel_id: str | None = None
    guild_id: str | None = None
    message_type: int | None = None
    message_reference: _Reference | None = None
    attachments: list[_Attachment] | None = None


class Malformed(Exception):
    """An event that cannot be read; says which field, never what was in it."""


def parse(place: Place, data: msgspec.Raw, bot: str, own_id: str) -> InboundMessage | None:
    """Return the message of a person, or None for one of a bot. Raises Malformed.

    ``bot`` is the bot's name here, ``own_id`` its id on the platform. All four kinds of event are for the bot: a
    group's and a guild's are only sent when it was mentioned.
    """
    try:
        found = msgspec.json.decode(data, type=_Message)
    except msgspec.ValidationError as error:
        raise Malformed(str(error).rpartition(" - at ")[2]) from None
    except RecursionError:
        raise Malformed("too deep") from None
    chat, sender = {
        Place.USER: (found.author.user_openid or found.author.id,) * 2,
        Place.GROUP: (found.group_openid, found.author.member_openid or found.author.id),
        Place.GUILD: (found.channel_id, found.author.id),
        Place.GUILD_DIRECT: (found.guild_id, found.author.id),
    }[place]
    if not found.id or not chat or not sender:
        raise Malformed("no id, no chat or no sender")
    if found.author.bot or sender == own_id:
        return None
    key = ChatKey(CHANNEL, bot, chat)
    spoken = [words for each in found.attachments or () if (words := each.asr_refer_text)]
    return InboundMessage(
        id=EventId(found.id),
        chat=key,
        kind=ChatKind.DIRECT if place in _DIRECT else ChatKind.GROUP,
        sender=SenderId(sender),
        text="\n".join(filter(None, [_without_mention(found.content or "", own_id), *spoken])),
        reply_to=ReplyTarget(key, str(Route(place, chat, found.id))),
        attachments=tuple(_attachment(each) for each in found.attachments or () if not each.asr_refer_text),
        quoted=found.message_type == _QUOTING or bool(found.message_reference and found.message_reference.message_id),
    )


def _without_mention(text: str, own_id: str) -> str:
    """Take the bot's own mention away, and the blank that is left of it in groups."""
    return re.sub(rf"<@!?{re.escape(own_id)}>", "", text).strip() if own_id else text.strip()


def _attachment(found: _Attachment) -> InboundAttachment:
    url = found.url or ""
    if url.startswith("//"):
        url = f"https:{url}"
    elif url and "://" not in url:
        url = f"https://{url}"
    return InboundAttachment(_kind(found.content_type or ""), url, found.filename, found.size)


def _kind(content_type: str) -> AttachmentKind:
    match content_type.partition("/")[0]:
        case "image":
            return AttachmentKind.IMAGE
        case "video":
            return AttachmentKind.VIDEO
        case "voice" | "audio":
            return AttachmentKind.AUDIO
        case _:
            return AttachmentKind.FILE

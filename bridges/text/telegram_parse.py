"""A Telegram message -> ours. Pure; imports the SDK."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import structlog
import telegram

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
from commands.recognise import BLANKS, INVISIBLE

_KINDS: Final[dict[type, AttachmentKind]] = {
    telegram.PhotoSize: AttachmentKind.IMAGE,
    telegram.Animation: AttachmentKind.VIDEO,
    telegram.Video: AttachmentKind.VIDEO,
    telegram.VideoNote: AttachmentKind.VIDEO,
    telegram.Audio: AttachmentKind.AUDIO,
    telegram.Voice: AttachmentKind.AUDIO,
    telegram.Sticker: AttachmentKind.STICKER,
}
"""Anything else that is no text, a place or a poll too, counts as a file."""

_COMMAND: Final = re.compile(rf"[{BLANKS}{INVISIBLE}]*[/／]\w{{1,64}}@([A-Za-z0-9_]{{3,32}})(?!\w)")

_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""What the SDK's readers raise, each in its own way: they trust the platform to send what it documents."""


def read(update: Mapping[str, object], me: telegram.User, bot: str) -> InboundMessage | None:
    """Do as :func:`parse` does with an update as it came; one that makes no sense is left out, its text not logged."""
    try:
        return parse(telegram.Update.de_json(dict(update), None), me, bot)
    except _UNREADABLE as error:
        name = update.get("update_id")
        structlog.get_logger(__name__).warning("update not understood", update=name, error=type(error).__name__)
        return None


def parse(update: telegram.Update, me: telegram.User, bot: str) -> InboundMessage | None:
    """Return what a person sent to ``bot``; None for what is none of its business.

    That is: edits, service messages, our own messages, those of other bots, commands of other bots.
    """
    message = update.message
    if message is None or message.from_user is None:
        return None
    author = message.sender_chat or message.from_user  # whoever writes as a group or channel has no other identity
    if message.from_user.is_bot and message.sender_chat is None:
        return None
    attachment = _attachment(message)
    typed = message.text or message.caption or ""
    if not typed and attachment is None:
        return None
    mentioned, text = _without_mentions(typed, message.entities or message.caption_entities, me)
    command = _COMMAND.match(text)
    if command is not None:
        if not _is_name(command[1], me):
            return None
        mentioned, text = True, text[: command.start(1) - 1] + text[command.end(1) :]
    direct = message.chat.type == telegram.Chat.PRIVATE
    topic = message.message_thread_id if message.is_topic_message else None
    place = f"{message.chat.id}/{topic}" if topic is not None else str(message.chat.id)
    chat = ChatKey("telegram", bot, place)
    answered = _answered(message)
    return InboundMessage(
        id=EventId(str(update.update_id)),
        chat=chat,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(str(author.id)),
        text=text,
        reply_to=ReplyTarget(chat, place),
        attachments=(attachment,) if attachment else (),
        addressed=direct or mentioned or (answered is not None and _wrote(answered, me)),
        quoted=(answered or message.external_reply or message.reply_to_story) is not None,
    )


def _answered(message: telegram.Message) -> telegram.Message | None:
    """Return the message this one replies to; every message of a topic "replies" to the note that opened it."""
    answered = message.reply_to_message
    return None if answered is None or answered.forum_topic_created else answered


def _wrote(message: telegram.Message, me: telegram.User) -> bool:
    return message.from_user is not None and message.from_user.id == me.id


def _is_name(name: str, me: telegram.User) -> bool:
    return name.casefold() == (me.username or "").casefold()


def _without_mentions(text: str, entities: tuple[telegram.MessageEntity, ...], me: telegram.User) -> tuple[bool, str]:
    """Return whether the bot is mentioned, and the text without its name; entities count in UTF-16 units."""
    units = text.encode("utf-16-le", "surrogatepass")
    mentioned = False
    for entity in sorted(entities, key=lambda entity: entity.offset, reverse=True):
        start, end = entity.offset * 2, (entity.offset + entity.length) * 2
        words = units[start:end].decode("utf-16-le", "replace")
        by_id = entity.type == entity.TEXT_MENTION and entity.user is not None and entity.user.id == me.id
        if by_id or (entity.type == entity.MENTION and _is_name(words[1:], me)):
            units = units[:start] + units[end:]
            mentioned = True
        elif entity.type == entity.BOT_COMMAND and _is_name(words.rpartition("@")[2], me):
            mentioned = True
    text = units.decode("utf-16-le", "surrogatepass")
    return mentioned, text.strip() if mentioned else text


def _attachment(message: telegram.Message) -> InboundAttachment | None:
    found = message.effective_attachment
    if found is None and message.caption is not None:
        return InboundAttachment(AttachmentKind.FILE, "")  # of a kind that the SDK does not know yet
    if isinstance(found, tuple | list):  # a photo in all its sizes, the largest last
        found = found[-1] if found else None
    if found is None:
        return None
    return InboundAttachment(
        _KINDS.get(type(found), AttachmentKind.FILE),
        getattr(found, "file_id", ""),  # what is no file has none
        getattr(found, "file_name", None),
        getattr(found, "file_size", None),
    )

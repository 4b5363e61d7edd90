"""Callbacks -> messages of ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from bridges.message import EventId, InboundAttachment, InboundMessage, ReplyTarget
from bridges.wecom.connection import Callback
from commands.model import AttachmentKind, ChatKey, ChatKind, SenderId

CHANNEL: Final = "wecom"
MESSAGE: Final = "aibot_msg_callback"

LONGEST_NAME: Final = 64
"""Characters of a mention whose name is not known, "@" included."""

_SEPARATOR: Final = "\u2005"
"""What some clients put behind a mention and nobody types."""


class Route(msgspec.Struct, frozen=True):
    """The person or the group to send to, and the request that is answered."""

    chat: str
    request: str

    @classmethod
    def of(cls, target: ReplyTarget) -> Self:
        """Read the route of a target we made."""
        return msgspec.json.decode(target.route, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class File(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a file lies for five minutes, and the key to it; what :class:`InboundAttachment` calls its handle."""

    url: str = ""
    aeskey: str | None = None

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class _Text(msgspec.Struct):
    content: str = ""


class _Item(msgspec.Struct):
    """One piece of a message, or a whole one of a single piece."""

    msgtype: str = ""
    text: _Text | None = None
    voice: _Text | None = None
    image: File | None = None
    file: File | None = None
    video: File | None = None


class _Mixed(msgspec.Struct):
    msg_item: list[_Item] = msgspec.field(default_factory=list)


class _Quote(msgspec.Struct):
    """That there is one is all that counts."""


class _From(msgspec.Struct):
    userid: str = ""


class _Message(_Item):
    """The part of a callback that we read."""

    msgid: str = ""
    chattype: str = ""
    chatid: str | None = None
    sender: _From = msgspec.field(name="from", default_factory=_From)
    mixed: _Mixed | None = None
    quote: _Quote | None = None


class Malformed(Exception):
    """A callback that cannot be read; says which field, never what was in it."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the bot is called in groups, if the operator said so, and the commands that may follow a mention of it."""

    display: str | None
    commands: Collection[str]
    """In lower case."""

    def without_mention(self, text: str) -> str:
        """Take the mention of the bot away; people's names hold blanks as well, and nothing marks their end.

        Where the bot's name is not known, everything in front of the first command is the mention, else one word.
        """
        text = text.strip()
        if self.display and (without := re.sub(rf"@{re.escape(self.display)}(?!\w)", "", text)) != text:
            return without.strip()
        if self.display and text.startswith(f"@{self.display}"):  # written on without a gap, as Chinese is
            return text.removeprefix(f"@{self.display}").strip()
        if not text.startswith("@"):
            return text
        name, separator, rest = text.partition(_SEPARATOR)
        if separator and len(name) <= LONGEST_NAME:
            return rest.strip()
        for match in re.finditer(r"\s[/／]([A-Za-z]+)", text[: 2 * LONGEST_NAME]):
            if match[1].lower() in self.commands and match.start() <= LONGEST_NAME:
                return text[match.start() :].strip()
        return re.sub(r"^@\S*", "", text).strip()


def parse(callback: Callback, bot: str, names: Names) -> InboundMessage | None:
    """Return the message of a person, or None for something else. Raises Malformed.

    ``bot`` is the bot's name here. A group's messages are only delivered when they mention the bot.
    """
    if callback.command != MESSAGE:
        return None
    try:
        found = msgspec.convert(callback.body, _Message)
    except msgspec.ValidationError as error:
        raise Malformed(str(error).rpartition(" - at ")[2]) from None
    sender, direct = found.sender.userid, found.chattype == "single"
    chat = sender if direct else found.chatid
    if not found.msgid or not sender or not chat or not callback.request:
        raise Malformed("no id, no sender, no chat or no request")
    if any(map(_torn, (found.msgid, sender, chat, callback.request))):
        raise Malformed("half a character in an id")
    items = found.mixed.msg_item if found.mixed else [found]
    text = "\n".join(_texts(items)).encode("utf-8", "replace").decode()
    attachments = tuple(_attachments(items))
    if not text and not attachments:
        return None
    key = ChatKey(CHANNEL, bot, chat)
    return InboundMessage(
        id=EventId(found.msgid),
        chat=key,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(sender),
        text=text if direct else names.without_mention(text),
        reply_to=ReplyTarget(key, str(Route(chat, callback.request))),
        attachments=attachments,
        quoted=found.quote is not None,
    )


def _torn(text: str) -> bool:
    """Return whether a surrogate stands alone in it, which no state and no answer can hold."""
    return any("\ud800" <= char <= "\udfff" for char in text)


def _texts(items: Iterable[_Item]) -> Iterable[str]:
    """Return what the person typed, or said and the platform wrote down."""
    return (said.content for item in items for said in (item.text, item.voice) if said and said.content)


def _attachments(items: Iterable[_Item]) -> Iterable[InboundAttachment]:
    for item in items:
        kinds = (
            (AttachmentKind.IMAGE, item.image),
            (AttachmentKind.FILE, item.file),
            (AttachmentKind.VIDEO, item.video),
        )
        yield from (InboundAttachment(kind, str(file)) for kind, file in kinds if file)

"""Events of Feishu -> messages of ours. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, Self, TypeVar

import msgspec

from bridges.message import EventId, InboundAttachment, InboundMessage, ReplyTarget
from commands.model import AttachmentKind, ChatKey, ChatKind, SenderId

CHANNEL: Final = "feishu"
RECEIVED: Final = "im.message.receive_v1"

_KEY: Final = re.compile(r"@_(?:user_\d+|all)")

_FILES: Final = {
    "image": AttachmentKind.IMAGE,
    "file": AttachmentKind.FILE,
    "audio": AttachmentKind.AUDIO,
    "media": AttachmentKind.VIDEO,
    "sticker": AttachmentKind.STICKER,
}
"""Messages that are one file. What is neither in here nor text is handed on as a file that cannot be fetched."""

_READ: Final = frozenset({"text", "post", *_FILES})
"""Messages whose content is looked at; in others the same fields hold other things."""


class Route(msgspec.Struct, frozen=True):
    """Where to send: to a chat, or to the topic that ``message`` is part of."""

    chat: str
    message: str | None = None

    @classmethod
    def of(cls, target: ReplyTarget) -> Self:
        """Read the route of a target we made."""
        return msgspec.json.decode(target.route, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class Resource(msgspec.Struct, frozen=True):
    """How a file is fetched: as part of its message. Without a key it is not to be had."""

    message: str
    key: str
    type: str

    @classmethod
    def of(cls, attachment: InboundAttachment) -> Self:
        """Read the handle of an attachment we made."""
        return msgspec.json.decode(attachment.handle, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class _Ids(msgspec.Struct):
    open_id: str | None = None


class _Sender(msgspec.Struct):
    sender_id: _Ids | None = None
    sender_type: str = ""


class _Mention(msgspec.Struct):
    key: str
    id: _Ids | None = None
    name: str | None = None


class _Message(msgspec.Struct):
    message_id: str
    chat_id: str
    chat_type: str = ""
    message_type: str = ""
    content: str | None = None
    parent_id: str | None = None
    root_id: str | None = None
    thread_id: str | None = None
    mentions: list[_Mention] | None = None


class _Received(msgspec.Struct):
    sender: _Sender
    message: _Message


class _Header(msgspec.Struct):
    event_type: str = ""


class _Event(msgspec.Struct):
    header: _Header = msgspec.field(default_factory=_Header)
    event: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class _Piece(msgspec.Struct):
    """One piece of a post; which fields it has is up to its tag."""

    tag: str = ""
    text: str | None = None
    href: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    image_key: str | None = None
    file_key: str | None = None


class _Content(msgspec.Struct):
    """What a message says; which fields it has is up to its type."""

    text: str | None = None
    title: str | None = None
    content: list[list[_Piece]] | None = None
    image_key: str | None = None
    file_key: str | None = None
    file_name: str | None = None


T = TypeVar("T")


class Malformed(Exception):
    """An event that cannot be read; says which field, never what was in it."""


def parse(payload: bytes, bot: str, own_id: str) -> InboundMessage | None:
    """Return the message of a person, or None for any other event. Raises Malformed.

    ``bot`` is the bot's name here, ``own_id`` its open_id. A topic of a group is a chat of its own.
    """
    event = _decode(payload, _Event)
    if event.header.event_type != RECEIVED:
        return None
    received = _decode(event.event, _Received)
    if received.sender.sender_type != "user":
        return None
    message, sender = received.message, (received.sender.sender_id or _Ids()).open_id
    if not message.message_id or not message.chat_id or not sender:
        raise Malformed("no id, no chat or no sender")
    mentions = {each.key: each for each in message.mentions or () if each.key}
    mentioned = {key for key, each in mentions.items() if each.id is not None and each.id.open_id == own_id}
    names = {key: "" if key in mentioned else f"@{each.name or ''}" for key, each in mentions.items()}
    direct = message.chat_type == "p2p"
    topic = message.thread_id
    chat = ChatKey(CHANNEL, bot, f"{message.chat_id}/{topic}" if topic and not direct else message.chat_id)
    content = _content(message)
    return InboundMessage(
        id=EventId(message.message_id),
        chat=chat,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(sender),
        text=_text(message.message_type, content, names),
        reply_to=ReplyTarget(chat, str(Route(message.chat_id, message.message_id if topic else None))),
        attachments=tuple(_attachments(message, content)),
        addressed=direct or bool(mentioned),
        quoted=bool(message.parent_id) and not (topic and message.parent_id == message.root_id),
    )


def _content(message: _Message) -> _Content:
    """Read what a message says, in the first of its languages where it has several."""
    if message.message_type not in _READ or not message.content:
        return _Content()
    content = _decode(message.content.encode(), _Content)
    if message.message_type == "post" and content == _Content():
        return next(iter(_decode(message.content.encode(), dict[str, _Content]).values()), content)
    return content


def _text(message_type: str, content: _Content, names: Mapping[str, str]) -> str:
    """Return what the person typed, the bot's own mention removed and others by their names."""
    match message_type:
        case "text":
            text = content.text or ""
        case "post":
            lines = ["".join(_piece(piece, names) for piece in line) for line in content.content or ()]
            text = "\n".join([content.title, *lines] if content.title else lines)
        case _:
            text = ""
    return _KEY.sub(lambda key: names.get(key.group(), key.group()), text).strip()


def _piece(piece: _Piece, names: Mapping[str, str]) -> str:
    match piece.tag:
        case "at":
            return names.get(piece.user_id or "", f"@{piece.user_name or ''}")
        case "a" if piece.href and piece.href != piece.text:
            return f"{piece.text or ''} {piece.href}".strip()
        case "code_block":
            return f"\n{piece.text or ''}\n"
        case _:
            return piece.text or ""


def _attachments(message: _Message, content: _Content) -> Iterator[InboundAttachment]:
    if message.message_type == "post":
        for piece in (piece for line in content.content or () for piece in line):
            if piece.tag == "img" and piece.image_key:
                yield _attachment(message, AttachmentKind.IMAGE, piece.image_key)
            elif piece.tag == "media" and piece.file_key:
                yield _attachment(message, AttachmentKind.VIDEO, piece.file_key)
    elif message.message_type == "image":
        yield _attachment(message, AttachmentKind.IMAGE, content.image_key)
    elif message.message_type != "text":
        kind = _FILES.get(message.message_type)
        # Stickers, cards, places, forwarded messages: the platform hands out none of them.
        key = content.file_key if kind not in {None, AttachmentKind.STICKER} else None
        yield _attachment(message, kind or AttachmentKind.FILE, key, content.file_name)


def _attachment(message: _Message, kind: AttachmentKind, key: str | None, name: str | None = None) -> InboundAttachment:
    place = "image" if kind is AttachmentKind.IMAGE else "file"
    return InboundAttachment(kind, str(Resource(message.message_id, key or "", place)), name)


def _decode(data: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Read JSON; half a character, which no state and no answer can hold, becomes a question mark."""
    try:
        sound = json.dumps(json.loads(bytes(data)), ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(sound, type=kind)
    except msgspec.DecodeError as error:
        raise Malformed(str(error).rpartition(" - at ")[2] or "no JSON") from None
    except (ValueError, RecursionError):
        raise Malformed("no JSON") from None

"""A post of WhatsApp's webhook -> messages of ours, and what became of those we sent. Pure.

One post holds any number of entries, changes and messages; each is read by itself, so that one that makes no sense
takes no other with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self, TypeVar

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

CHANNEL: Final = "whatsapp"

_SILENT: Final = frozenset({"edit", "reaction", "request_welcome", "revoke", "system"})
"""Kinds of message in which nobody says anything to the bot. Any other that is no text, a place too, is a file."""


class Route(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where to send, and which message is answered: to a group, or to a person by phone number, by user id or both."""

    message: str
    group: str | None = None
    phone: str | None = None
    user: str | None = None

    @classmethod
    def of(cls, target: ReplyTarget) -> Self:
        """Read the route of a target we made."""
        return msgspec.json.decode(target.route, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A message of ours that WhatsApp took and then did not deliver."""

    id: str
    code: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a post that cannot be read; ``where`` is a path in it, never what stood there."""

    where: str


Found = InboundMessage | Undelivered | Unreadable


@dataclass(frozen=True, slots=True)
class Number:
    """Our own number: the bot's name here, its id at WhatsApp, and the digits that people see."""

    bot: str
    id: str
    digits: str = ""


class _Change(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw(b"{}")
    field: str | None = None


class _Entry(msgspec.Struct):
    changes: list[msgspec.Raw] = msgspec.field(default_factory=list)


class _Post(msgspec.Struct):
    entry: list[msgspec.Raw] = msgspec.field(default_factory=list)


class _Metadata(msgspec.Struct):
    phone_number_id: str = ""
    display_phone_number: str = ""


class _Contact(msgspec.Struct):
    wa_id: str | None = None
    user_id: str | None = None


class _Value(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    contacts: msgspec.Raw = msgspec.Raw(b"[]")
    messages: list[msgspec.Raw] | None = None
    statuses: list[msgspec.Raw] | None = None


class _Error(msgspec.Struct):
    code: int = 0


class _Status(msgspec.Struct):
    id: str
    status: str
    errors: list[_Error] | None = None


class _Text(msgspec.Struct):
    body: str = ""


class _Button(msgspec.Struct):
    text: str = ""


class _Choice(msgspec.Struct):
    title: str = ""


class _Interactive(msgspec.Struct):
    button_reply: _Choice | None = None
    list_reply: _Choice | None = None


class _Media(msgspec.Struct):
    id: str = ""
    caption: str | None = None
    filename: str | None = None


class _Context(msgspec.Struct):
    """What a message refers to; one that was forwarded has a context without an id."""

    id: str | None = None
    sender: str | None = msgspec.field(name="from", default=None)


class _Message(msgspec.Struct):
    id: str
    type: str
    sender: str | None = msgspec.field(name="from", default=None)
    """A phone number, or the user id of somebody who has none to show."""
    from_user_id: str | None = None
    group_id: str | None = None
    context: _Context | None = None
    text: _Text | None = None
    button: _Button | None = None
    interactive: _Interactive | None = None
    image: _Media | None = None
    video: _Media | None = None
    audio: _Media | None = None
    document: _Media | None = None
    sticker: _Media | None = None


def parse(body: bytes, bot: str, number_id: str) -> Iterator[Found]:
    """Yield what a post holds for ``bot``, whose number has that id, in order; what is another number's is left out."""
    post = _read(body, _Post, "post")
    if isinstance(post, Unreadable):
        yield post
        return
    for raw in post.entry:
        entry = _read(raw, _Entry, "entry")
        if isinstance(entry, Unreadable):
            yield entry
            continue
        for each in entry.changes:
            change = _read(each, _Change, "change")
            if isinstance(change, Unreadable):
                yield change
            elif change.field == "messages":  # other fields carry our own echo, or nothing for us
                yield from _value(change.value, bot, number_id)


def _value(raw: msgspec.Raw, bot: str, number_id: str) -> Iterator[Found]:
    value = _read(raw, _Value, "value")
    if isinstance(value, Unreadable):
        yield value
        return
    if value.metadata.phone_number_id != number_id:
        return
    me = Number(bot, number_id, digits(value.metadata.display_phone_number))
    contacts = _read(value.contacts, list[_Contact], "contacts")
    if isinstance(contacts, Unreadable):
        yield contacts
    known = [] if isinstance(contacts, Unreadable) else contacts
    user_ids = {contact.wa_id: contact.user_id for contact in known if contact.wa_id}
    for each in value.messages or ():
        message = _read(each, _Message, "message")
        found = message if isinstance(message, Unreadable) else _message(message, me, user_ids)
        if found is not None:
            yield found
    for each in value.statuses or ():
        status = _read(each, _Status, "status")
        if isinstance(status, Unreadable):
            yield status
        elif status.status == "failed":
            yield Undelivered(status.id, status.errors[0].code if status.errors else 0)


def _message(message: _Message, me: Number, user_ids: dict[str, str | None]) -> InboundMessage | Unreadable | None:
    number = message.sender if message.sender and message.sender.isdecimal() else None
    user = message.from_user_id or (message.sender if number is None else user_ids.get(number))
    sender = user or number
    if not message.id or not sender or message.group_id == "":
        return Unreadable("message without id, sender or group")
    if message.type in _SILENT or (number and number == me.digits):
        return None
    group, context = message.group_id, message.context
    chat = ChatKey(CHANNEL, me.bot, group or sender)
    typed, attachment = _content(message)
    mentioned, text = _without_mention(typed, me) if group else (False, typed)
    replied = context is not None and context.sender is not None and digits(context.sender) == me.digits
    route = Route(message.id, group) if group else Route(message.id, phone=number, user=user)
    return InboundMessage(
        id=EventId(message.id),
        chat=chat,
        kind=ChatKind.GROUP if group else ChatKind.DIRECT,
        sender=SenderId(sender),
        text=text,
        reply_to=ReplyTarget(chat, str(route)),
        attachments=(attachment,) if attachment else (),
        addressed=not group or mentioned or replied,
        quoted=context is not None and context.id is not None,
    )


def _content(message: _Message) -> tuple[str, InboundAttachment | None]:
    """Return what was typed or picked, and the file, if any."""
    match message.type:
        case "text":
            return (message.text or _Text()).body, None
        case "button":
            return (message.button or _Button()).text, None
        case "interactive":
            picked = message.interactive or _Interactive()
            return (picked.button_reply or picked.list_reply or _Choice()).title, None
        case "image":
            kind, media = AttachmentKind.IMAGE, message.image
        case "video":
            kind, media = AttachmentKind.VIDEO, message.video
        case "audio":
            kind, media = AttachmentKind.AUDIO, message.audio
        case "sticker":
            kind, media = AttachmentKind.STICKER, message.sticker
        case _:
            kind, media = AttachmentKind.FILE, message.document
    media = media or _Media()
    return media.caption or "", InboundAttachment(kind, media.id, media.filename)


def _without_mention(text: str, me: Number) -> tuple[bool, str]:
    """Return whether our number is mentioned, and the text without it."""
    if not me.digits:
        return False, text
    left, mentions = re.subn(rf"@\+?{me.digits}(?!\d)", "", text)
    return mentions > 0, left.strip() if mentions else text


def digits(phone: str) -> str:
    """Return a phone number as WhatsApp's ids have it."""
    return re.sub(r"[^0-9]", "", phone)


S = TypeVar("S")


def _read(data: bytes | msgspec.Raw, kind: type[S], name: str) -> S | Unreadable:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        return Unreadable(f"{name}{str(error).partition(' - at `$')[2].rstrip('`')}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Unreadable(name)

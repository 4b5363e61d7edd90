"""One message of the platform -> one message of ours. Pure."""

from __future__ import annotations

from typing import Final, Self

import msgspec

from bridges.message import EventId, InboundAttachment, InboundMessage, ReplyTarget
from commands.model import AttachmentKind, ChatKey, ChatKind, SenderId

CHANNEL: Final = "weixin"

_SIZE_DIGITS: Final = 18
_BOT: Final = 2
_TEXT, _VOICE = 1, 3


class Route(msgspec.Struct, frozen=True):
    """Whom to answer, and the context token of the message that is answered; later ones of that person go first."""

    user: str
    token: str

    @classmethod
    def of(cls, target: ReplyTarget) -> Self:
        """Read the route of a target we made."""
        return msgspec.json.decode(target.route, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a file lies and the key to it; what :class:`InboundAttachment` calls its handle."""

    full_url: str | None = None
    encrypt_query_param: str | None = None
    aes_key: str | None = None
    """Base64 of the 16 bytes, or of their 32 hexadecimal digits."""
    aeskey: str | None = None
    """The 32 hexadecimal digits."""

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class _Content(msgspec.Struct):
    """Any of the five kinds; each uses some of the fields."""

    text: str | None = None
    media: Place | None = None
    aeskey: str | None = None
    file_name: str | None = None
    len: str | int | None = None
    mid_size: int | None = None
    video_size: int | None = None

    def attachment(self, kind: AttachmentKind) -> InboundAttachment:
        place = msgspec.structs.replace(self.media or Place(), aeskey=self.aeskey)
        size = str(self.len or self.mid_size or self.video_size or "")[:_SIZE_DIGITS]
        return InboundAttachment(kind, str(place), self.file_name, int(size) if size.isdecimal() else None)


class _Quote(msgspec.Struct):
    """That there is one is all that counts."""


class _Item(msgspec.Struct):
    """One piece of a message."""

    type: int | None = None
    msg_id: str | int | None = None
    ref_msg: _Quote | None = None
    text_item: _Content | None = None
    image_item: _Content | None = None
    voice_item: _Content | None = None
    file_item: _Content | None = None
    video_item: _Content | None = None


class _Message(msgspec.Struct):
    """A message as it comes."""

    message_id: int | str | None = None
    from_user_id: str = ""
    message_type: int | None = None
    group_id: str | None = None
    create_time_ms: int | None = None
    delete_time_ms: int | None = None
    item_list: list[_Item] | None = None
    context_token: str | None = None


class Malformed(Exception):
    """A message that cannot be read; says which field, never what was in it."""


def parse(raw: msgspec.Raw, bot: str, account: str) -> tuple[InboundMessage, int] | None:
    """Return the message and when it was sent, in milliseconds since the epoch; None for one that is not a person's.

    A group does not exist for bots of this platform; a message that claims to come from one is addressed to nobody.
    Raises Malformed.
    """
    try:
        found = msgspec.json.decode(raw, type=_Message)
    except msgspec.ValidationError as error:
        raise Malformed(str(error).rpartition(" - at ")[2]) from None
    except RecursionError:
        raise Malformed("too deep") from None
    items = found.item_list or []
    event = found.message_id or next((item.msg_id for item in items if item.msg_id), None)
    if not found.from_user_id or not event:
        raise Malformed("no sender or no id")
    if found.message_type == _BOT or found.delete_time_ms or found.from_user_id == account:
        return None
    chat = ChatKey(CHANNEL, bot, found.group_id or found.from_user_id)
    message = InboundMessage(
        id=EventId(str(event)),
        chat=chat,
        kind=ChatKind.GROUP if found.group_id else ChatKind.DIRECT,
        sender=SenderId(found.from_user_id),
        text="\n".join(text for item in items if (text := _text(item))),
        reply_to=ReplyTarget(chat, str(Route(found.from_user_id, found.context_token or ""))),
        attachments=tuple(attachment for item in items if (attachment := _attachment(item))),
        addressed=not found.group_id,
        quoted=any(item.ref_msg is not None for item in items),
    )
    return message, found.create_time_ms or 0


def _text(item: _Item) -> str | None:
    """Return what the person said: typed, or spoken and written down by the platform."""
    content = {_TEXT: item.text_item, _VOICE: item.voice_item}.get(item.type or 0)
    return content.text if content else None


def _attachment(item: _Item) -> InboundAttachment | None:
    match item:
        case _Item(type=2, image_item=_Content() as content):
            return content.attachment(AttachmentKind.IMAGE)
        case _Item(type=3, voice_item=_Content(text=None | "") as content):
            return content.attachment(AttachmentKind.AUDIO)
        case _Item(type=4, file_item=_Content() as content):
            return content.attachment(AttachmentKind.FILE)
        case _Item(type=5, video_item=_Content() as content):
            return content.attachment(AttachmentKind.VIDEO)
        case _:
            return None

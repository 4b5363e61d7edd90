"""The data of a callback -> a message of ours. Pure."""

from __future__ import annotations

from typing import Final, Self

import msgspec

from bridges.message import EventId, InboundAttachment, InboundMessage, ReplyTarget
from commands.model import AttachmentKind, ChatKey, ChatKind, SenderId

CHANNEL: Final = "dingtalk"
_DIRECT: Final = "1"


class Route(msgspec.Struct, frozen=True, omit_defaults=True):
    """A conversation, and both ways to reach it: its webhook for some time, and the API."""

    chat: str
    robot: str
    user: str | None = None
    """The person's staff id in a private chat; None in a group, and empty for an outsider, who has none."""
    webhook: str | None = None
    until: float = 0.0
    """When the webhook ends, in seconds since the epoch."""

    @classmethod
    def of(cls, target: ReplyTarget) -> Self:
        """Read the route of a target we made."""
        return msgspec.json.decode(target.route, type=cls)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class File(msgspec.Struct, frozen=True):
    """What gets a file; the handle of an :class:`InboundAttachment`."""

    robot: str
    code: str

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class _Text(msgspec.Struct, rename="camel"):
    content: str = ""
    is_reply_msg: bool = False


class _Piece(msgspec.Struct, rename="camel"):
    text: str | None = None
    download_code: str | None = None


class _Content(msgspec.Struct, rename="camel"):
    """Of any kind but text; each uses some of the fields."""

    download_code: str | None = None
    file_name: str | None = None
    recognition: str | None = None
    rich_text: list[_Piece] | None = None


class _Message(msgspec.Struct, rename="camel"):
    """The part of a callback that we read."""

    msg_id: str = ""
    msgtype: str = ""
    conversation_type: str = ""
    conversation_id: str = ""
    sender_id: str = ""
    sender_staff_id: str | None = None
    chatbot_user_id: str | None = None
    robot_code: str | None = None
    session_webhook: str | None = None
    session_webhook_expired_time: float = 0
    is_in_at_list: bool | None = None
    text: _Text | None = None
    content: _Content | None = None


class Malformed(Exception):
    """A callback that cannot be read; says which field, never what was in it."""


_KINDS: Final = {
    "picture": AttachmentKind.IMAGE,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
    "file": AttachmentKind.FILE,
}


def parse(data: object, bot: str, client_id: str) -> InboundMessage | None:
    """Return the message of a person, or None for something else. Raises Malformed.

    ``bot`` is the bot's name here; its ``client_id`` is its code where a message does not say that. A group's messages
    are only delivered when they mention the bot, and without that mention.
    """
    try:
        found = msgspec.convert(data, _Message, strict=False)
    except msgspec.ValidationError as error:
        raise Malformed(str(error).rpartition(" - at ")[2]) from None
    sender = found.sender_staff_id or found.sender_id
    if not found.msg_id or not found.conversation_id or not sender:
        raise Malformed("no id, no conversation or no sender")
    robot = found.robot_code or client_id
    text, attachments = _text(found), _attachments(found, robot)
    if found.sender_id == found.chatbot_user_id or not (text or attachments):
        return None
    direct = found.conversation_type == _DIRECT
    chat = ChatKey(CHANNEL, bot, found.conversation_id)
    route = Route(
        chat=found.conversation_id,
        robot=robot,
        user=(found.sender_staff_id or "") if direct else None,
        webhook=found.session_webhook,
        until=found.session_webhook_expired_time / 1000,
    )
    return InboundMessage(
        id=EventId(found.msg_id),
        chat=chat,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(sender),
        text=text,
        reply_to=ReplyTarget(chat, str(route)),
        attachments=attachments,
        addressed=direct or found.is_in_at_list is not False,
        quoted=found.text is not None and found.text.is_reply_msg,
    )


def _text(found: _Message) -> str:
    """Return what the person typed, or said and the platform wrote down."""
    content = found.content or _Content()
    pieces = [piece.text for piece in content.rich_text or () if piece.text]
    said = [found.text.content if found.text else "", content.recognition or "", "".join(pieces)]
    return "\n".join(filter(None, said)).strip()


def _attachments(found: _Message, robot: str) -> tuple[InboundAttachment, ...]:
    content = found.content or _Content()
    kind = _KINDS.get(found.msgtype)
    files = [(AttachmentKind.IMAGE, piece.download_code) for piece in content.rich_text or ()]
    if kind is not None and not content.recognition:
        files.append((kind, content.download_code))
    return tuple(InboundAttachment(kind, str(File(robot, code)), content.file_name) for kind, code in files if code)

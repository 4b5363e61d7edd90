"""The data of a callback -> a message of ours. Pure."""

from __future__ import annotations

import json
import re
from itertools import dropwhile
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
    content: str | None = None
    is_reply_msg: bool | None = None


class _Piece(msgspec.Struct, rename="camel"):
    text: str | None = None
    download_code: str | None = None


class _Content(msgspec.Struct, rename="camel"):
    """Of any kind but text; each uses some of the fields."""

    download_code: str | None = None
    file_name: str | None = None
    recognition: str | None = None
    rich_text: list[_Piece] | None = None


class _At(msgspec.Struct, rename="camel"):
    dingtalk_id: str | None = None


class _Message(msgspec.Struct, rename="camel"):
    """The part of a callback that we read."""

    msg_id: str = ""
    msgtype: str = ""
    conversation_type: str = ""
    conversation_id: str = ""
    sender_id: str | None = None
    sender_staff_id: str | None = None
    chatbot_user_id: str | None = None
    robot_code: str | None = None
    session_webhook: str | None = None
    session_webhook_expired_time: float | None = None
    is_in_at_list: bool | None = None
    at_users: list[_At] | None = None
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
"""Messages that are one file. What is neither in here nor words is handed on as a file that cannot be fetched."""

_MENTION: Final = re.compile(r"\A@(?:\S+\s*\Z|[^\n]*?\s(?=/))")
"""A name by itself, or before a command; a name may hold spaces."""


def parse(data: object, bot: str, client_id: str) -> InboundMessage | None:
    """Return the message of a person, or None for something else. Raises Malformed.

    ``bot`` is the bot's name here; its ``client_id`` is its code where a message does not say that. A group's messages
    are only delivered when they mention the bot, and without that mention.
    """
    try:  # half a character, which no state and no answer can hold, becomes a question mark
        sound = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        found = msgspec.json.decode(sound, type=_Message, strict=False)
    except msgspec.DecodeError as error:
        raise Malformed(str(error).rpartition(" - at ")[2]) from None
    sender = found.sender_staff_id or found.sender_id
    if not found.msg_id or not found.conversation_id or not sender:
        raise Malformed("no id, no conversation or no sender")
    robot = found.robot_code or client_id
    text, attachments = _text(found), _attachments(found, robot)
    if (found.sender_id and found.sender_id == found.chatbot_user_id) or not (text or attachments):
        return None
    direct = found.conversation_type == _DIRECT
    chat = ChatKey(CHANNEL, bot, found.conversation_id)
    route = Route(
        chat=found.conversation_id,
        robot=robot,
        user=(found.sender_staff_id or "") if direct else None,
        webhook=found.session_webhook,
        until=(found.session_webhook_expired_time or 0) / 1000,
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
        quoted=found.text is not None and bool(found.text.is_reply_msg),
    )


def _text(found: _Message) -> str:
    """Return what the person typed, or said and the platform wrote down."""
    content = found.content or _Content()
    pieces = list(dropwhile(str.isspace, (piece.text for piece in content.rich_text or () if piece.text)))
    if pieces and _begins_with_us(found):
        pieces[0] = _without_mention(pieces[0].lstrip(), before_command="".join(pieces[1:]).lstrip().startswith("/"))
    said = [found.text.content if found.text else None, content.recognition, "".join(pieces)]
    return "\n".join(filter(None, said)).strip()


def _begins_with_us(found: _Message) -> bool:
    """Return whether the bot is the first that a group's message mentions; rich text of some clients still says so."""
    first = found.at_users[0].dingtalk_id if found.at_users else None
    return found.conversation_type != _DIRECT and first is not None and first == found.chatbot_user_id


def _without_mention(piece: str, *, before_command: bool) -> str:
    """Take our name off the first piece, as far as it is clear what belongs to it."""
    return "" if before_command and piece.startswith("@") else _MENTION.sub("", piece, count=1)


def _attachments(found: _Message, robot: str) -> tuple[InboundAttachment, ...]:
    content = found.content or _Content()
    pieces = content.rich_text or ()
    files = [(AttachmentKind.IMAGE, piece.download_code) for piece in pieces if piece.download_code]
    if found.msgtype not in {"text", "richText"} and not (found.text or content.recognition):
        files.append((_KINDS.get(found.msgtype, AttachmentKind.FILE), content.download_code or ""))
    return tuple(InboundAttachment(kind, str(File(robot, code)), content.file_name) for kind, code in files)

"""A message of a linked device -> ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

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
from bridges.text.whatsapp_parse import CHANNEL

_PHONE: Final = "s.whatsapp.net"
_PERSONS: Final = frozenset({_PHONE, "lid"})
_GROUP: Final = "g.us"


class Received(msgspec.Struct, frozen=True):
    """What the linked device tells of a message. People have two addresses, one of them a phone number: ``…_alt``."""

    id: str
    chat: str
    text: str
    chat_alt: str | None = None
    sender: str | None = None
    sender_alt: str | None = None
    own: bool = False
    """From this account: by us, or by its owner on another device."""
    file: AttachmentKind | None = None
    name: str | None = None
    mentions: tuple[str, ...] = ()
    quoted: str | None = None
    """Whose message this one replies to; empty where that is not said."""


def parse(found: Received, bot: str, own_ids: Collection[str], reserved: Collection[str]) -> InboundMessage | None:
    """Return what a person said to ``bot``; None for what is none of its business.

    That is: what we sent under an id that was ``reserved``, what the account's owner says to others, and what comes by
    no chat of people. The owner's notes to themselves are a private chat like any other.
    """
    me = {bare(own) for own in own_ids}
    group = _server(found.chat) == _GROUP
    if not group and _server(found.chat) not in _PERSONS:
        return None
    to_self = bare(found.chat) in me or bare(found.chat_alt or "") in me
    if found.own and (found.id in reserved or not to_self):
        return None
    who = _person(found.sender, found.sender_alt) if group else _person(found.chat, found.chat_alt)
    if not found.id or who is None:
        return None
    chat = ChatKey(CHANNEL, bot, bare(found.chat) if group else who)
    mentioned = any(bare(jid) in me for jid in found.mentions)
    return InboundMessage(
        id=EventId(f"{chat.chat} {found.id}"),  # whoever writes chooses the id
        chat=chat,
        kind=ChatKind.GROUP if group else ChatKind.DIRECT,
        sender=SenderId(who),
        text=_without_mention(found.text, me) if group and mentioned else found.text,
        reply_to=ReplyTarget(chat, found.chat),
        attachments=(InboundAttachment(found.file, "", found.name),) if found.file else (),
        addressed=not group or mentioned or bare(found.quoted or "") in me,
        quoted=found.quoted is not None,
    )


def bare(jid: str) -> str:
    """Return an address without its device: ``1555:7@s.whatsapp.net`` -> ``1555@s.whatsapp.net``."""
    return re.sub(r"[:_][0-9]+(?=@)", "", jid)


def _server(jid: str) -> str:
    return jid.rpartition("@")[2]


def _person(jid: str | None, alternative: str | None) -> str | None:
    """Return the digits of the phone number where one is known, else the address there is."""
    known = [bare(each) for each in (jid, alternative) if each and _server(each) in _PERSONS]
    phones = [each.partition("@")[0] for each in known if _server(each) == _PHONE]
    return next(iter(phones + known), None)


def _without_mention(text: str, me: Collection[str]) -> str:
    names = "|".join(re.escape(jid.partition("@")[0]) for jid in me)
    return re.sub(rf"@(?:{names})(?!\d)", "", text).strip()

"""A Slack payload -> our message, and text both ways. Pure; needs no SDK.

Slack writes ``&``, ``<`` and ``>`` of a person as entities, so whatever stands between angle brackets is its own:
mentions, channels, links.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
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
from commands.recognise import BLANKS, INVISIBLE


@dataclass(frozen=True, slots=True)
class Me:
    """The bot as its workspace knows it; ``bot_id`` marks its messages, ``user_id`` is what people mention."""

    user_id: str
    bot_id: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reply goes: a conversation, in its thread if any; or ``hook``, the address a slash command came with."""

    channel: str
    thread: str | None = None
    hook: str | None = None


class File(msgspec.Struct):
    """A file as a message names it; one that Slack hides from us has no address."""

    mimetype: str | None = None
    name: str | None = None
    size: int | None = None
    url_private: str | None = None


class Shared(msgspec.Struct):
    """What hangs below a message: a preview, or another message that it shares."""

    is_share: bool | None = None


class Edit(msgspec.Struct):
    """Marks a message that was changed; when and by whom does not matter."""


class Event(msgspec.Struct):
    """A ``message`` or ``app_mention``."""

    type: str
    channel: str
    ts: str
    user: str | None = None
    text: str | None = None
    subtype: str | None = None
    channel_type: str | None = None
    bot_id: str | None = None
    thread_ts: str | None = None
    parent_user_id: str | None = None
    files: list[File] | None = None
    attachments: list[Shared] | None = None
    edited: Edit | None = None


class Said(msgspec.Struct):
    """What was said, in a workspace or, with an app of a whole organisation, in none in particular."""

    event: Event
    team_id: str | None = None


class SlashCommand(msgspec.Struct):
    """A registered command that somebody picked. ``trigger_id`` is new each time."""

    command: str
    channel_id: str
    user_id: str
    trigger_id: str
    team_id: str | None = None
    response_url: str | None = None
    channel_name: str | None = None
    text: str | None = None


class _Typed(msgspec.Struct):
    type: str = ""


class _Head(msgspec.Struct):
    command: str = ""
    event: _Typed | None = None


SLACK: Final = "https://slack.com/api/"

SCOPES: Final = (
    "app_mentions:read", "channels:history", "chat:write", "commands", "files:read", "groups:history", "im:history",
    "im:read", "mpim:history",
)  # fmt: skip
"""What the bot token may do. ``im:read`` tells the bot's own chats from other people's, the histories bring replies in
threads."""

_SAID: Final = frozenset({None, "thread_broadcast", "file_share"})
"""Subtypes under which a person says something; edits, deletions, joins and the like have others."""

_BANG: Final = re.compile(rf"([{BLANKS}{INVISIBLE}]*)[!！]([A-Za-z]+)(?![\w:-])")
_OWN: Final = re.compile(
    r"<(?:(?P<sign>[@#!])(?P<id>[^<>|]+)|(?P<address>[a-z][a-z0-9+.-]*:[^<>|]+))(?:\|(?P<label>[^<>]*))?>"
)
"""What Slack writes between angle brackets: ``<@U1>``, ``<#C1|name>``, ``<!here>``, ``<https://…|label>``."""

_KINDS: Final = {"image": AttachmentKind.IMAGE, "video": AttachmentKind.VIDEO, "audio": AttachmentKind.AUDIO}


def read(body: object) -> Said | SlashCommand | None:
    """Return what a payload says; None when it is none of a bot's business, an edit or a deletion for one.

    Raises ValueError when Slack sends what it never should.
    """
    head = msgspec.convert(body, _Head)
    if head.command:
        return msgspec.convert(body, SlashCommand)
    if head.event is None or head.event.type not in {"message", "app_mention"}:
        return None
    said = msgspec.convert(body, Said)
    return said if said.event.subtype in _SAID and said.event.edited is None else None


def parse_event(said: Said, me: Me, bot: str, commands: Collection[str]) -> InboundMessage | None:
    """Return what a person said to ``bot``; None for what a program said, the bot itself included.

    A mention arrives as ``message`` and as ``app_mention``; both get the same id.
    """
    event = said.event
    if event.bot_id or not event.user or event.user == me.user_id:
        return None
    direct = event.channel_type == "im"
    mentioned, text = _without_mention(event.text or "", me)
    mentioned = mentioned or event.type == "app_mention"
    thread = event.thread_ts or (None if direct else event.ts)
    route = f"{event.channel}/{thread}" if thread else event.channel
    # The threads of a private chat are one chat: there is one person, and one conversation with them.
    chat = ChatKey("slack", bot, event.channel if direct else route)
    return InboundMessage(
        id=EventId(f"{said.team_id or ''}:{event.channel}:{event.ts}"),
        chat=chat,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(event.user),
        text=with_slash(readable(text), commands),
        reply_to=ReplyTarget(chat, route),
        attachments=tuple(map(_attachment, event.files or ())),
        addressed=direct or mentioned or event.parent_user_id == me.user_id,
        quoted=any(shared.is_share for shared in event.attachments or ()),
    )


def parse_command(command: SlashCommand, bot: str, *, direct: bool) -> InboundMessage:
    """Return a picked command as if it had been typed; ``direct`` when its conversation is the bot's with one person.

    Elsewhere the bot may not be a member, so the reply goes to the command's own address, for its sender's eyes only;
    into the conversation only if there is no address.
    """
    chat = ChatKey("slack", bot, command.channel_id)
    hook = None if direct else command.response_url
    route = f"{command.channel_id}/{hook}" if hook else command.channel_id
    return InboundMessage(
        id=EventId(f"{command.team_id or ''}:command:{command.trigger_id}"),
        chat=chat,
        kind=ChatKind.DIRECT if direct else ChatKind.GROUP,
        sender=SenderId(command.user_id),
        text=f"{command.command} {readable(command.text or '')}".rstrip(),
        reply_to=ReplyTarget(chat, route),
    )


def place_of(target: ReplyTarget) -> Place:
    """Read a route."""
    channel, _, rest = target.route.partition("/")
    return Place(channel, hook=rest) if "://" in rest else Place(channel, rest or None)


def readable(text: str) -> str:
    """Return text as the person sees it: mentions, channels and links by their names, entities as characters."""
    text = _OWN.sub(_named, text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escaped(text: str) -> str:
    """Return text that Slack shows as it is: nothing in it mentions anybody or becomes a link by its own marks."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def with_slash(text: str, commands: Collection[str]) -> str:
    """Write ``!name`` as ``/name`` when it is one of our ``commands``, in lower case.

    Slack keeps a message that begins with a slash to itself, so people write a mark in its place.
    """
    match = _BANG.match(text)
    if match is None or match[2].lower() not in commands:
        return text
    return f"{match[1]}/{text[match.start(2) :]}"


def _without_mention(text: str, me: Me) -> tuple[bool, str]:
    """Return whether the bot is mentioned, and the text without it."""
    without, count = re.subn(rf"<@{re.escape(me.user_id)}(?:\|[^<>]*)?>", " ", text)
    return count > 0, without.strip() if count else text


def _named(match: re.Match[str]) -> str:
    """Return how the person saw it."""
    label, address = match["label"], match["address"]
    match match["sign"]:
        case "@" | "#" as sign:
            return f"{sign}{label or match['id']}"
        case "!":
            return label or f"@{match['id'].rpartition('^')[2]}"
    if not label or address.endswith((label, f"{label}/")):
        return label or address
    return f"{label} ({address})"


def _attachment(file: File) -> InboundAttachment:
    kind = _KINDS.get((file.mimetype or "").partition("/")[0], AttachmentKind.FILE)
    return InboundAttachment(kind, file.url_private or "", file.name, file.size)

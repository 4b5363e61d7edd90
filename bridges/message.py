"""The vocabulary between channels and the rest: messages in, text out, and what may come of a send.

A channel's module imports this module and its SDK, nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Protocol, runtime_checkable

from commands.model import AttachmentKind, ChatKey, ChatKind, MenuEntry, SenderId
from harness_client.clock import Clock

EventId = NewType("EventId", str)
"""What the platform repeats when it delivers the same message again."""

SentId = NewType("SentId", str)
"""A message of ours as the platform names it; needed to edit it and to know our own echo."""


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """Where a reply goes. ``route`` is opaque to all but the channel that made it, and survives a restart."""

    chat: ChatKey
    route: str


@dataclass(frozen=True, slots=True)
class InboundAttachment:
    """A file a person sent. ``handle`` is the channel's own way to fetch it; nothing is fetched before it is due."""

    kind: AttachmentKind
    handle: str
    name: str | None = None
    size: int | None = None
    """Bytes, as the platform claims."""


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One message of a person, free of platform shapes.

    ``text`` is what the person typed, the bot's own mention removed. ``addressed`` is True in a direct chat, and in
    a group only when the bot was mentioned or replied to. ``quoted`` says that the message quotes another one.
    """

    id: EventId
    chat: ChatKey
    kind: ChatKind
    sender: SenderId
    text: str
    reply_to: ReplyTarget
    attachments: tuple[InboundAttachment, ...] = ()
    addressed: bool = True
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """The platform has it."""

    id: SentId | None


@dataclass(frozen=True, slots=True)
class Kept:
    """Not sent yet: the channel wrote it down and sends it when the person writes again, for only then it may."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Not sent; the platform asks to wait this many seconds."""

    seconds: float


class NotSent(StrEnum):
    """The other ends of a send. Only REAUTHENTICATE may be tried again at once, and only one time."""

    REAUTHENTICATE = "reauthenticate"
    WINDOW_CLOSED = "window-closed"
    BLOCKED = "blocked"
    TOO_LONG = "too-long"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    """It may or may not have arrived; never repeated blindly."""


SendOutcome = Sent | Kept | RetryAfter | NotSent


class Acceptance(StrEnum):
    """What became of an inbound message, known once it is durable: now the platform may be told to forget it."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    DENIED = "denied"
    IGNORED = "ignored"


class Inbox(Protocol):
    """Where a channel puts what it receives."""

    async def accept(self, message: InboundMessage) -> Acceptance:
        """Check access and claim the id durably, then return; the work goes on by itself.

        Raises OSError when the claim cannot be written: do not acknowledge, the platform will deliver again.
        """

    def connected(self) -> None:
        """Say that the link is up and messages will flow."""


class Cursors(Protocol):
    """Small values that a channel keeps for one bot across restarts: a poll cursor, a sync buffer, a peer's token."""

    async def load(self, key: str) -> bytes | None:
        """Read a value."""

    async def save(self, key: str, value: bytes) -> None:
        """Write a value of at most 64 KiB, durably; of more than 1,024 keys those written longest ago go first.

        Raises ValueError when it is larger, OSError when it cannot be written.
        """


class Stop(StrEnum):
    """Why a channel will not come back by itself."""

    NEEDS_LOGIN = "needs-login"
    REPLACED = "replaced"
    MISCONFIGURED = "misconfigured"
    NOT_INSTALLED = "not-installed"
    """The platform's SDK: an extra of the package brings it."""


class ChannelStopped(Exception):
    """Reconnecting would be of no use until a person acts. ``args[0]`` says what to do, without secrets."""

    def __init__(self, why: Stop, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True, slots=True)
class Limits:
    """What one message of the platform holds and how often one may be sent.

    ``text`` in ``unit``; ``gap`` is the least time in seconds between two sends to one chat. ``joins``: so few messages
    may be sent that a command's reply goes out in as few as hold it, whatever its segments.
    """

    text: int
    unit: str = "utf-16"
    gap: float = 0.0
    joins: bool = False


class Channel(Protocol):
    """One bot's link to its platform. Three methods; everything else is a capability below."""

    limits: Limits

    async def run(self, inbox: Inbox) -> None:
        """Connect, call ``inbox.connected()``, and deliver messages until cancelled.

        Returns or raises when the link is lost (it is run again after a back-off); raises ChannelStopped when it
        should not be. Platform acknowledgements go out only after ``inbox.accept`` returned.
        """

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """Send one message as plain text: no parse mode, no link preview, mentions disarmed.

        Works from the first ``inbox.connected()`` until ``close``, also while ``run`` is not running.
        """

    async def close(self) -> None:
        """Free what the channel holds; may be called at any time, more than once."""


@runtime_checkable
class SendsReplies(Protocol):
    """A channel without limits that shows a reply as one thing, such as one line of JSON."""

    async def send_reply(self, target: ReplyTarget, segments: tuple[str, ...]) -> SendOutcome:
        """Send all segments of one reply, in the place of :meth:`Channel.send` for each."""


@runtime_checkable
class RationsReplies(Protocol):
    """A channel whose platform counts the replies to a message: one of them always stays for the answer itself."""

    async def replies_left(self, target: ReplyTarget) -> int:
        """Return how many messages would be sent now rather than kept. Raises OSError."""

    async def send_aside(self, target: ReplyTarget, text: str) -> SendOutcome:
        """Send what is said on the way to an answer, such as a question.

        As :meth:`Channel.send`, but WINDOW_CLOSED where only the answer's own reply is left; never Kept, for nobody
        could reply to what they have not seen.
        """


@runtime_checkable
class EditsMessages(Protocol):
    """A channel that can replace the text of a message it sent: answers stream by edits, at most one per ``pace``."""

    pace: float
    """Seconds between two edits of one message."""

    async def edit(self, target: ReplyTarget, message: SentId, text: str) -> SendOutcome:
        """Replace the text of our message."""


@runtime_checkable
class StreamsAnswers(Protocol):
    """A channel with a live carrier of its own: a card, a stream reply, lines in a terminal."""

    async def begin(self, target: ReplyTarget) -> AnswerStream | None:
        """Open a carrier for one answer; None where this chat has none: it streams by edits, or not at all."""


class AnswerStream(Protocol):
    """One live answer. Exactly one ``finish`` ends it, on every path."""

    async def update(self, text: str) -> None:
        """Show ``text``, the whole answer so far, or as much of it as there is room for.

        May drop intermediate states, never raises.
        """

    async def finish(self, text: str) -> SendOutcome:
        """Show the final text, or the first message of one that needs several, and close.

        Sent: it stands there. UNKNOWN: it may stand there, and is not repeated. Anything else: the caller must send the
        whole text as messages.
        """


@runtime_checkable
class ShowsTyping(Protocol):
    """A channel that can show that the bot is at work."""

    typing_seconds: float
    """How long one call lasts."""

    async def typing(self, target: ReplyTarget) -> None:
        """Show it once; best effort, never raises."""


@runtime_checkable
class FetchesAttachments(Protocol):
    """A channel that can download what a person sent."""

    async def fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        """Fetch at most ``limit`` bytes from the platform's own hosts over HTTPS. Raises OSError otherwise."""


Menu = tuple[MenuEntry, ...]
"""Commands as a platform lists them."""


@runtime_checkable
class PublishesCommands(Protocol):
    """A channel with a command menu."""

    async def publish(self, commands: Mapping[str, Menu]) -> None:
        """Publish a menu per language code, the first one also for people of any other language.

        Best effort, never raises: a bot without its menu still works.
        """


class Sign(StrEnum):
    """What a look at the platform's side may show. ``Noticed.detail`` is what the last half of each line says."""

    ACCEPTED = "accepted"
    """The credentials are good; whose they are."""
    BAD_CREDENTIAL = "bad-credential"
    """The platform refuses it; its key in the configuration."""
    NO_LOGIN = "no-login"
    """Nobody has logged in yet; the command that does."""
    LOGIN_STORED = "login-stored"
    """A login is there, and was not tried: that would take messages from the running bot; whose it is."""
    WOULD_REPLACE = "would-replace"
    """Not looked at: logging in would push out the running bot."""
    NO_SCOPES = "no-scopes"
    """The app lacks them; their names."""
    SCOPES_UNSEEN = "scopes-unseen"
    """The app lacks them unless it has wider ones; their names."""
    NO_INTENT = "no-intent"
    """The bot may not read what people write."""
    NO_BOT = "no-bot"
    """The app has no bot."""
    NOT_ACTIVE = "not-active"
    """The app is not switched on in its organisation; the platform's number for its state."""
    NOT_SUBSCRIBED = "not-subscribed"
    """The platform sends this app nothing."""
    RESTRICTED = "restricted"
    """The platform has restricted the account, and nothing can be sent."""
    NOT_TOLD = "not-told"
    """These credentials may not ask whether the app is subscribed."""
    WEBHOOK_SET = "webhook-set"
    """Messages go to a webhook, whose place the bot takes when it starts."""
    READS_ALL = "reads-all"
    """The bot gets everything people write in groups."""
    NO_GROUPS = "no-groups"
    """The bot cannot be added to groups."""
    FEW_SESSIONS = "few-sessions"
    """Hardly any connections are left for now; how many of how many."""
    NO_SESSIONS = "no-sessions"
    """No connection is left for now; the minutes until there are new ones."""
    NO_PROGRAM = "no-program"
    """A program it needs is not installed; its name."""
    NOT_INSTALLED = "not-installed"
    """The SDK is not installed; the extra that brings it."""
    UNREACHED = "unreached"
    """No connection; the kind of failure."""
    SILENT = "silent"
    """No answer in time."""
    UNREADABLE = "unreadable"
    """An answer that is none; the kind of failure."""
    BUSY = "busy"
    """The platform cannot say at present; its status or code."""
    REFUSED = "refused"
    """Refused for another reason; the platform's code."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """One thing a look showed. ``detail`` is for people to read and holds no secret."""

    sign: Sign
    detail: str = ""


@runtime_checkable
class ChecksPlatform(Protocol):
    """A channel that can look at its platform's side: are the credentials good, and what is missing there."""

    async def check(self, *, log_in: bool) -> tuple[Noticed, ...]:
        """Look, without ``run``, and change nothing.

        ``log_in`` allows what would end the connection of another program with the same credentials. Raises
        ModuleNotFoundError without the SDK; the caller sets the deadline.
        """


__all__ = [
    "Acceptance",
    "AnswerStream",
    "AttachmentKind",
    "Channel",
    "ChannelStopped",
    "ChatKey",
    "ChatKind",
    "ChecksPlatform",
    "Clock",
    "Cursors",
    "EditsMessages",
    "EventId",
    "FetchesAttachments",
    "InboundAttachment",
    "InboundMessage",
    "Inbox",
    "Limits",
    "Menu",
    "MenuEntry",
    "NotSent",
    "Noticed",
    "PublishesCommands",
    "ReplyTarget",
    "RetryAfter",
    "SendOutcome",
    "SenderId",
    "SendsReplies",
    "Sent",
    "SentId",
    "ShowsTyping",
    "Sign",
    "Stop",
    "StreamsAnswers",
]

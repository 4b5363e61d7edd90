"""The vocabulary of commands, and the few things a command is handed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NewType, Protocol

from harness_client.client import HarnessClient
from harness_client.clock import Clock
from harness_client.types import SessionId
from i18n import Key, Language, Words

if TYPE_CHECKING:
    from commands.batch import Batches
    from commands.pbot import Past

SenderId = NewType("SenderId", str)
"""A person as the platform names them; compared exactly, never parsed."""


class ChatKind(StrEnum):
    """DIRECT only for a true one-to-one chat; whatever is not known to be one is GROUP."""

    DIRECT = "direct"
    GROUP = "group"


class AttachmentKind(StrEnum):
    """What a message carries beside text."""

    IMAGE = "image"
    FILE = "file"
    VIDEO = "video"
    AUDIO = "audio"
    STICKER = "sticker"


@dataclass(frozen=True, slots=True)
class ChatKey:
    """One chat of one bot; the unit of binding, order and delivery. ``chat`` is the platform's own id."""

    channel: str
    bot: str
    chat: str

    def __str__(self) -> str:
        return f"{self.channel}/{self.bot}/{self.chat}"


@dataclass(frozen=True, slots=True)
class Binding:
    """Which session a chat talks to, with every counter that a stale reader must notice (spec HISTORY 5).

    ``version`` moves with every set, clear, ``/new``, ``/session`` and workspace switch of the chat; ``generation``
    with every workspace switch of the bot; ``incarnation`` when a bot of that name is added anew. Two bindings are
    the same state only when they are equal: A→B→A differs in ``version``.
    """

    session: SessionId | None
    version: int
    generation: int
    incarnation: int


class StaleBinding(Exception):
    """The binding moved since it was read; nothing was written."""


class Bindings(Protocol):
    """The durable map from chats to sessions. Every method is one transaction."""

    async def get(self, chat: ChatKey) -> Binding:
        """Read the binding; an unknown chat reads as unbound, and nothing is created."""

    async def bind(self, chat: ChatKey, session: SessionId, *, expected: Binding) -> Binding:
        """Bind, if the state still equals ``expected``; otherwise raise StaleBinding."""

    async def unbind(self, chat: ChatKey) -> Binding:
        """Clear the binding; also moves the version of an unbound chat."""


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """One recognised command. ``argument`` is what followed the name, blanks trimmed."""

    chat: ChatKey
    kind: ChatKind
    sender: SenderId
    argument: str
    attachments: frozenset[AttachmentKind] = frozenset()
    quoted: bool = False


class Outcome(StrEnum):
    """How a command ended, for metrics and exit codes. Only FAILED means that host or program failed."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What to say, already cut into segments of at most 1,800 UTF-16 units (:mod:`commands.budget`)."""

    segments: tuple[str, ...]
    outcome: Outcome = Outcome.OK
    reference: str | None = None
    """The id that links a FAILED reply to the log line with its cause."""


class References(Protocol):
    """Mints reference ids and writes the cause behind them to the log."""

    def record(self, error: BaseException, *, actor: SenderId, session: SessionId | None) -> str:
        """Log the cause (never message content or tokens); return a short id such as ``H-7K2M9Q``."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """What a chat is waiting for. ``age`` in seconds since its message was taken up; ``queued`` messages wait."""

    session: SessionId | None
    age: float
    queued: int
    asked: bool = False
    """Whether it waits for a person's answer or approval."""
    starting: bool = False
    """Whether its prompt is still to go out: the session may be just being made."""


class SteerOutcome(StrEnum):
    """What ``/steer`` found to steer."""

    IDLE = "idle"
    ASKED = "asked"
    """The turn waits for a person: that has to be answered first."""
    TAKEN = "taken"


class StopOutcome(StrEnum):
    """What ``/stop`` found to stop. Both ends of STOPPED and WITHDRAWN leave the chat's later messages queued."""

    IDLE = "idle"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"
    """The prompt had not begun on the host; it was taken back and nobody else's turn was touched."""
    NOT_BEGUN = "not-begun"
    """The prompt waits behind a turn that this chat did not start, and the host cannot take it back."""


class Turns(Protocol):
    """The turns that chats of this bot started themselves; nobody else's are touched through it."""

    def current(self, chat: ChatKey) -> ChatTurn | None:
        """Return what the chat waits for, or None when it is idle."""

    async def stop(self, chat: ChatKey) -> StopOutcome:
        """Stop the turn this chat started; raises HarnessError."""

    async def steer(self, chat: ChatKey, text: str) -> SteerOutcome:
        """Add an instruction to the turn this chat started; raises HarnessError."""


class Listing(StrEnum):
    """The numbered lists a person may choose from, each by the command that shows it."""

    SESSIONS = "/sessions"
    WORKSPACES = "/workspaces"
    MODELS = "/models"
    REASONINGS = "/reasonings"
    PRESETS = "/presets"


@dataclass(frozen=True, slots=True)
class ShownList:
    """What a chat saw, in its order. ``scope`` is what the list was limited to, such as a folder."""

    items: tuple[str, ...] = ()
    scope: str | None = None


class ShownLists:
    """The numbered lists each chat saw last, so that a number means what the person saw.

    The ``limit`` lists shown last are kept, in memory; a number after a restart asks for the list again.
    """

    def __init__(self, limit: int = 2_000) -> None:
        self._limit = limit
        self._lists: OrderedDict[tuple[ChatKey, Listing], ShownList] = OrderedDict()

    def remember(self, chat: ChatKey, listing: Listing, items: Iterable[str], *, scope: str | None = None) -> None:
        """Keep the list just shown in ``chat``."""
        self._lists[chat, listing] = ShownList(tuple(items), scope)
        self._lists.move_to_end((chat, listing))
        while len(self._lists) > self._limit:
            self._lists.popitem(last=False)

    def recall(self, chat: ChatKey, listing: Listing) -> ShownList:
        """Return the list last shown in ``chat``; empty when there is none."""
        return self._lists.get((chat, listing), ShownList())


@dataclass(frozen=True, slots=True)
class Place:
    """Where new sessions of a chat work: its own ``pin``, else the ``default`` of its bot. Folders of the host."""

    pin: str | None
    default: str

    @property
    def folder(self) -> str:
        """Return the folder that counts."""
        return self.pin or self.default


class Preferences(Protocol):
    """What a chat chose for itself or for its bot. Every method is one transaction."""

    async def place(self, chat: ChatKey) -> Place:
        """Return where new sessions of the chat work."""

    async def switch(self, chat: ChatKey, folder: str) -> None:
        """Choose the default of the chat's bot: all chats of the bot lose their sessions, this one its pin."""

    async def pin(self, chat: ChatKey, folder: str | None) -> None:
        """Pin the chat to a folder of its own, or unpin it; either way it loses its session."""

    async def preset(self, chat: ChatKey) -> str | None:
        """Return the agent preset of the chat's new sessions; None leaves it to the host."""

    async def choose_preset(self, chat: ChatKey, preset: str | None) -> None:
        """Choose it; the session the chat talks to keeps its own."""

    async def choose_language(self, chat: ChatKey, language: Language) -> None:
        """Choose the language the bot speaks in this chat."""


class Admissions(Protocol):
    """Strangers who asked to be let in by the bot."""

    async def approve(self, code: str) -> SenderId | None:
        """Admit whoever holds ``code``; None when nobody does, or no longer."""


class NoTurns:
    """The turns of a program that only reads."""

    def current(self, chat: ChatKey) -> ChatTurn | None:
        """See :meth:`Turns.current`."""
        return None

    async def stop(self, chat: ChatKey) -> StopOutcome:
        """See :meth:`Turns.stop`."""
        return StopOutcome.IDLE

    async def steer(self, chat: ChatKey, text: str) -> SteerOutcome:
        """See :meth:`Turns.steer`."""
        return SteerOutcome.IDLE


@dataclass(frozen=True, slots=True)
class Services:
    """All that a command may touch."""

    bindings: Bindings
    harness: HarnessClient
    words: Words
    clock: Clock
    references: References
    preferences: Preferences
    admissions: Admissions
    version: str
    """Of this program."""
    batches: Batches
    turns: Turns = field(default_factory=NoTurns)
    shown: ShownLists = field(default_factory=ShownLists)
    past: Past | None = None
    """The archive of the chat's workspace; None where there is none to search."""


Handler = Callable[[CommandRequest, Services], Awaitable[CommandResult]]


class Gate(StrEnum):
    """Who may run a command, and where."""

    ANYWHERE = "anywhere"
    PRIVATE = "private"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One command in a platform's menu; ``parameter`` is what a person may add, as :class:`Command` says."""

    name: str
    summary: str
    parameter: str | None = None


def anything(_: str) -> bool:
    """Accept every argument: the handler itself says what is wrong with one."""
    return True


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the command table; ``/help``, platform menus and the README table derive from it.

    ``parameter`` is what ``/help`` shows behind the name. ``accepts`` says whether an argument makes sense at all;
    where it does not, the person reads ``usage`` and the handler never runs.
    """

    name: str
    usage: Key
    summary: Key
    run: Handler
    parameter: Key | None = None
    accepts: Callable[[str], bool] = anything
    aliases: tuple[str, ...] = ()
    gate: Gate = Gate.ANYWHERE
    private_notice: Key = Key.CHAT_PRIVATE_ONLY
    text_only: bool = True
    during_batch: bool = False
    tags: frozenset[str] = frozenset()


__all__ = [
    "Admissions",
    "AttachmentKind",
    "Binding",
    "Bindings",
    "ChatKey",
    "ChatKind",
    "ChatTurn",
    "Command",
    "CommandRequest",
    "CommandResult",
    "Gate",
    "Handler",
    "Language",
    "Listing",
    "MenuEntry",
    "NoTurns",
    "Outcome",
    "Place",
    "Preferences",
    "References",
    "SenderId",
    "Services",
    "ShownList",
    "ShownLists",
    "StaleBinding",
    "SteerOutcome",
    "StopOutcome",
    "Turns",
]

"""What outlives the process: data, small Protocols, and the errors of keeping it.

Every method is one transaction and returns once its write is durable. All of them raise :class:`StateError`, an
``OSError``, when the write could not be made: then nothing of it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Protocol

from bridges.message import Cursors, EventId, ReplyTarget, SentId, Stop
from commands.model import Binding, Bindings, ChatKey, SenderId
from harness_client.types import RequestId, SessionId
from i18n import Language


@dataclass(frozen=True, slots=True)
class BotKey:
    """One configured bot."""

    channel: str
    name: str

    @classmethod
    def of(cls, chat: ChatKey) -> BotKey:
        """Return the bot that ``chat`` belongs to."""
        return cls(chat.channel, chat.bot)

    def __str__(self) -> str:
        return f"{self.channel}/{self.name}"


class Link(StrEnum):
    """What a bot's link is doing."""

    CONNECTING = "connecting"
    UP = "up"
    WAITING = "waiting"
    STOPPED = "stopped"
    """Until a person acts: see ``Health.why`` and ``Health.error``."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Health:
    """A snapshot for the ready line, ``bots`` and metrics. Times in seconds since the epoch; no secrets."""

    bot: BotKey
    link: Link
    since: float
    last_event: float | None = None
    error: str | None = None
    """The last failure, also of a link that is up again."""
    why: Stop | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """How a bot was at a time, in seconds since the epoch, and which process ran it."""

    health: Health
    at: float
    pid: int


class Healths(Protocol):
    """How the bots are, for the operator's program beside the one that runs them."""

    async def note(self, healths: Iterable[Health]) -> None:
        """Write down how bots are now, each in place of what was noted before."""

    async def noted(self) -> tuple[Noted, ...]:
        """Read the last note of each bot."""


class Phase(IntEnum):
    """How far a prompt came; only ever grows. Beside each: what a restart may conclude."""

    CLAIMED = 1
    """The host knows nothing of it: say that it was not run, ask to send it again."""
    CREATING = 2
    """As CLAIMED, and ``session`` may exist: creating it again with the same id and ``cwd`` gives it back; bind it
    if the chat is still unbound."""
    PROMPTING = 3
    """``request`` may or may not have arrived: look for it in the session's log, never send it again."""
    RUNNING = 4
    """The host has it: wait for the end of the turn, then deliver."""
    DELIVERING = 5
    """The first segment may have gone out: never deliver again, point to ``/history``."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt from its claim until its answer is delivered. Holds no message content.

    ``session``, ``cwd`` and ``request`` are set from the phase on that needs them. ``binding`` is the chat's binding
    the answer belongs to: a late answer is dropped when the binding moved. ``carrier`` is an open placeholder or card
    that a restart has to close.
    """

    event: EventId
    reply_to: ReplyTarget
    sender: SenderId
    began: float
    """Seconds since the epoch."""
    phase: Phase = Phase.CLAIMED
    session: SessionId | None = None
    cwd: str | None = None
    request: RequestId | None = None
    binding: Binding | None = None
    carrier: SentId | None = None

    @property
    def chat(self) -> ChatKey:
        """Return the chat that asked."""
        return self.reply_to.chat


class Claims(Protocol):
    """Message ids that were taken on, so that a second delivery runs nothing."""

    async def claim(self, bot: BotKey, event: EventId, *, turn: Turn | None = None) -> bool:
        """Take ``event`` on: True when it is ours, False when somebody was first.

        ``turn`` is noted as outstanding in the same transaction, so that no crash loses a prompt in silence.
        Claims are kept for at least 8 hours.
        """


class Turns(Protocol):
    """Prompts that are not over."""

    async def save(self, turn: Turn) -> None:
        """Write the new form of an outstanding turn, found by bot and event; one that was ended stays ended.

        Raises ValueError when the phase would go back.
        """

    async def end(self, turn: Turn) -> None:
        """Forget the turn; again is no error."""

    async def outstanding(self, bot: BotKey) -> tuple[Turn, ...]:
        """Read the turns of a bot, oldest first."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a chat chose for itself; None follows the configuration."""

    language: Language | None = None
    workspace: str | None = None
    preset: str | None = None
    """The agent preset of the chat's coming sessions."""


class Chats(Bindings, Protocol):
    """Bindings, and the choices that move them (spec HISTORY 5)."""

    async def settings(self, chat: ChatKey) -> Settings:
        """Read the choices of a chat; nothing is created."""

    async def bound(self) -> tuple[tuple[ChatKey, SessionId], ...]:
        """Read all chats of all bots that have a session, in the order of their keys."""

    async def set_language(self, chat: ChatKey, language: Language | None) -> None:
        """Choose the language of a chat."""

    async def set_preset(self, chat: ChatKey, preset: str | None) -> None:
        """Choose the agent preset of the chat's coming sessions, or leave it to the host."""

    async def pin_workspace(self, chat: ChatKey, path: str | None) -> Binding:
        """Pin the chat to a workspace, or unpin it; clears its binding."""


class Bots(Protocol):
    """What is kept per bot."""

    async def workspace(self, bot: BotKey) -> str | None:
        """Read the workspace chosen in chat; None follows the configuration."""

    async def switch_workspace(self, bot: BotKey, path: str, *, unpin: ChatKey | None = None) -> None:
        """Choose the bot's workspace: clears the bindings of all its chats and moves its generation.

        ``unpin`` is a chat of the bot that gives its pin up, to work there too.
        """

    async def settle(self, present: Iterable[BotKey]) -> None:
        """Say which bots are configured now: the others lose everything kept for them, claims excepted.

        A bot that comes back later has a new incarnation.
        """


@dataclass(frozen=True, slots=True)
class Pairing:
    """A stranger who asked to be let in. ``expires`` in seconds since the epoch."""

    bot: BotKey
    sender: SenderId
    code: str
    expires: float


class Pairings(Protocol):
    """People admitted by code, and those who wait."""

    async def ask(self, bot: BotKey, sender: SenderId) -> str | None:
        """Return a new code for a stranger, or None: asked within ten minutes, or too many wait already."""

    async def approve(self, code: str, *, bot: BotKey | None = None) -> Pairing | None:
        """Admit whoever holds ``code`` (case does not matter); None when it is unknown, expired or another bot's."""

    async def admitted(self, bot: BotKey, sender: SenderId) -> bool:
        """Whether the sender was let in."""

    async def dismiss(self, bot: BotKey, sender: SenderId) -> bool:
        """Take an admission or a pending code back; False when there was none."""

    async def waiting(self) -> tuple[Pairing, ...]:
        """Read the codes that can still be approved, oldest first."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything kept, by concern. ``set_aside`` is where an unreadable file was put: tell the person."""

    chats: Chats
    bots: Bots
    claims: Claims
    turns: Turns
    pairings: Pairings
    healths: Healths
    cursors: Callable[[BotKey], Cursors]
    set_aside: Path | None = None


class Trouble(StrEnum):
    """Why the state could not be read or written."""

    LOCKED = "locked"
    NEWER = "newer"
    FOREIGN = "foreign"
    FULL = "full"
    READ_ONLY = "read-only"
    BUSY = "busy"
    BROKEN = "broken"
    FAILED = "failed"


class StateError(OSError):
    """The state could not be read or written; nothing was half-written. ``str()`` is safe to log."""

    def __init__(self, trouble: Trouble, path: Path, detail: str = "") -> None:
        super().__init__(f"state file {path}: {trouble}" + (f" ({detail})" if detail else ""))
        self.trouble = trouble
        self.path = path
        self.detail = detail

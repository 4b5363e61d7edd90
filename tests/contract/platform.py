"""What the acceptance table asks of a row: a simulated platform with the product's real channel beside it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from enum import StrEnum, auto
from typing import Protocol

from bridges.channels import Surroundings
from bridges.message import Channel
from bridges.state import BotKey
from commands.model import AttachmentKind, ChatKind, SenderId


class Trait(StrEnum):
    """What a platform may lack by its nature; a case that needs it is then not in the channel's row."""

    GROUPS = auto()
    STRANGERS = auto()
    """Anybody may write to the bot."""
    ATTACHMENTS = auto()
    REDELIVERY = auto()
    """An event may be delivered twice, under the same id."""
    ECHO = auto()
    """The bot's own messages may be delivered back to it."""
    REFUSALS = auto()
    """The platform may refuse a message of the bot."""
    STREAMING = auto()
    """An answer is seen while it grows."""
    SEGMENTS = auto()
    """A command's reply of several segments is several messages."""
    PAGES = auto()
    """A long answer is several messages."""
    ENDLESS = auto()
    """As many messages as it takes may follow one message of a person."""


class Trouble(StrEnum):
    """What may go wrong on a platform's side: with the link at once, with the bot's next message when it is sent."""

    CLOSE = auto()
    """The link is ended in good order; a poll is answered by a proxy."""
    RESET = auto()
    """The link is cut."""
    SILENCE = auto()
    """The link stands, and nothing comes from the other side."""
    BUSY = auto()
    """The next message is refused: later."""
    LOST = auto()
    """The next message is taken, and the answer lost."""
    BROKEN = auto()
    """The next message meets a fault of the platform; whether it was taken is not said (it was not)."""
    EXPIRED = auto()
    """What the platform gave us for a time is over."""
    NONSENSE = auto()
    """Something arrives that cannot be understood."""


class Platform(Protocol):
    """One simulated platform with two people and two chats: a direct one with each of them, and one group.

    ``says``, ``again`` and ``echo`` return once the channel is through with the event: it acknowledged it, or would
    not hear it again. They are called while the channel runs, after it said ``connected``.
    """

    bot: BotKey
    member: SenderId
    stranger: SenderId

    def channel(self, around: Surroundings) -> Channel:
        """Return the product's channel as :func:`bridges.channels.build` makes it, pointed at this platform."""

    async def says(
        self,
        text: str,
        *,
        sender: SenderId | None = None,
        chat: ChatKind = ChatKind.DIRECT,
        addressed: bool = True,
        attachment: AttachmentKind | None = None,
        id: str | None = None,  # noqa: A002 - the natural word
    ) -> None:
        """Let a person, ``member`` unless said otherwise, send a message; in a group it mentions the bot if addressed.

        ``id`` names the event for :meth:`again`.
        """

    async def again(self, id: str) -> None:  # noqa: A002 - the natural word
        """Deliver the event ``id`` once more."""

    async def echo(self) -> None:
        """Deliver the bot's newest message back to it."""

    def heard(self, chat: ChatKind = ChatKind.DIRECT, sender: SenderId | None = None) -> list[str]:
        """Return the bot's messages in a chat, oldest first, each as it reads now; previews of one are left out."""

    def glimpsed(self) -> list[str]:
        """Return every text anybody saw of the bot in the member's direct chat, previews and edits included."""

    def refuse(self, nth: int) -> None:
        """Refuse, for good, the ``nth`` message the bot sends from now on, counted from 1."""


class Simulated(Platform, Protocol):
    """A platform that breaks when it is told to, and tells its secrets."""

    async def meets(self, trouble: Trouble, note: str) -> bool:
        """Let it go wrong; False where this platform cannot. What it says in that case quotes ``note``."""

    def heals(self) -> None:
        """Let everything go well again."""

    def secrets(self) -> set[str]:
        """Return every secret there is by now: configured, or handed out by the platform."""

    def forget(self) -> None:
        """Forget what was said and done so far, that a long run does not grow by it."""


class Row(Protocol):
    """What a module in :mod:`tests.contract.rows` offers."""

    LACKS: frozenset[Trait]
    """Only what the platform itself does not have: cases that need it are not in this row."""

    def platform(self) -> AbstractAsyncContextManager[Simulated]:
        """Open the platform; on leaving it nothing is left running."""

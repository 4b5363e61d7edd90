"""One configured bot at work: the parts its conversations share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bridges.archives import Archives
from bridges.idle import UNWATCHED, Activity
from bridges.message import Channel, ReplyTarget
from bridges.observer import UNOBSERVED, Observer
from bridges.state import BotKey, State
from commands.model import ChatKey, Place, References, SenderId
from harness_client.client import HarnessClient
from harness_client.clock import Clock
from i18n import Key, Language, Words

T = TypeVar("T")


class Replies(Protocol):
    """The ordered way back into a chat."""

    async def reply(self, target: ReplyTarget, segments: tuple[str, ...], *, aside: bool = False) -> bool:
        """Send the segments of one reply in order; return whether all of them were sent, or will be.

        ``aside``: the answer is still to come, so this is sent now or not at all.
        """


@dataclass(frozen=True, slots=True)
class RunningBot:
    """Built by :mod:`bridges.app`. ``language``, read anew each time, and ``workspace`` are the configuration's.

    Chats may choose others.
    """

    key: BotKey
    channel: Channel
    harness: HarnessClient
    state: State
    replies: Replies
    clock: Clock
    references: References
    language: Callable[[], Language]
    workspace: str
    mint: Callable[[], str]
    """Makes ids that never repeat."""
    archives: Archives | None = None
    """Where past questions and answers are; None where nothing is kept."""
    activity: Activity = UNWATCHED
    observer: Observer = UNOBSERVED

    async def words(self, chat: ChatKey) -> Words:
        """Return the words of the language this chat chose, or of the configured one."""
        settings = await self.state.chats.settings(chat)
        return Words(settings.language or self.language())

    async def place(self, chat: ChatKey) -> Place:
        """Return where new sessions of this chat work: its pin, the bot's choice in chat, the configuration."""
        settings = await self.state.chats.settings(chat)
        return Place(settings.workspace, await self.state.bots.workspace(self.key) or self.workspace)

    async def safely(self, work: Callable[[], Awaitable[T]], *, reply_to: ReplyTarget, sender: SenderId) -> T | None:
        """Do ``work``; whatever escapes it becomes a safe reply with a reference, and None, never a dead worker."""
        try:
            return await work()
        except Exception as error:  # noqa: BLE001 - the one supervisor of all work that a message starts
            reference = self.references.record(error, actor=sender, session=None)
            await self.replies.reply(reply_to, (Words(self.language())(Key.CHAT_FAULT, reference=reference),))
            return None

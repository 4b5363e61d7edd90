"""``/batch``, ``/send``, ``/cancel``: several messages that become one prompt.

A chat collects texts in memory, at most ten; a restart forgets them. ``/send`` with texts to send is the bridge's to
carry out, for it makes a prompt; everything else about a batch is here.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from commands.model import ChatKey, CommandRequest, CommandResult, Outcome, Services
from commands.recognise import BLANKS, INVISIBLE, Recognised
from i18n import Key

LIMIT: Final = 10
"""Texts of one batch."""

ROOM: Final = 16_000_000
"""Characters of all batches together, each batch counted with :data:`OVERHEAD` more."""

OVERHEAD: Final = 2_000

SEND: Final = Recognised("send")
"""What sends a batch."""


class Stage(Enum):
    """How far a chat's batch is."""

    NONE = auto()
    COLLECTING = auto()
    SUBMITTING = auto()
    """It is a prompt now; other messages are what they always are."""


@dataclass(slots=True)
class _Batch:
    texts: list[str] = field(default_factory=list)
    submitting: bool = False


class Batches:
    """The batches of one bot's chats. When there is no room for another, the one begun first gives way."""

    def __init__(self) -> None:
        self._batches: OrderedDict[ChatKey, _Batch] = OrderedDict()
        self._size = 0

    def stage(self, chat: ChatKey) -> Stage:
        """Return how far the chat's batch is."""
        batch = self._batches.get(chat)
        if batch is None:
            return Stage.NONE
        return Stage.SUBMITTING if batch.submitting else Stage.COLLECTING

    def collects(self, chat: ChatKey) -> bool:
        """Whether the chat's messages go into a batch."""
        return self.stage(chat) is Stage.COLLECTING

    def count(self, chat: ChatKey) -> int:
        """Return the number of texts collected."""
        batch = self._batches.get(chat)
        return len(batch.texts) if batch else 0

    def begin(self, chat: ChatKey) -> None:
        """Collect from now on."""
        self._make_room(OVERHEAD)
        self._batches[chat] = _Batch()

    def add(self, chat: ChatKey, text: str) -> Key | None:
        """Add a text to a batch that collects; return what to say of it, None for nothing."""
        words = text.strip(BLANKS + INVISIBLE)
        batch = self._batches[chat]
        if words.startswith(("/", "／")):
            return Key.BATCH_COLLECTING
        if not words:
            return Key.CHAT_EMPTY
        if len(batch.texts) >= LIMIT:
            return Key.BATCH_OVERFULL
        batch.texts.append(text)
        self._size += len(text)
        self._batches.move_to_end(chat)
        self._make_room(0)
        return Key.BATCH_FULL if len(batch.texts) == LIMIT else None

    def submit(self, chat: ChatKey) -> tuple[str, ...]:
        """Take the texts to make a prompt of them; none when there is nothing to send. :meth:`settle` must follow."""
        batch = self._batches.get(chat)
        if batch is None or batch.submitting or not batch.texts:
            return ()
        batch.submitting = True
        return tuple(batch.texts)

    def settle(self, chat: ChatKey, *, keep: bool) -> int:
        """Keep a submitted batch, to be sent again, or drop it; return the number of its texts."""
        count = self.count(chat)
        if not keep:
            self.drop(chat)
        elif chat in self._batches:
            self._batches[chat].submitting = False
        return count

    def drop(self, chat: ChatKey) -> int:
        """Forget a batch; return the number of its texts."""
        batch = self._batches.pop(chat, None)
        if batch is None:
            return 0
        self._size -= sum(map(len, batch.texts))
        return len(batch.texts)

    def _make_room(self, more: int) -> None:
        while self._batches and self._size + len(self._batches) * OVERHEAD + more > ROOM:
            self.drop(next(iter(self._batches)))


async def batch(request: CommandRequest, services: Services) -> CommandResult:
    """Begin a batch, or say how many texts it has."""
    batches, chat = services.batches, request.chat
    match batches.stage(chat):
        case Stage.COLLECTING:
            return _told(services, Key.BATCH_PROGRESS, count=batches.count(chat), limit=LIMIT)
        case Stage.SUBMITTING:
            return _refused(services, Key.BATCH_SUBMITTING)
    if request.quoted:
        return _refused(services, Key.BATCH_PLAIN_ONLY)
    if services.turns.current(chat) is not None:
        return _refused(services, Key.BATCH_BUSY)
    batches.begin(chat)
    return _told(services, Key.BATCH_BEGUN, limit=LIMIT)


async def send(request: CommandRequest, services: Services) -> CommandResult:
    """Say why there is nothing to send."""
    match services.batches.stage(request.chat):
        case Stage.COLLECTING:
            return _refused(services, Key.SEND_EMPTY)
        case Stage.SUBMITTING:
            return _refused(services, Key.SEND_SUBMITTING)
        case Stage.NONE:
            return _refused(services, Key.SEND_NOTHING)


async def cancel(request: CommandRequest, services: Services) -> CommandResult:
    """Forget what was collected."""
    match services.batches.stage(request.chat):
        case Stage.COLLECTING:
            return _told(services, Key.CANCEL_DONE, count=services.batches.drop(request.chat))
        case Stage.SUBMITTING:
            return _refused(services, Key.CANCEL_SUBMITTING)
        case Stage.NONE:
            return _refused(services, Key.CANCEL_NOTHING)


def _told(services: Services, key: Key, **values: int) -> CommandResult:
    return CommandResult((services.words(key, **values),))


def _refused(services: Services, key: Key) -> CommandResult:
    return CommandResult((services.words(key),), Outcome.REFUSED)

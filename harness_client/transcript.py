"""Events of a log -> what a person may see, and -> turns.

The one place that decides what of a log is conversation: what ``surfaceOp``, a message's source and a turn's end mean
for it (spec HISTORY 3 and 4). Every function takes events with distinct ``seq``, in ``seq`` order; any tail of a log
will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import Final

from harness_client.errors import Malformed
from harness_client.events import (
    HUMAN,
    AssistantMessage,
    Block,
    ChunkFinish,
    Damaged,
    Event,
    File,
    Image,
    Surface,
    Text,
    TurnEnd,
    TurnStart,
    UserMessage,
)

COMPLETED: Final = "completed"
"""The one reason of a ``turn/end`` that makes the turn's last reply an answer."""
UNREADABLE: Final = ""
"""Stands for the reason of a ``turn/end`` that is broken inside: the turn is over, and no answer is known."""

VisibleBlock = Text | Image | File
"""The blocks a person may see; images and files as placeholders only."""

CommandTest = Callable[[str], bool]
"""Whether the text of a user message is a ``/history`` command; handed in, for this layer knows no commands."""

MarkRemover = Callable[[tuple[Block, ...]], tuple[Block, ...]]
"""Takes off what our own bridge added around a person's words; handed in as well."""


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One message as a person may see it; ``blocks`` may be empty, which shows as a placeholder."""

    seq: int
    role: Role
    blocks: tuple[VisibleBlock, ...]


@dataclass(slots=True)
class Turn:
    """One turn of the log. ``number`` repeats in forks: only ``start``, or the previous end, tells turns apart.

    ``start`` and ``end`` are None when they lie outside the events read, or were never written.
    """

    number: int
    start: TurnStart | None = None
    messages: list[UserMessage | AssistantMessage] = field(default_factory=list)
    """Everything appended in it, injected messages included, in order."""
    end: TurnEnd | None = None
    damaged: bool = False
    """The last reply could not be read."""

    @property
    def replies(self) -> list[AssistantMessage]:
        """What the model said, one message a step; the last one is the final one."""
        return [message for message in self.messages if isinstance(message, AssistantMessage)]

    @property
    def answer(self) -> AssistantMessage | None:
        """The final answer: the last reply of a turn that completed, unless it was cut short.

        Raises Malformed when that reply is damaged: an earlier step's text must never stand in for it.
        """
        if self.end is None or self.end.reason != COMPLETED:
            return None
        if self.damaged:
            raise Malformed("the answer of a completed turn is malformed")
        last = next((message for message in reversed(self.messages) if isinstance(message, AssistantMessage)), None)
        return None if last is None or last.interrupted else last


def is_human(message: UserMessage) -> bool:
    """Whether a person wrote the message into the visible conversation; no guessing where a field is missing."""
    return message.surface is Surface.APPEND and message.source is not None and message.source.kind == HUMAN


def text_of(blocks: Iterable[Block]) -> str:
    """Return the text blocks joined by LF."""
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def turns(events: Iterable[Event]) -> list[Turn]:
    """Tell the turns apart, in the order they began (an unseen beginning: where their first event was seen).

    A turn runs from its ``turn/start``, or from the previous end with its number, to the next end with its number.
    A user message belongs to the turn that began last before it; where that beginning was not read, to the next
    turn that shows itself.
    """
    splitter = _Splitter()
    for event in events:
        splitter.take(event)
    return splitter.turns


class _Splitter:
    """The state of :func:`turns`."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._running: dict[int, Turn] = {}
        self._unclaimed: list[UserMessage | AssistantMessage] = []
        self._finishes: dict[tuple[int, int | None], str] = {}

    def take(self, event: Event) -> None:
        match event:
            case TurnStart(turn=number):
                self._begin(number).start = event
            case TurnEnd(turn=number):
                self._of(number).end = event
                del self._running[number]
            case Damaged(type="turn/end", turn=int(number)):
                self.take(TurnEnd(event.seq, number, UNREADABLE))
            case AssistantMessage(surface=Surface.APPEND):
                self._reply(event)
            case Damaged(type="assistant/message", surface=Surface.APPEND, turn=int(number)):
                self._of(number).damaged = True
            case UserMessage(surface=Surface.APPEND):
                began = self.turns[-1] if self.turns else None
                (self._unclaimed if began is None or began.end else began.messages).append(event)
            case ChunkFinish(turn=number, step=step, reason=reason):
                self._finishes[number, step] = reason

    def _reply(self, message: AssistantMessage) -> None:
        turn = self._of(message.turn)
        if message.finish is None:
            message = replace(message, finish=self._finishes.pop((message.turn, message.step), None))
        turn.messages.append(message)
        turn.damaged = False

    def _begin(self, number: int) -> Turn:
        turn = self._running[number] = Turn(number, messages=self._unclaimed)
        self._unclaimed = []
        self.turns.append(turn)
        return turn

    def _of(self, number: int) -> Turn:
        return self._running.get(number) or self._begin(number)


def visible(
    events: Sequence[Event], *, is_command: CommandTest, without_marks: MarkRemover, newest: int | None = None
) -> tuple[Message, ...]:
    """Return what a person may see of ``events``, oldest first, or the ``newest`` so many of it (spec HISTORY 4).

    What it says of an event depends on that event and later ones only, so a tail of a log shows a tail of the whole.
    Raises Malformed when any human message or answer of a completed turn is broken inside.
    """
    _check(events)
    said: list[UserMessage | AssistantMessage] = [e for e in events if isinstance(e, UserMessage) and is_human(e)]
    said += (answer for turn in turns(events) if (answer := turn.answer))
    said.sort(key=lambda message: message.seq, reverse=True)
    shown = (_asked(e, without_marks) if isinstance(e, UserMessage) else _replied(e) for e in said)
    kept = (m for m in shown if m.role is Role.ASSISTANT or not is_command(text_of(m.blocks)))
    return tuple(islice(kept, newest))[::-1]


def is_open(events: Iterable[Event]) -> bool:
    """Whether the log, as far as it was read, ends inside a turn.

    That is: the newest turn that began has no end, or an appended reply has no later end of its turn.
    """
    found = turns(events)
    newest = next((turn for turn in reversed(found) if turn.start), None)
    latest = {turn.number: turn for turn in found}
    return any(turn.end is None and (turn is newest or turn.replies) for turn in latest.values())


def _check(events: Iterable[Event]) -> None:
    for event in events:
        match event:
            case Damaged(type="user/message", surface=Surface.APPEND, human=True):
                raise Malformed("a human message is malformed")
            case Damaged(type="assistant/message", surface=Surface.APPEND, turn=None):
                raise Malformed("a reply without a turn could be the answer of any")


def _asked(message: UserMessage, without_marks: MarkRemover) -> Message:
    return Message(message.seq, Role.USER, _shown(without_marks(message.blocks)))


def _replied(message: AssistantMessage) -> Message:
    return Message(message.seq, Role.ASSISTANT, _shown(message.blocks))


def _shown(blocks: Iterable[Block]) -> tuple[VisibleBlock, ...]:
    return tuple(block for block in blocks if isinstance(block, Text | Image | File))

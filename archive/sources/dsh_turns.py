"""A dsh event log as moments, turn by turn (facts SESSIONS 2.4, 2.5, 3.3).

What a message means is known only when its turn has ended: an answer is final with the persisted ``stop`` of the
turn's last message and the turn's own ``completed``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from archive.model import EndReason, Origin
from archive.pairs import Act, Close, Human, Moment, Reply, Step
from archive.text import FILE, IMAGE, clean, join
from archive.times import EPOCH, Instant, from_millis
from harness_client.events import (
    HUMAN,
    AssistantMessage,
    Block,
    Event,
    File,
    Image,
    StreamReset,
    Text,
    TextDelta,
    Title,
    ToolCallBlock,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from harness_client.transcript import COMPLETED, Turn, turns
from harness_client.types import SessionId

_ENDS = {
    "aborted": EndReason.ABORTED,
    "blocked": EndReason.ABORTED,
    "error": EndReason.ERROR,
    "max-tokens": EndReason.LENGTH,
}
"""What reasons of a turn's end, and finish reasons of a message, make of a pair; any other interrupts it."""
_BY_HARNESS = re.compile(r'Your parent agent id is "|Agent \S+ sent a message: ?\Z')
"""How the host's own blocks around a coordinator's words begin."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose log this is: decides who speaks in it. ``coordinator`` is a subagent's parent, None for others."""

    subagent: bool
    coordinator: SessionId | None


class Log:
    """A log while it is read: its events, and the text that old hosts streamed into it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.title: str | None = None
        self._seen: set[int] = set()
        self._streamed: dict[int, list[str]] = {}
        self._cut_off: dict[int, list[str]] = {}

    def take(self, item: Event | TextDelta | StreamReset) -> None:
        """Take the next event, or streamed text that lies between two. An event that comes again is passed over."""
        match item:
            case TextDelta(turn, _, text):
                self._streamed.setdefault(turn, []).append(text)
                return
            case StreamReset(turn):
                self._streamed.pop(turn, None)
                return
            case _ if item.seq in self._seen:
                return
            case AssistantMessage() | TurnStart():
                self._streamed.pop(item.turn, None)
            case TurnEnd():
                self._cut_off[item.seq] = self._streamed.pop(item.turn, [])
            case Title(title=title):
                self.title = clean(title).strip() or None
            case _:
                pass
        self._seen.add(item.seq)
        self.events.append(item)

    def cut_off(self, turn: Turn) -> str:
        """Return what the model had said at the turn's end, or by now, without a message to hold it."""
        pieces = self._cut_off.get(turn.end.seq) if turn.end else self._streamed.get(turn.number)
        return clean("".join(pieces or ()))


def moments(log: Log, speaker: Speaker) -> list[Moment]:
    """Lay a log out. A turn that nothing ended leaves its pair open, unless another turn began after it."""
    layout = _Layout(speaker)
    found = turns(log.events)
    for turn, following in zip_longest(found, found[1:]):
        abandoned = "interrupted" if following else None
        layout.add(turn, turn.end.reason if turn.end else abandoned, log.cut_off(turn))
    return layout.moments


class _Layout:
    """Moments in one line; each turn adds its messages, and its end where no message stands for it."""

    def __init__(self, speaker: Speaker) -> None:
        self.moments: list[Moment] = []
        self._speaker = speaker
        self._entries: set[str] = set()

    def add(self, turn: Turn, reason: str | None, cut_off: str) -> None:
        said = [each for each in turn.messages if isinstance(each, AssistantMessage) or self._origin(each)]
        for message, following in zip_longest(said, said[1:]):
            if isinstance(message, UserMessage):
                self._append(message, Human(self._text(message.blocks), self._origin(message) or Origin.USER))
            elif following is None and turn.damaged:
                self._append(message, Step())  # not the last: that one could not be read
            else:
                self._append(message, self._answer(message, following, reason))
        if reason is not None or cut_off:
            end = EndReason.INTERRUPTED if turn.damaged else _end(reason)
            at = self.moments[-1].at if self.moments else EPOCH
            self._link(f"end-of-{turn.number}", at, Close(end, cut_off))

    def _answer(
        self, message: AssistantMessage, following: UserMessage | AssistantMessage | None, reason: str | None
    ) -> Act:
        text = self._text(message.blocks)
        calls = any(isinstance(block, ToolCallBlock) for block in message.blocks)
        final = message.finish == "stop" and not calls and not message.interrupted and bool(text.strip())
        if final and isinstance(following, UserMessage):
            return Reply(text, EndReason.STOP)  # answered; a late steer opens the next pair inside the same turn
        if following is not None or (calls and not message.interrupted):
            return Step()
        if reason == COMPLETED and text.strip():
            return Reply(text, EndReason.STOP if final else _ENDS.get(message.finish or "", EndReason.INTERRUPTED))
        return Reply(text, _end(reason))

    def _origin(self, message: UserMessage) -> Origin | None:
        """Say who speaks; None for everything that neither a person nor a coordinator said."""
        source = message.source
        if source is None:
            return None
        if source.kind == HUMAN:
            return Origin.DELEGATION if self._speaker.subagent and source.request is None else Origin.USER
        if source.kind == "user-question-reply":
            return Origin.USER_REPLY
        relayed = source.kind == "agent-message" and source.sender == self._speaker.coordinator is not None
        return Origin.DELEGATION if source.kind == "coordinator" or relayed else None

    def _text(self, blocks: tuple[Block, ...]) -> str:
        return join(map(self._visible, blocks))

    def _visible(self, block: Block) -> str:
        match block:
            case Text(text):
                return "" if self._speaker.subagent and _BY_HARNESS.match(text) else text
            case Image():
                return IMAGE
            case File():
                return FILE
            case _:
                return ""

    def _append(self, message: UserMessage | AssistantMessage, act: Act) -> None:
        entry = clean(message.id or "")
        if not entry or entry in self._entries:
            entry = f"seq-{message.seq}"
        self._entries.add(entry)
        before = self.moments[-1].at if self.moments else EPOCH
        self._link(entry, from_millis(message.time) or before, act)

    def _link(self, entry: str, at: Instant, act: Act) -> None:
        self.moments.append(Moment(entry, at, len(self.moments) - 1 if self.moments else None, act))


def _end(reason: str | None) -> EndReason:
    """Translate a turn's end that brought no valid answer."""
    if reason is None:
        return EndReason.OPEN
    return EndReason.EMPTY if reason == COMPLETED else _ENDS.get(reason, EndReason.INTERRUPTED)

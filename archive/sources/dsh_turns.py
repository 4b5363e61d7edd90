"""A dsh event log as moments, turn by turn (facts SESSIONS 2.4, 2.5, 3.3).

What a message means is known only when its turn has ended: an answer is final with the persisted ``stop`` of the
turn's last message and the turn's own ``completed``. So the messages of a turn wait here for its end.
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
    ChunkFinish,
    Event,
    File,
    Image,
    StreamReset,
    Surface,
    Text,
    TextDelta,
    Title,
    ToolCallBlock,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from harness_client.types import SessionId

_TURN_ENDS = {
    "aborted": EndReason.ABORTED,
    "blocked": EndReason.ABORTED,
    "error": EndReason.ERROR,
    "max-tokens": EndReason.LENGTH,
}
_FINISHES = {
    "aborted": EndReason.ABORTED,
    "error": EndReason.ERROR,
    "max-tokens": EndReason.LENGTH,
}
_COMPLETED = "completed"
_BY_HARNESS = re.compile(r'Your parent agent id is "|Agent \S+ sent a message: ?\Z')
"""How the host's own blocks around a coordinator's words begin."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose log this is: decides who speaks in it. ``coordinator`` is a subagent's parent, None for others."""

    subagent: bool
    coordinator: SessionId | None


class Turns:
    """Takes a log's events in order and lays them out as moments."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._moments: list[Moment] = []
        self._waiting: list[UserMessage | AssistantMessage] = []
        self._running = False
        self._finishes: dict[tuple[int, int | None], str] = {}
        self._streamed: list[str] = []
        self._entries: set[str] = set()
        self.title: str | None = None
        self.count = 0
        self.last: str | None = None
        """Id of the last message."""

    def take(self, item: Event | TextDelta | StreamReset) -> None:
        """Take the next event, or streamed text that lies between two."""
        if not isinstance(item, TextDelta | StreamReset):
            self.count += 1
        match item:
            case UserMessage() if item.surface is not Surface.REPLACE and self._origin(item) is not None:
                self._waiting.append(item)
            case AssistantMessage() if item.surface is not Surface.REPLACE:
                self._waiting.append(item)
                self._streamed.clear()
            case ChunkFinish():
                self._finishes[item.turn, item.step] = item.reason
            case TextDelta():
                self._streamed.append(item.text)
            case StreamReset():
                self._streamed.clear()
            case TurnStart():
                if self._running:
                    self._settle("interrupted")  # the host died and began anew without closing the old turn
                self._running = True
            case TurnEnd():
                self._settle(item.reason)
                self._running = False
            case Title():
                self.title = clean(item.title).strip() or None
            case _:
                pass

    def moments(self) -> list[Moment]:
        """Return everything so far; a turn that still runs leaves its pair open."""
        self._settle(None)
        return self._moments

    def _settle(self, reason: str | None) -> None:
        """Lay out the waiting messages of a turn that ended for ``reason``, or None while it runs."""
        messages, self._waiting = self._waiting, []
        for message, following in zip_longest(messages, messages[1:]):
            if isinstance(message, UserMessage):
                self._add(message, Human(self._text(message.blocks), self._origin(message) or Origin.USER))
            else:
                self._add(message, self._answer(message, following, reason))
        partial, self._streamed = clean("".join(self._streamed)), []
        if reason is not None or partial:
            self._append(f"turn-{len(self._moments)}", self._now(), Close(_end(reason), partial))

    def _answer(
        self, message: AssistantMessage, following: UserMessage | AssistantMessage | None, reason: str | None
    ) -> Act:
        text = self._text(message.blocks)
        calls = any(isinstance(block, ToolCallBlock) for block in message.blocks)
        finish = message.finish or self._finishes.get((message.turn, message.step))
        final = finish == "stop" and not calls and not message.interrupted and bool(text.strip())
        if isinstance(following, UserMessage) and final:
            return Reply(text, EndReason.STOP)  # answered; a late steer opens the next pair inside the same turn
        if following is not None or (calls and not message.interrupted):
            return Step()
        if reason == _COMPLETED and not final and text.strip():
            return Reply(text, _FINISHES.get(finish or "", EndReason.INTERRUPTED))
        return Reply(text, EndReason.STOP if reason == _COMPLETED and final else _end(reason))

    def _origin(self, message: UserMessage) -> Origin | None:
        """Who speaks; None for everything that no person and no coordinator said."""
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
        return join(text for block in blocks if (text := self._visible(block)))

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

    def _add(self, message: UserMessage | AssistantMessage, act: Act) -> None:
        entry = clean(message.id or "")
        if not entry or entry in self._entries:
            entry = f"seq-{message.seq}"
        self._entries.add(entry)
        self.last = entry
        self._append(entry, from_millis(message.time) or self._now(), act)

    def _append(self, entry: str, at: Instant, act: Act) -> None:
        self._moments.append(Moment(entry, at, len(self._moments) - 1 if self._moments else None, act))

    def _now(self) -> Instant:
        return self._moments[-1].at if self._moments else EPOCH


def _end(reason: str | None) -> EndReason:
    """Translate a turn's end that brought no valid answer."""
    if reason is None:
        return EndReason.OPEN
    return EndReason.EMPTY if reason == _COMPLETED else _TURN_ENDS.get(reason, EndReason.INTERRUPTED)

"""One prompt's own turn, rebuilt from the log and the live stream: when it began, what it said, how it ended.

Source: facts HARNESS 6 (life of a prompt). The answer is the text of all steps in order.
"""

from __future__ import annotations

from enum import StrEnum

from harness_client.events import (
    AssistantMessage,
    Block,
    Damaged,
    Event,
    StreamReset,
    Surface,
    Text,
    TextDelta,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from harness_client.types import RequestId


class TurnEnding(StrEnum):
    """How a turn ended, as far as a person cares. OTHER is every reason this version does not know."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    ERROR = "error"
    MAX_TOKENS = "max-tokens"
    INTERRUPTED = "interrupted"
    BLOCKED = "blocked"
    OTHER = "other"

    @classmethod
    def of(cls, reason: str) -> TurnEnding:
        """Classify the reason of a ``turn/end``."""
        return next((ending for ending in cls if ending == reason), cls.OTHER)


class TurnReader:
    """Reads the turn that answers one prompt, found by the prompt's request id.

    Feed it log events in any number of overlapping pages, each page oldest first, and live deltas between them:
    an event is taken once, by its ``seq``. Reasoning and tool output never enter the text.
    """

    def __init__(self, request: RequestId) -> None:
        self.request = request
        """The prompt that is looked for: the first one, then what was steered too late to join its turn."""
        self._steered: list[RequestId] = []
        self._last = -1
        self._turn: int | None = None
        self._texts: list[str] = []
        self._finished: set[int | None] = set()
        self._live: list[str] = []
        self._live_step: int | None = None
        self.begun = False
        """The prompt is in the log."""
        self.ending: TurnEnding | None = None
        """Set once the turn has ended; the text is final then."""
        self.damaged = False
        """A part of the answer could not be read."""

    @property
    def last(self) -> int:
        """The newest ``seq`` taken."""
        return self._last

    def steered(self, request: RequestId) -> None:
        """Expect a prompt that joins the turn; one that comes too late opens the next turn, which is then read too."""
        self._steered.append(request)

    def dropped(self, request: RequestId) -> None:
        """Expect a steered prompt no more: it was not taken, or taken back."""
        if request in self._steered:
            self._steered.remove(request)

    @property
    def on_their_way(self) -> tuple[RequestId, ...]:
        """Steered prompts that have not come up in the log yet."""
        return tuple(self._steered)

    def skip_to(self, seq: int) -> None:
        """Leave out everything up to ``seq``: the log as it was before the prompt was sent."""
        self._last = max(self._last, seq)

    def take(self, item: Event | TextDelta | StreamReset) -> bool:
        """Take the next item; return whether the text or the state may have changed."""
        match item:
            case TextDelta():
                return self._take_delta(item)
            case StreamReset():
                return self._take_reset(item)
            case _:
                if item.seq <= self._last:
                    return False
                self._last = item.seq
                return self._take_event(item)

    def resume(self, partial: TextDelta | None) -> None:
        """Forget the live text of a broken stream; go on from ``partial``, the whole of the running step so far."""
        self._live.clear()
        if partial is not None:
            self._take_delta(partial)

    def text(self) -> str:
        """Return the answer so far: the steps in order, a blank line between them."""
        return "\n\n".join(text for text in (*self._texts, "".join(self._live)) if text.strip())

    def _take_event(self, event: Event) -> bool:
        match event:
            case UserMessage(surface=Surface.APPEND, source=source) if source is not None and source.kind == "user":
                self._take_prompt(source.request)
            case TurnStart(turn=turn) if not self.begun:
                self._turn = turn
            case AssistantMessage(surface=Surface.APPEND) if self._owns(event.turn):
                self._finish_step(event)
            case Damaged(surface=Surface.APPEND, turn=turn) if turn is not None and self._owns(turn):
                self.damaged = True
            case Damaged(type="turn/end", turn=turn) if turn is not None and self._owns(turn):
                self.ending = TurnEnding.OTHER
                self._live.clear()
            case TurnEnd(turn=turn, reason=reason) if self._owns(turn):
                self._end(TurnEnding.of(reason))
            case _:
                return False
        return True

    def _take_prompt(self, request: RequestId | None) -> None:
        if request is not None:
            self.dropped(request)
        self.begun = self.begun or request == self.request

    def _end(self, ending: TurnEnding) -> None:
        self._live.clear()
        if ending is TurnEnding.COMPLETED and self._steered:
            self.request, self.begun, self._turn = self._steered.pop(0), False, None
            self._finished.clear()
        else:
            self.ending = ending

    def _owns(self, turn: int) -> bool:
        """Whether something of ``turn`` belongs to the answer; a page may have begun behind the turn's start."""
        if not self.begun or self.ending is not None:
            return False
        if self._turn is None:
            self._turn = turn
        return self._turn == turn

    def _finish_step(self, message: AssistantMessage) -> None:
        self._texts.append(_text_of(message.blocks))
        self._finished.add(message.step)
        self._live.clear()

    def _take_delta(self, delta: TextDelta) -> bool:
        if not self._owns(delta.turn) or delta.step in self._finished:
            return False
        if self._live_step != delta.step:
            self._live.clear()
            self._live_step = delta.step
        self._live.append(delta.text)
        return True

    def _take_reset(self, reset: StreamReset) -> bool:
        if not self._live or reset.turn != self._turn or reset.step != self._live_step:
            return False
        self._live.clear()
        return True


def _text_of(blocks: tuple[Block, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)

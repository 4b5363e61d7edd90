"""The projection of a native log into pairs: one state machine for both hosts (spec ARCHIVE 3).

A source turns its log into :class:`Moment`, parents before children. Here they become pairs: the state after a moment
follows from its parent's state and its own act alone, so a tree needs no recursion and costs one step per moment.

A pair is named by its session, its first human entry, and the way it took from there: nothing while it follows the
first child at every fork, else the last entry that was not a first child, or ``cut-`` and its last entry when it was
left for a new question while another branch goes on with it. Logs only grow, so neither ever changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from archive.model import Branches, EndReason, Host, Input, NodeId, Origin, Pair
from archive.times import Instant
from harness_client.types import SessionId


@dataclass(frozen=True, slots=True)
class Human:
    """A human input."""

    text: str
    origin: Origin = Origin.USER


@dataclass(frozen=True, slots=True)
class Step:
    """A model message that goes on with tools; ``calls`` are those whose results the log must show."""

    calls: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one tool call."""

    call: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model message that calls no tool. STOP only with visible text.

    ``retryable``: the host may try again by itself, so a model message without a new question continues the pair.
    """

    text: str
    end: EndReason
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """The state of a turn beside its messages; a pair that is OPEN takes this end.

    ``partial`` is streamed text that never became a message.
    """

    end: EndReason
    partial: str = ""


Act = Human | Step | ToolResult | Reply | Close


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry of the conversation. ``parent`` is the index of the moment before it, None at a root."""

    entry: str
    at: Instant
    parent: int | None
    act: Act


@dataclass(frozen=True, slots=True)
class Projection:
    """Pairs in the order of the branches."""

    pairs: Mapping[NodeId, Pair]
    branches: Branches


@dataclass(frozen=True, slots=True)
class _State:
    """What a pair is after one of its moments. ``first`` is the index of its first human input, -1 before any."""

    first: int = -1
    variant: str = ""
    end: EndReason = EndReason.OPEN
    retryable: bool = False
    pending: frozenset[str] = frozenset()

    @property
    def asked(self) -> bool:
        return self.first >= 0

    @property
    def closed(self) -> bool:
        return self.end is not EndReason.OPEN

    @property
    def answered(self) -> bool:
        """A model message that comes now answers no question of this pair."""
        return self.closed and not self.retryable

    def begins(self, act: Act) -> bool:
        """Whether ``act`` opens a new pair: a question, unless it supplements one that waits for its answer."""
        return isinstance(act, Human) and (not self.asked or self.closed or bool(self.pending))

    def after(self, act: Act) -> _State:
        """Return the state after an ``act`` that opens no new pair."""
        match act:
            case Step(calls) if not self.answered:
                return replace(self, end=EndReason.OPEN, retryable=False, pending=self.pending | calls)
            case ToolResult(call) if call in self.pending:
                return replace(self, pending=self.pending - {call})
            case Reply(_, end, retryable) if not self.answered:
                return replace(self, end=end, retryable=retryable, pending=frozenset())
            case Close(end, _) if not self.closed:
                return replace(self, end=end, pending=frozenset())
            case _:
                return self


_NOTHING = _State()


class _Tree:
    """The moments with their states, and the pairs that end in them."""

    def __init__(self, host: Host, session: SessionId, moments: Sequence[Moment]) -> None:
        self._host = host
        self._session = session
        self._moments = moments
        self._states: list[_State] = []
        self._later: list[bool] = []
        self._first_child: list[int | None] = [None] * len(moments)
        self._begins: list[bool] = []
        for index in range(len(moments)):
            self._grow(index)

    def _grow(self, index: int) -> None:
        moment = self._moments[index]
        before = _NOTHING if moment.parent is None else self._states[moment.parent]
        begins = before.begins(moment.act)
        state = _State(first=index) if begins else before.after(moment.act) if before.asked else before
        if moment.parent is not None:
            if self._first_child[moment.parent] is None:
                self._first_child[moment.parent] = index
            elif not begins and state.asked:
                state = replace(state, variant=moment.entry)
        self._states.append(state)
        self._begins.append(begins)
        self._later.append(before.answered)

    def tips(self) -> list[int]:
        """Return the moments that end a branch inside a pair, in the order of the log."""
        return [index for index, child in enumerate(self._first_child) if child is None and self._states[index].asked]

    def before(self, end: int) -> int | None:
        """Return where the pair before the one that ends at ``end`` ends, or None."""
        parent = self._moments[self._states[end].first].parent
        return parent if parent is not None and self._states[parent].asked else None

    def name(self, end: int) -> NodeId:
        """Return the id of the pair that ends at ``end``."""
        state = self._states[end]
        heir = self._first_child[end]
        cut = heir is not None and not self._begins[heir]
        variant = f"cut-{self._moments[end].entry}" if cut else state.variant
        first = self._moments[state.first].entry
        key = f"{self._host}\0{self._session}\0{first}\0{variant}"
        return NodeId(hashlib.sha256(key.encode()).hexdigest()[:20])

    def pair(self, end: int) -> Pair:
        """Build the pair that ends at ``end``."""
        state = self._states[end]
        path = [end]
        while path[-1] != state.first and (parent := self._moments[path[-1]].parent) is not None:
            path.append(parent)
        left_open = not state.closed and self._first_child[end] is not None
        draft = _Draft(EndReason.INTERRUPTED if left_open else state.end)
        for index in reversed(path):
            draft.add(self._moments[index], later=self._later[index] and index != state.first)
        return draft.pair()


class _Draft:
    """Collects one pair from its moments."""

    def __init__(self, end: EndReason) -> None:
        self._end = end
        self._inputs: list[Input] = []
        self._answer = ""
        self._later: list[str] = []
        self._entries: list[str] = []
        self._last: Instant | None = None

    def add(self, moment: Moment, *, later: bool) -> None:
        match moment.act:
            case Human(text, origin):
                self._inputs.append(Input(origin, text, moment.at))
            case Reply(text, end) if later and end is EndReason.STOP:
                self._later.append(text)
            case Reply(text) if not later and text.strip():
                self._answer = text
            case Close(_, partial):
                self._answer = partial if partial.strip() and not later else self._answer
                return
            case ToolResult():
                return
            case _:
                pass
        self._entries.append(moment.entry)
        self._last = moment.at

    def pair(self) -> Pair:
        start = self._inputs[0].at
        return sealed(
            Pair(
                inputs=tuple(self._inputs),
                answer=self._answer,
                later=tuple(self._later),
                end_reason=self._end,
                entry_ids=tuple(self._entries),
                start=start,
                end=max(start, self._last or start),
                digest="",
            )
        )


def sealed(pair: Pair) -> Pair:
    """Return the pair with the digest of its content; equal content means an equal digest."""
    parts = [pair.end_reason.value, pair.answer, str(len(pair.later)), *pair.later]
    for given in pair.inputs:
        parts += (given.origin.value, given.text)
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return replace(pair, digest=hashlib.sha256(framed.encode()).hexdigest())


def project(host: Host, session: SessionId, moments: Sequence[Moment]) -> Projection:
    """Turn a log's moments into pairs and branches, in time linear in the moments and the result."""
    tree = _Tree(host, session, moments)
    pairs: dict[NodeId, Pair] = {}
    branches: list[tuple[NodeId, ...]] = []
    for tip in tree.tips():
        ends: dict[NodeId, int] = {}
        end: int | None = tip
        while end is not None and (name := tree.name(end)) not in pairs:
            ends[name] = end
            end = tree.before(end)
        shared = [] if end is None else [tree.name(end)]
        own = {name: tree.pair(ends[name]) for name in reversed(ends)}
        pairs.update(own)
        branches.append((*shared, *own))
    return Projection(pairs, tuple(branches))

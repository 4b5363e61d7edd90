"""Random conversations, and the plainest possible reading of them to compare the projection with."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from archive.model import EndReason, Host, Pair
from archive.pairs import Act, Human, Moment, Projection, Reply, Step, ToolResult, project
from archive.times import Instant
from harness_client.types import SessionId

SESSION = SessionId("random")


def at(index: int) -> Instant:
    return Instant(f"2026-01-01T00:{index // 60 % 60:02d}:{index % 60:02d}.000Z")


_ACTS: st.SearchStrategy[Act] = st.one_of(
    st.builds(Human, st.sampled_from(["why?", "how?", ""])),
    st.builds(Step, st.frozensets(st.sampled_from("xy"), max_size=2)),
    st.builds(ToolResult, st.sampled_from("xy")),
    st.builds(Reply, st.just("answer"), st.just(EndReason.STOP)),
    st.builds(Reply, st.sampled_from(["part", ""]), st.sampled_from([EndReason.ABORTED, EndReason.EMPTY])),
    st.builds(Reply, st.sampled_from(["part", ""]), st.just(EndReason.ERROR), st.just(value=True)),
)


@st.composite
def trees(draw: st.DrawFn) -> list[Moment]:
    """A tree in the order it was written; parents come first, several roots are legal."""
    acts = draw(st.lists(_ACTS, max_size=24))
    parents = [
        draw(st.none() | st.integers(max(0, index - 4), index - 1)) if index else None for index in range(len(acts))
    ]
    return [Moment(f"e{index}", at(index), parents[index], act) for index, act in enumerate(acts)]


def projected(moments: Sequence[Moment]) -> Projection:
    return project(Host.PI, SESSION, moments)


Seen = tuple[tuple[str, ...], str, tuple[str, ...], str, tuple[str, ...]]


def seen(pair: Pair) -> Seen:
    """What of a pair does not depend on its name."""
    return (
        tuple(given.text for given in pair.inputs),
        pair.answer,
        pair.later,
        pair.end_reason.value,
        pair.entry_ids,
    )


def paths_by_hand(moments: Sequence[Moment]) -> list[list[Seen]]:
    """Read every path from a root to a leaf by itself, as one would with pencil and paper."""
    parents = {moment.parent for moment in moments}
    result = []
    for leaf in range(len(moments)):
        if leaf in parents:
            continue
        path: list[Moment] = []
        index: int | None = leaf
        while index is not None:
            path.insert(0, moments[index])
            index = moments[index].parent
        pairs = _read(path)
        if pairs:
            result.append(pairs)
    return result


class _Open:
    def __init__(self, first: Moment) -> None:
        self.inputs: list[str] = []
        self.answer = ""
        self.later: list[str] = []
        self.end = "open"
        self.retry = False
        self.waiting: set[str] = set()
        self.entries: list[str] = []
        assert isinstance(first.act, Human)

    def seen(self) -> Seen:
        return (tuple(self.inputs), self.answer, tuple(self.later), self.end, tuple(self.entries))


def _read(path: list[Moment]) -> list[Seen]:
    pairs: list[_Open] = []
    for moment in path:
        act = moment.act
        if isinstance(act, Human):
            if pairs and pairs[-1].end == "open" and pairs[-1].waiting:
                pairs[-1].end = "interrupted"
            if not pairs or pairs[-1].end != "open":
                pairs.append(_Open(moment))
            pairs[-1].inputs.append(act.text)
            pairs[-1].entries.append(moment.entry)
        elif pairs:
            _answer(pairs[-1], moment)
    return [pair.seen() for pair in pairs]


def _answer(pair: _Open, moment: Moment) -> None:
    act = moment.act
    if isinstance(act, ToolResult):
        pair.waiting.discard(act.call)
        return
    pair.entries.append(moment.entry)
    goes_on = pair.end == "open" or pair.retry
    if isinstance(act, Step) and goes_on:
        pair.end, pair.retry = "open", False
        pair.waiting |= act.calls
    if isinstance(act, Reply) and goes_on:
        pair.answer = act.text if act.text.strip() else pair.answer
        pair.end, pair.retry = act.end.value, act.retryable
        pair.waiting.clear()
    elif isinstance(act, Reply) and act.end is EndReason.STOP:
        pair.later.append(act.text)

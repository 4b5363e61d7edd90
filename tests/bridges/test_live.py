"""How an answer is shown while it grows, where a channel has more ways than one or one that makes it wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bridges.message import AnswerStream, Limits, NotSent, ReplyTarget, RetryAfter, SendOutcome, Sent, SentId
from bridges.state import Phase, Turn
from bridges.state.turns import SqliteTurns
from commands.model import Outcome
from i18n import Key, Language, Words
from tests.bridges.bench import EditingChannel, Setup, Stream, StreamingChannel, bench, eventually
from tests.fakes.clock import FakeClock
from tests.fakes.harness import FakeHarness, say


async def test_where_a_chat_has_no_carrier_the_answer_grows_by_edits(host: FakeHarness, tmp_path: Path) -> None:
    class Choosy(EditingChannel):
        async def begin(self, target: ReplyTarget) -> AnswerStream | None:
            return None

    channel = Choosy()
    hold = asyncio.Event()
    host.model.script(say("Hello", hold, " there"))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: channel.texts == ["Hello"])
        hold.set()
        await channel.until(lambda: bool(desk.outcomes))
        assert channel.texts == ["Hello there"]


async def test_a_first_message_that_had_to_wait_is_tried_again_with_more_text(
    host: FakeHarness, tmp_path: Path
) -> None:
    channel = EditingChannel()
    channel.outcomes = [RetryAfter(0.0)]
    first, second = asyncio.Event(), asyncio.Event()
    host.model.script(say("Hello", first, " there", second, " again"))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: not channel.outcomes)
        first.set()
        await channel.until(lambda: channel.texts == ["Hello there"])
        second.set()
        await channel.until(lambda: bool(desk.outcomes))
        assert channel.texts == ["Hello there again"]


async def test_an_edit_that_has_to_wait_holds_the_next_ones_back_as_long(host: FakeHarness, tmp_path: Path) -> None:
    class Strict(EditingChannel):
        def __init__(self) -> None:
            super().__init__()
            self.tried: list[str] = []

        async def edit(self, target: ReplyTarget, message: SentId, text: str) -> SendOutcome:
            self.tried.append(text)
            return RetryAfter(7.0) if len(self.tried) == 1 else await super().edit(target, message, text)

    clock, channel = FakeClock(), Strict()
    channel.pace = 1.0
    holds = [asyncio.Event() for _ in range(3)]
    host.model.script(say("1", holds[0], "2", holds[1], "3", holds[2], "4"))
    async with bench(host, tmp_path, channel, Setup(clock=clock)) as desk:
        await desk.say("hi")
        await channel.until(lambda: channel.texts == ["1"])
        holds[0].set()
        await _until_shown(clock, lambda: channel.tried == ["12"], 2)
        holds[1].set()
        await clock.advance(6)
        assert channel.tried == ["12"], "it was told to wait"
        await _until_shown(clock, lambda: channel.texts == ["123"], 2)
        holds[2].set()
        await _until_shown(clock, lambda: channel.texts == ["1234"], 10)


async def _until_shown(clock: FakeClock, shown: Callable[[], bool], seconds: int) -> None:
    for _ in range(seconds * 10):
        if shown():
            return
        await asyncio.sleep(0.01)
        await clock.advance(0.1)
    await eventually(shown)


class NarrowChannel(StreamingChannel):
    """Its carrier and its messages hold little."""

    limits = Limits(text=200)


async def test_the_rest_of_an_answer_longer_than_its_carrier_follows_it(host: FakeHarness, tmp_path: Path) -> None:
    channel = NarrowChannel()
    text = "".join(f"line {number}\n" for number in range(60))
    host.model.script(say(text))
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: bool(desk.outcomes))
    (stream,) = channel.streams
    assert stream.final is not None
    assert len(stream.final) <= 200
    assert "".join([stream.final, *channel.texts]).split() == text.split()


@pytest.mark.parametrize(
    ("outcome", "texts"),
    [
        (Sent(None), []),
        (NotSent.REJECTED, ["You said: hi"]),
        (NotSent.UNKNOWN, [Words(Language.EN)(Key.CHAT_UNDELIVERED)]),
    ],
)
async def test_an_end_that_may_have_been_shown_is_not_shown_again(
    host: FakeHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: SendOutcome, texts: list[str]
) -> None:
    async def finish(stream: Stream, text: str) -> SendOutcome:
        return outcome

    monkeypatch.setattr(Stream, "finish", finish)
    channel = StreamingChannel()
    async with bench(host, tmp_path, channel) as desk:
        await desk.say("hi")
        await channel.until(lambda: bool(desk.outcomes))
    assert channel.texts == texts


async def test_a_carrier_noted_while_the_answer_is_delivered_undoes_nothing(
    host: FakeHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = SqliteTurns.save
    written, noted = asyncio.Event(), asyncio.Event()
    kept: list[Turn] = []

    async def slow(turns: SqliteTurns, turn: Turn) -> None:
        if turn.carrier is not None:
            noted.set()
        await save(turns, turn)
        kept.append(turn)
        if turn.phase is Phase.DELIVERING:
            written.set()
            await noted.wait()

    class Slow(EditingChannel):
        async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
            await written.wait()
            return await super().send(target, text)

    monkeypatch.setattr(SqliteTurns, "save", slow)
    async with bench(host, tmp_path, Slow()) as desk:
        assert await desk.ask("hello") == "You said: hello"
        await desk.channel.until(lambda: bool(desk.outcomes))
        assert list(desk.outcomes.values()) == [Outcome.OK]
        assert desk.channel.texts == ["You said: hello"], "it stands there once"
        assert (kept[-1].phase, kept[-1].carrier) == (Phase.DELIVERING, "0")
        assert await desk.nothing_outstanding()

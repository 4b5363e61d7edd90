"""The way out of a chat: order, pace, and never the same thing twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from bridges.delivery import MAX_WAITING, Delivery, End, Report
from bridges.intake import COMMANDS_AT_ONCE
from bridges.message import Inbox, Kept, Limits, NotSent, ReplyTarget, RetryAfter, SendOutcome, Sent, SentId
from commands.model import ChatKey
from tests.fakes.clock import FakeClock


def target(chat: str = "1") -> ReplyTarget:
    return ReplyTarget(ChatKey("fake", "ops", chat), chat)


def whole(text: str, limits: Limits) -> Sequence[str]:
    return [text[at : at + limits.text] for at in range(0, len(text), limits.text)]


@dataclass
class Platform:
    """A channel that does what the script says, and then sends everything."""

    clock: FakeClock
    limits: Limits = field(default_factory=lambda: Limits(text=10))
    script: list[SendOutcome | Exception] = field(default_factory=list)
    tried: list[tuple[str, str, float]] = field(default_factory=list)
    takes: float = 0.0

    async def run(self, inbox: Inbox) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        self.tried.append((target.route, text, self.clock.monotonic()))
        if self.takes:
            await self.clock.sleep(self.takes)
        outcome = self.script.pop(0) if self.script else Sent(SentId(str(len(self.tried))))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def texts(self) -> list[str]:
        return [text for _, text, _ in self.tried]


@pytest.fixture
async def clock() -> AsyncIterator[FakeClock]:
    async with FakeClock(autojump=True) as clock:
        yield clock


@pytest.fixture
def platform(clock: FakeClock) -> Platform:
    return Platform(clock)


@pytest.fixture
def delivery(platform: Platform, clock: FakeClock) -> Delivery:
    return Delivery(platform, whole, clock=clock)


async def test_segments_go_out_in_order_and_are_named(delivery: Delivery, platform: Platform) -> None:
    report = await delivery.deliver(target(), ["one", "two", "three"])
    assert report == Report(End.SENT, (SentId("1"), SentId("2"), SentId("3")))
    assert platform.texts == ["one", "two", "three"]
    assert await delivery.reply(target(), ("four",))


async def test_a_long_segment_is_split_and_a_blank_one_left_out(delivery: Delivery, platform: Platform) -> None:
    assert (await delivery.deliver(target(), ["", "abcdefghijklm", " \n"])).complete
    assert platform.texts == ["abcdefghij", "klm"]
    assert await delivery.deliver(target(), ["", "\n"]) == Report(End.SENT)


async def test_a_channel_of_whole_replies_gets_them_whole(clock: FakeClock) -> None:
    @dataclass
    class Whole(Platform):
        replies: list[tuple[str, ...]] = field(default_factory=list)

        async def send_reply(self, target: ReplyTarget, segments: tuple[str, ...]) -> SendOutcome:
            self.replies.append(segments)
            return Sent(None)

    platform = Whole(clock)
    report = await Delivery(platform, whole, clock=clock).deliver(target(), ["longer than ten", " ", "b"])
    assert report == Report(End.SENT, (None,))
    assert platform.replies == [("longer than ten", "b")]
    assert platform.tried == []


async def test_two_replies_of_one_chat_never_mix(delivery: Delivery, platform: Platform) -> None:
    platform.takes = 1
    await asyncio.gather(*(delivery.deliver(target(), [f"{n}.1", f"{n}.2"]) for n in range(3)))
    assert platform.texts == ["0.1", "0.2", "1.1", "1.2", "2.1", "2.2"]


async def test_one_slow_chat_holds_up_no_other(delivery: Delivery, platform: Platform, clock: FakeClock) -> None:
    platform.takes = 1
    began = clock.monotonic()
    await asyncio.gather(*(delivery.deliver(target(str(n)), ["a", "b"]) for n in range(50)))
    assert clock.monotonic() - began == 2


async def test_the_pace_of_a_chat_is_kept_within_and_between_replies(platform: Platform, clock: FakeClock) -> None:
    platform.limits = Limits(text=10, gap=1.5)
    delivery = Delivery(platform, whole, clock=clock)
    await delivery.deliver(target(), ["a", "b"])
    await delivery.deliver(target(), ["c"])
    times = [at for _, _, at in platform.tried]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [1.5, 1.5]


async def test_a_chat_costs_nothing_once_it_may_send_again(platform: Platform, clock: FakeClock) -> None:
    platform.limits = Limits(text=10, gap=1.5)
    delivery = Delivery(platform, whole, clock=clock)
    await asyncio.gather(*(delivery.deliver(target(str(n)), ["a"]) for n in range(100)))
    await clock.sleep(2)
    assert delivery._chats == {}


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (NotSent.WINDOW_CLOSED, End.WINDOW_CLOSED),
        (NotSent.BLOCKED, End.BLOCKED),
        (NotSent.TOO_LONG, End.TOO_LONG),
        (NotSent.REJECTED, End.REJECTED),
        (NotSent.UNKNOWN, End.UNKNOWN),
        (OSError("cut"), End.UNKNOWN),
        (LookupError("a defect"), End.UNKNOWN),
        (RetryAfter(61), End.RATE_LIMITED),
    ],
)
@pytest.mark.parametrize("before", [0, 1])
async def test_the_first_refusal_ends_the_reply_and_is_not_repeated(
    delivery: Delivery, platform: Platform, outcome: SendOutcome | Exception, end: End, before: int
) -> None:
    sent = Sent(SentId("first"))
    platform.script = [*[sent] * before, outcome]
    report = await delivery.deliver(target(), ["a", "b", "c"])
    assert report == Report(end, (SentId("first"),) * before)
    assert platform.texts == ["a", "b"][: before + 1]


async def test_a_refused_reply_does_not_hold_up_the_next(delivery: Delivery, platform: Platform) -> None:
    platform.script = [NotSent.BLOCKED]
    first, second = await asyncio.gather(delivery.deliver(target(), ["a"]), delivery.deliver(target(), ["b"]))
    assert (first.end, second.end) == (End.BLOCKED, End.SENT)


async def test_the_platforms_wait_is_obeyed(delivery: Delivery, platform: Platform, clock: FakeClock) -> None:
    platform.script = [RetryAfter(20), RetryAfter(30)]
    began = clock.monotonic()
    assert (await delivery.deliver(target(), ["a", "b"])).complete
    assert [(text, at - began) for _, text, at in platform.tried] == [("a", 0), ("a", 20), ("a", 50), ("b", 50)]


@pytest.mark.parametrize("script", [[RetryAfter(40), RetryAfter(40)], [RetryAfter(0)] * 9])
async def test_waits_are_bounded_in_sum_and_in_number(
    delivery: Delivery, platform: Platform, script: list[SendOutcome | Exception]
) -> None:
    platform.script = script
    assert (await delivery.deliver(target(), ["a"])).end is End.RATE_LIMITED
    assert len(platform.tried) <= 6


async def test_a_login_is_renewed_once(delivery: Delivery, platform: Platform) -> None:
    platform.script = [NotSent.REAUTHENTICATE]
    assert (await delivery.deliver(target(), ["a"])).complete
    platform.script = [NotSent.REAUTHENTICATE, NotSent.REAUTHENTICATE]
    assert (await delivery.deliver(target(), ["b"])).end is End.UNAUTHENTICATED
    assert platform.texts == ["a", "a", "b", "b"]


async def test_a_send_that_never_answers_is_unknown(delivery: Delivery, platform: Platform, clock: FakeClock) -> None:
    platform.takes = 3600
    began = clock.monotonic()
    assert (await delivery.deliver(target(), ["a", "b"])).end is End.UNKNOWN
    assert clock.monotonic() - began == 60
    assert platform.texts == ["a"]


def test_the_replies_of_all_commands_that_run_at_once_may_wait_in_one_chat() -> None:
    assert MAX_WAITING > COMMANDS_AT_ONCE


async def test_a_flooded_chat_is_refused_and_others_are_not(delivery: Delivery, platform: Platform) -> None:
    platform.takes = 1
    replies = [asyncio.create_task(delivery.deliver(target(), [str(n)])) for n in range(MAX_WAITING + 5)]
    other = asyncio.create_task(delivery.deliver(target("2"), ["other"]))
    ends = [report.end for report in await asyncio.gather(*replies)]
    assert ends == [End.SENT] * MAX_WAITING + [End.OVERLOADED] * 5
    assert (await other).complete


async def test_a_caller_that_left_stops_its_reply(delivery: Delivery, platform: Platform, clock: FakeClock) -> None:
    platform.takes = 10
    leaving = asyncio.create_task(delivery.deliver(target(), ["a", "b"]))
    staying = asyncio.create_task(delivery.deliver(target(), ["c"]))
    await clock.sleep(5)
    leaving.cancel()
    assert (await staying).complete
    assert platform.texts == ["a", "c"]


async def test_closing_lets_what_waits_go_out(delivery: Delivery, platform: Platform) -> None:
    platform.takes = 1
    replies = [asyncio.create_task(delivery.deliver(target(), [str(n)])) for n in range(3)]
    await asyncio.sleep(0)
    await delivery.close(10)
    assert [report.end for report in await asyncio.gather(*replies)] == [End.SENT] * 3
    assert await delivery.deliver(target(), ["late"]) == Report(End.CLOSED)
    await delivery.close(10)


async def test_closing_gives_up_in_time_and_says_what_is_certain(
    delivery: Delivery, platform: Platform, clock: FakeClock
) -> None:
    platform.takes = 4
    first = asyncio.create_task(delivery.deliver(target(), ["a", "b", "c"]))
    second = asyncio.create_task(delivery.deliver(target(), ["d"]))
    await asyncio.sleep(0)
    began = clock.monotonic()
    await delivery.close(5)
    assert clock.monotonic() - began == 5
    assert await first == Report(End.UNKNOWN, (SentId("1"),))
    assert await second == Report(End.CLOSED)
    assert delivery._chats == {}


async def test_each_send_is_measured(platform: Platform, clock: FakeClock) -> None:
    seen: list[tuple[str, float]] = []
    observe: Callable[[str, float], None] = lambda outcome, seconds: seen.append((outcome, seconds))  # noqa: E731 - typed
    platform.takes = 2
    platform.script = [RetryAfter(1), Sent(None), NotSent.BLOCKED]
    await Delivery(platform, whole, clock=clock, observe=observe).deliver(target(), ["a", "b"])
    assert seen == [("retry-after", 2), ("sent", 2), ("blocked", 2)]


# -- channels that count replies ---------------------------------------------------------------------------------------


class Rationed(Platform):
    """Tells what is said aside from what is not, and takes ``left`` messages."""

    left: int | OSError = 1_000

    async def replies_left(self, target: ReplyTarget) -> int:
        if isinstance(self.left, OSError):
            raise self.left
        return self.left

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        if isinstance(self.left, int):
            self.left -= 1
        return await super().send(target, text)

    async def send_aside(self, target: ReplyTarget, text: str) -> SendOutcome:
        return await self.send(target, f"({text})")


async def test_what_the_channel_keeps_is_no_failure(clock: FakeClock) -> None:
    channel = Rationed(clock, script=[Sent(SentId("1")), Kept(), Kept()])
    report = await Delivery(channel, whole, clock=clock).deliver(target(), ("one", "two", "three"))
    assert report == Report(End.KEPT, (SentId("1"),))
    assert report.complete


async def test_what_is_kept_does_not_hide_what_is_refused(clock: FakeClock) -> None:
    channel = Rationed(clock, script=[Kept(), NotSent.WINDOW_CLOSED])
    report = await Delivery(channel, whole, clock=clock).deliver(target(), ("one", "two", "three"))
    assert report == Report(End.WINDOW_CLOSED)
    assert channel.texts == ["one", "two"]


async def test_what_is_said_aside_is_named_to_a_channel_that_asks(clock: FakeClock) -> None:
    counting, plain = Rationed(clock), Platform(clock)
    for channel in (counting, plain):
        delivery = Delivery(channel, whole, clock=clock)
        assert await delivery.reply(target(), ("question",), aside=True)
        assert await delivery.reply(target(), ("answer",))
        await delivery.close(10)
    assert counting.texts == ["(question)", "answer"]
    assert plain.texts == ["question", "answer"]


async def rest_waits(chat: ChatKey) -> str:
    return f"more on {chat.channel}"


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (4, ["one", "two", "three"]),
        (3, ["one", "two", "three"]),
        (2, ["one", "more on fake", "two", "three"]),
        (1, ["more on fake", "one", "two", "three"]),
        (0, ["one", "two", "three"]),
        (OSError("disk"), ["one", "two", "three"]),
    ],
)
async def test_the_last_reply_says_that_more_is_to_come(clock: FakeClock, left: int | OSError, said: list[str]) -> None:
    channel = Rationed(clock)
    channel.left = left
    delivery = Delivery(channel, whole, clock=clock, rest_waits=rest_waits)
    assert await delivery.reply(target(), ("one", "two", "three"))
    assert channel.texts == said
    await delivery.close(10)


async def test_words_that_cannot_be_found_hold_up_nothing(clock: FakeClock) -> None:
    async def broken(chat: ChatKey) -> str:
        raise OSError

    channel = Rationed(clock)
    channel.left = 1
    delivery = Delivery(channel, whole, clock=clock, rest_waits=broken)
    assert await delivery.reply(target(), ("one", "two"))
    assert channel.texts == ["one", "two"]
    await delivery.close(10)

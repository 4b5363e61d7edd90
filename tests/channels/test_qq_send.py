"""QQ: numbered replies, their budget, what waits, and what each refusal means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.backlog import LONGEST
from bridges.delivery import Delivery, End
from bridges.http import CALL_SECONDS
from bridges.message import Acceptance, Kept, NotSent, ReplyTarget, RetryAfter, SendOutcome, Sent
from bridges.qq.chats import ALLOWANCE
from bridges.qq.inbound import Place, Route
from bridges.qq.outbox import SLOWER_SECONDS, TRIES, UNREACHED_SECONDS
from bridges.split import split_lossless
from commands.model import ChatKey
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors
from tests.channels.qq import ALICE, Line, platform
from tests.fakes.qq import FakeQQ, Fault

KINDS = {
    "users": ("alice-openid", Place.USER),
    "groups": ("group-openid", Place.GROUP),
    "channels": ("channel-1", Place.GUILD),
    "dms": ("guild-dm-1", Place.GUILD_DIRECT),
}


@pytest.fixture
async def fake() -> AsyncIterator[FakeQQ]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeQQ) -> AsyncIterator[Line]:
    async with Line(fake).started() as line:
        yield line


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_chat_has_its_own_address_and_budget(fake: FakeQQ, line: Line, kind: str) -> None:
    chat, place = KINDS[kind]
    message = await line.says(kind=kind, chat=chat)
    replies, _ = ALLOWANCE[place]
    outcomes = [await line.channel.send(message.reply_to, str(number)) for number in range(replies + 1)]
    assert [type(outcome) for outcome in outcomes] == [Sent] * replies + [Kept]
    assert {(sent.kind, sent.chat, sent.message) for sent in fake.sent} == {(kind, chat, message.id)}


async def test_four_replies_in_private_and_five_in_groups() -> None:
    assert {place: replies for place, (replies, _) in ALLOWANCE.items()} == {
        Place.USER: 4, Place.GROUP: 5, Place.GUILD: 5, Place.GUILD_DIRECT: 5,
    }  # fmt: skip


async def test_numbers_never_repeat_for_one_message_not_even_in_a_new_process(fake: FakeQQ) -> None:
    cursors = MemoryCursors()
    async with Line(fake, cursors).started() as line:
        message = await line.says()
        await line.channel.send(message.reply_to, "one")
        await line.channel.send(message.reply_to, "two")
    async with Line(fake, cursors).started() as line:
        await line.channel.send(message.reply_to, "three")
    assert [(sent.text, sent.seq) for sent in fake.sent] == [("one", 1), ("two", 2), ("three", 3)]
    assert sum("messages" in path for _, path in fake.calls) == 3, "no number is found out by trying"


async def test_a_number_taken_by_a_lost_count_is_passed_over(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    fake.fail("messages", Fault(status=400, code=40054005), Fault(status=400, code=40054005))
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert fake.sent[-1].seq == 3


async def test_a_message_all_of_whose_numbers_are_taken_is_left_for_another(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    fake.fail("messages", *[Fault(status=400, code=40054005)] * TRIES)
    assert await line.channel.send(message.reply_to, "hello") == Kept()
    await line.says("again")
    await eventually(lambda: fake.texts() == ["hello"])


async def test_what_a_killed_process_owed_goes_out_when_its_message_comes_again(fake: FakeQQ) -> None:
    """The process had claimed the message and no more; the next one says so before the message comes again."""
    kept = MemoryCursors()
    event = fake.message("hello", chat="bob")
    chat = ChatKey("qq", "bot", "bob")
    async with Line(fake, kept).started() as line:
        await line.says()
        await eventually(lambda: b'"seq":2' in kept.values["session"])
        target = ReplyTarget(chat, str(Route(Place.USER, "bob", str(event["id"]))))
        assert await line.channel.send(target, "not run, send it again") == Kept()
    await fake.deliver(event)
    second = Line(fake, kept)
    second.inbox.answers.append(Acceptance.DUPLICATE)
    async with second.started():
        await eventually(lambda: fake.texts("bob") == ["not run, send it again"])


async def test_what_is_said_aside_leaves_the_last_reply_to_the_answer(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    asides = [await line.channel.send_aside(message.reply_to, f"question {number}") for number in range(4)]
    assert [type(outcome) for outcome in asides] == [Sent, Sent, Sent, NotSent]
    assert asides[-1] is NotSent.WINDOW_CLOSED
    assert isinstance(await line.channel.send(message.reply_to, "the answer"), Sent)


async def test_a_long_answer_borrows_from_later_messages_and_leaves_each_its_own(fake: FakeQQ, line: Line) -> None:
    first = await line.says("one")
    second = await line.says("two")
    for number in range(7):
        assert isinstance(await line.channel.send(first.reply_to, str(number)), Sent)
    assert await line.channel.send(first.reply_to, "7") == Kept()
    assert isinstance(await line.channel.send(second.reply_to, "answer to two"), Sent)
    assert [sent.message for sent in fake.sent] == [first.id] * 4 + [second.id] * 4


async def test_a_long_answer_says_that_it_goes_on_and_goes_on(fake: FakeQQ, line: Line) -> None:
    async def rest_waits(chat: ChatKey) -> str:
        return "more"

    message = await line.says()
    delivery = Delivery(line.channel, split_lossless, clock=line.clock, rest_waits=rest_waits)
    assert (await delivery.deliver(message.reply_to, [str(number) for number in range(20)])).end is End.KEPT
    assert fake.texts() == ["0", "1", "2", "more"]
    await line.says("go on")
    await eventually(lambda: len(fake.sent) == 7)
    await line.says("go on")
    await eventually(lambda: len(fake.sent) == 10)
    assert fake.texts()[4:] == [str(number) for number in range(3, 9)]
    await delivery.close(0)


async def test_the_replies_left_are_those_that_an_answer_may_use(fake: FakeQQ, line: Line) -> None:
    first, second = await line.says("one"), await line.says("two")
    assert await line.channel.replies_left(first.reply_to) == 4 + 3
    for left in reversed(range(7)):
        await line.channel.send(first.reply_to, "page")
        assert await line.channel.replies_left(first.reply_to) == left
    assert await line.channel.replies_left(second.reply_to) == 1
    await line.stop()
    await line.channel.close()
    assert await line.channel.replies_left(second.reply_to) == 0


async def test_what_waits_comes_with_the_next_message_and_leaves_room_for_its_reply(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    for number in range(9):
        await line.channel.send(message.reply_to, str(number))
    again = await line.says("go on")
    await eventually(lambda: len(fake.sent) == 7)
    assert isinstance(await line.channel.send(again.reply_to, "reply"), Sent)
    await line.says("go on")
    await eventually(lambda: len(fake.sent) == 10)
    assert fake.texts() == [*map(str, range(7)), "reply", "7", "8"]


async def test_what_waits_survives_a_restart_and_is_bounded(fake: FakeQQ) -> None:
    cursors = MemoryCursors()
    async with Line(fake, cursors).started() as line:
        message = await line.says()
        outcomes = [await line.channel.send(message.reply_to, str(number)) for number in range(4 + LONGEST + 1)]
        assert outcomes[-2:] == [Kept(), NotSent.WINDOW_CLOSED]
    async with Line(fake, cursors).started() as line:
        await line.says("hello?")
        await eventually(lambda: len(fake.sent) == 7)
    assert fake.texts() == [*map(str, range(7))]


async def test_a_full_disk_stops_no_answer(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    line.cursors.full = True
    outcomes = [await line.channel.send(message.reply_to, str(number)) for number in range(5)]
    assert [type(outcome) for outcome in outcomes] == [Sent] * 4 + [NotSent]


async def test_a_reply_too_late_is_not_tried(fake: FakeQQ, line: Line) -> None:
    group = await line.says(kind="groups", chat="group-openid")
    private = await line.says()
    await line.clock.advance(290)
    assert await line.channel.send(group.reply_to, "late") == Kept()
    assert isinstance(await line.channel.send(private.reply_to, "in time"), Sent)
    await line.clock.advance(3300)
    assert await line.channel.send(private.reply_to, "late") == Kept()
    assert fake.texts() == ["in time"]


@pytest.mark.parametrize("code", [22009, 40034024, 40034025, 40034102])
async def test_a_message_that_takes_no_more_replies_is_left_for_another(fake: FakeQQ, line: Line, code: int) -> None:
    first = await line.says("one")
    second = await line.says("two")
    fake.fail("messages", Fault(status=400, code=code))
    assert isinstance(await line.channel.send(first.reply_to, "hello"), Sent)
    assert fake.sent[-1].message == second.id
    fake.fail("messages", Fault(status=400, code=code))
    assert await line.channel.send(first.reply_to, "more") == Kept()


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(status=403), NotSent.BLOCKED),
        (Fault(status=403, code=40034999), NotSent.BLOCKED),
        (Fault(status=400, code=40034006), NotSent.TOO_LONG),
        (Fault(status=413), NotSent.TOO_LONG),
        (Fault(status=400, code=40034999), NotSent.REJECTED),
        (Fault(code=50001), NotSent.REJECTED),
        (Fault(status=404), NotSent.REJECTED),
        (Fault(status=302, headers=(("Location", "http://127.0.0.1:9/"),)), NotSent.REJECTED),
        (Fault(status=429, headers=(("Retry-After", "7"),)), RetryAfter(7)),
        (Fault(status=429), RetryAfter(SLOWER_SECONDS)),
        (Fault(code=100001), RetryAfter(SLOWER_SECONDS)),
    ],
)
async def test_refusals(fake: FakeQQ, line: Line, fault: Fault, outcome: SendOutcome) -> None:
    message = await line.says()
    fake.fail("messages", fault)
    assert await line.channel.send(message.reply_to, "hello") == outcome
    outcomes = [await line.channel.send(message.reply_to, str(number)) for number in range(4)]
    assert all(isinstance(later, Sent) for later in outcomes), "what was refused costs nothing"


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=502, body=b"<html>"), Fault(drop=True)])
@pytest.mark.parametrize("accepted", [True, False])
async def test_a_lost_answer_is_asked_for_again_under_the_same_number(
    fake: FakeQQ, line: Line, fault: Fault, accepted: bool
) -> None:
    message = await line.says()
    fake.fail("messages", Fault(fault.status, fault.code, fault.body, accepted=accepted, drop=fault.drop))
    assert isinstance(await line.channel.send(message.reply_to, "once"), Sent)
    assert [(sent.text, sent.seq) for sent in fake.sent] == [("once", 1)]


async def test_an_answer_lost_twice_is_unknown_and_not_tried_again(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    fake.fail("messages", Fault(status=500), Fault(drop=True))
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    assert (await delivery.deliver(message.reply_to, ("hello", "there"))).end is End.UNKNOWN
    assert not fake.sent
    await delivery.close(0)


async def test_in_guilds_replies_have_no_number_so_a_lost_answer_is_final(fake: FakeQQ, line: Line) -> None:
    message = await line.says(kind="channels", chat="channel-1")
    fake.fail("messages", Fault(status=500, accepted=True))
    assert await line.channel.send(message.reply_to, "once") is NotSent.UNKNOWN
    assert len(fake.sent) == 1


async def test_no_answer_in_time_is_a_lost_one(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    fake.fail("messages", Fault(hang=True, accepted=True))
    sending = asyncio.create_task(line.channel.send(message.reply_to, "once"))
    await eventually(lambda: bool(fake.sent))
    await line.clock.advance(CALL_SECONDS + 1)
    assert await sending == Sent(None)
    assert len(fake.sent) == 1


async def test_an_unreachable_platform_took_nothing(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    await line.stop()
    await fake.__aexit__()
    assert await line.channel.send(message.reply_to, "hello") == RetryAfter(UNREACHED_SECONDS)


async def test_a_dead_token_is_replaced_before_the_message_goes_out(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    fake.revoke()
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert len(fake.tokens) == 2
    assert line.hidden == fake.tokens


async def test_a_token_that_stays_dead_is_no_loop(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    fake.fail("messages", *[Fault(status=401, code=11244)] * 9)
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    assert (await delivery.deliver(message.reply_to, ("hello",))).end is End.UNAUTHENTICATED
    assert len([call for call, _ in fake.calls if call == "messages"]) == 4
    await delivery.close(0)


async def test_a_message_under_review_is_sent(fake: FakeQQ, line: Line) -> None:
    message = await line.says(kind="channels", chat="channel-1")
    fake.fail("messages", Fault(status=202, code=304023))
    assert await line.channel.send(message.reply_to, "hello") == Sent(None)


async def test_addresses_are_disarmed_and_harmless_names_are_not(fake: FakeQQ, line: Line) -> None:
    fake.allows_addresses = False
    message = await line.says()
    assert isinstance(await line.channel.send(message.reply_to, "see https://example.com/a.b in setup.cfg"), Sent)
    assert isinstance(await line.channel.send(message.reply_to, "edit main.py and setup.cfg"), Sent)
    assert fake.texts() == ["see https：//example。com/a.b in setup.cfg", "edit main。py and setup。cfg"]


async def test_an_address_that_stays_one_is_refused(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    fake.fail("messages", *[Fault(status=400, code=304003)] * 4)
    assert await line.channel.send(message.reply_to, "a.b") is NotSent.REJECTED
    assert len([call for call, _ in fake.calls if call == "messages"]) == 2


async def test_a_stranger_gets_an_answer_and_leaves_no_record(fake: FakeQQ, line: Line) -> None:
    line.inbox.answers.append(Acceptance.DENIED)
    message = await line.says()
    assert not [key for key in line.cursors.values if ALICE in key]
    assert isinstance(await line.channel.send(message.reply_to, "Pairing code ABCD"), Sent)


async def test_long_texts_are_cut_to_what_a_message_holds(fake: FakeQQ, line: Line) -> None:
    message = await line.says()
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    assert (await delivery.deliver(message.reply_to, ("字" * 9000,))).end is End.KEPT
    assert [len(text) for text in fake.texts()] == [1900] * 4
    await line.says("the rest")
    await eventually(lambda: len(fake.sent) == 5)
    assert "".join(fake.texts()) == "字" * 9000
    await delivery.close(0)


async def test_nothing_is_sent_after_the_end(line: Line) -> None:
    message = await line.says()
    await line.stop()
    assert isinstance(await line.channel.send(message.reply_to, "late"), Sent)
    await line.channel.close()
    await line.channel.close()
    assert await line.channel.send(message.reply_to, "too late") is NotSent.REJECTED

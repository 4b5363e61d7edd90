"""Weixin: the life of a link, and what comes in over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges.channels import Surroundings, build
from bridges.config import Api, Weixin
from bridges.http import TimedOut, Unanswered
from bridges.message import Acceptance, ChannelStopped, Sent, Stop
from bridges.weixin.account import Account, Accounts
from bridges.weixin.channel import EMPTY_PAUSE_SECONDS, GRACE_SECONDS, POLL_SECONDS, SILENT_POLLS, WeixinChannel
from bridges.weixin.hosts import Hosts
from bridges.weixin.outbox import REPLIES
from bridges.weixin.wire import Refused
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.channels.weixin import ALICE, BOB, Line, line_on, platform
from tests.fakes.clock import FakeClock
from tests.fakes.weixin import ACCOUNT, TOKEN, FakeWeixin, Fault


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeixin]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeWeixin) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


async def ended(line: Line) -> BaseException | None:
    assert line.task is not None
    await asyncio.wait({line.task}, timeout=10)
    return line.task.exception()


async def polled(fake: FakeWeixin, times: int) -> None:
    await eventually(lambda: fake.count("getupdates") == times)


async def test_start_and_stop_are_announced_once(fake: FakeWeixin, line: Line) -> None:
    await line.says()
    await line.stop()
    await line.channel.close()
    await line.channel.close()
    assert [fake.count(f"msg/notify{what}") for what in ("start", "stop")] == [1, 1]


async def test_the_token_is_hidden_from_the_log_before_it_is_used(line: Line) -> None:
    assert line.hidden == ["bot-token-fake"]


async def test_a_platform_that_knows_no_announcement_is_polled_all_the_same(fake: FakeWeixin) -> None:
    fake.fail("msg/notifystart", Fault(status=404))
    fake.says(ALICE, "hi")
    async with line_on(fake) as line:
        assert (await line.inbox.heard())[0].text == "hi"


async def test_the_cursor_is_stored_only_after_the_batch(fake: FakeWeixin, line: Line) -> None:
    await line.says()
    await eventually(lambda: fake.through)
    stored = line.cursors.values[f"cursor:{ACCOUNT}"]
    line.inbox.answers.extend([Acceptance.ACCEPTED, OSError("disk full")])
    fake.says(ALICE, "one")
    await line.inbox.heard(2)
    fake.says(ALICE, "two")
    assert isinstance(await ended(line), OSError)
    kept = line.cursors.values[f"cursor:{ACCOUNT}"]
    assert kept in {stored, b"cursor-2"}, "the refused message lies behind the cursor"
    await line.start()
    assert [message.text for message in await line.inbox.heard(3)][-1] == "two"


async def test_a_new_process_goes_on_where_the_last_one_was(fake: FakeWeixin) -> None:
    cursors = MemoryCursors()
    async with line_on(fake, cursors) as first:
        await first.says(text="one")
        await eventually(lambda: fake.through)
    async with line_on(fake, cursors) as second:
        fake.says(ALICE, "two")
        assert [message.text for message in await second.inbox.heard()] == ["two"]


async def test_five_starts_poll_once_at_a_time_and_repeat_nothing(fake: FakeWeixin, line: Line) -> None:
    await line.says(text="one")
    await eventually(lambda: fake.through)
    for _ in range(5):
        await line.stop()
        await line.start()
    await line.says(text="two")
    assert [message.text for message in line.inbox.messages] == ["one", "two"]


async def test_a_redelivered_message_keeps_its_id(fake: FakeWeixin, line: Line) -> None:
    message = await line.says()
    fake.again(message.id)
    one, two = await line.inbox.heard(2)
    assert one.id == two.id == str(2**63 + 11)


async def test_the_bots_own_messages_are_dropped_by_kind_and_by_id(fake: FakeWeixin, line: Line) -> None:
    fake.says(ALICE, "echo", message_type=2)
    fake.says(ACCOUNT, "echo")
    fake.says(ALICE, "recalled", delete_time_ms=1_700_000_000_001)
    fake.says(ALICE, "last")
    assert [message.text for message in await line.inbox.heard()] == ["last"]


async def test_a_message_that_cannot_be_read_does_not_hold_up_the_others(fake: FakeWeixin, line: Line) -> None:
    fake.deliver({"message_id": {"odd": True}, "from_user_id": ALICE})
    fake.deliver({"message_type": 1})
    fake.says(BOB, "fine")
    assert [message.text for message in await line.inbox.heard()] == ["fine"]
    await eventually(lambda: fake.through)


async def test_a_dead_login_stops_with_what_to_do(fake: FakeWeixin, line: Line) -> None:
    fake.token = "another-token-fake"
    fake.deliver({"message_type": 2, "message_id": 1, "from_user_id": ALICE})
    stopped = await ended(line)
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.NEEDS_LOGIN
    assert "harness-im login weixin" in str(stopped)


@pytest.mark.parametrize("fault", [Fault(ret=-14), Fault(errcode=-14)])
async def test_a_dead_login_is_seen_in_either_field(fake: FakeWeixin, fault: Fault) -> None:
    fake.fail("getupdates", fault)
    async with line_on(fake) as line:
        assert isinstance(await ended(line), ChannelStopped)


async def test_without_a_login_nothing_is_tried(fake: FakeWeixin) -> None:
    line = Line(fake)
    line.account = None
    with pytest.raises(ChannelStopped, match="harness-im login weixin"):
        await line.channel.run(line.inbox)
    assert not fake.calls


async def test_a_new_login_is_found_by_the_next_start(fake: FakeWeixin, line: Line) -> None:
    await line.stop()
    fake.token = "second-token-fake"
    line.account = Account("bot-2@im.bot", fake.token)
    await line.start()
    assert (await line.says()).text == "hi"


async def test_a_login_on_a_strange_host_is_refused() -> None:
    account = Account(ACCOUNT, "token-fake", "https://weixin.qq.com.example.org")
    channel = WeixinChannel(
        "bot", lambda: account, hosts=Hosts(), cursors=MemoryCursors(), clock=FakeClock(), hide=lambda _: None
    )
    with pytest.raises(ChannelStopped) as stopped:
        await channel.run(RecordingInbox())
    assert stopped.value.why is Stop.MISCONFIGURED


async def test_the_operators_address_goes_before_that_of_the_login(fake: FakeWeixin) -> None:
    line = Line(fake)
    line.account = Account(ACCOUNT, TOKEN, "https://ilinkai.weixin.qq.com")
    await line.start()
    assert (await line.says()).text == "hi"
    await line.stop()
    await line.channel.close()


async def test_a_damaged_record_begins_anew(fake: FakeWeixin) -> None:
    cursors = MemoryCursors()
    cursors.values[f"peer:{ACCOUNT}:{ALICE}"] = b"{"
    async with line_on(fake, cursors) as line:
        assert isinstance(await line.send(await line.says(), "hello"), Sent)


async def test_what_the_login_stored_is_what_a_bot_without_a_token_uses(fake: FakeWeixin, tmp_path: Path) -> None:
    table = Weixin(name="me", endpoints=Api(api=fake.url))
    inbox = RecordingInbox()
    channel = build(table, Surroundings(MemoryCursors(), FakeClock(), lambda _: None, tmp_path))
    with pytest.raises(ChannelStopped, match="login weixin"):
        await channel.run(inbox)
    Accounts(tmp_path).save(Account(ACCOUNT, TOKEN))
    running = asyncio.create_task(channel.run(inbox))
    fake.says(ALICE, "hi")
    assert (await inbox.heard())[0].text == "hi"
    running.cancel()
    await asyncio.wait({running})
    await channel.close()


async def test_one_poll_that_times_out_is_nothing_and_three_are_a_deaf_link(fake: FakeWeixin, line: Line) -> None:
    for number in range(SILENT_POLLS):
        await polled(fake, number + 1)
        await line.clock.sleeping()
        await line.clock.advance(POLL_SECONDS + GRACE_SECONDS + 1)
    assert isinstance(await ended(line), TimedOut)
    await line.start()
    assert (await line.says()).text == "hi"


async def test_the_platforms_own_poll_time_is_followed(fake: FakeWeixin, line: Line) -> None:
    fake.longpolling_timeout_ms = 5_000
    await line.says()
    await eventually(lambda: fake.through)
    polls = fake.count("getupdates")
    await line.clock.sleeping()
    await line.clock.advance(5 + GRACE_SECONDS + 1)
    await polled(fake, polls + 1)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(status=502, body=b"<html>"), Unanswered),
        (Fault(body=b"<html>"), Unanswered),
        (Fault(body=b"\xff"), Unanswered),
        (Fault(body=b'{"msgs": 7}'), Unanswered),
        (Fault(drop=True), Unanswered),
        (Fault(body=b" " * (8 * 1024 * 1024 + 1)), Unanswered),
        (Fault(status=302, headers=(("Location", "http://127.0.0.1:9/"),)), Refused),
        (Fault(status=429), Refused),
        (Fault(ret=-1), Refused),
    ],
)
async def test_a_failed_poll_ends_the_run_and_says_no_more_than_what_failed(
    fake: FakeWeixin, fault: Fault, error: type[Exception]
) -> None:
    fake.fail("getupdates", fault)
    async with line_on(fake) as line:
        failure = await ended(line)
        assert isinstance(failure, error)
        assert "127.0.0.1" not in str(failure)
        assert "token" not in str(failure)
        await line.start()
        assert (await line.says()).text == "hi"


@pytest.mark.parametrize("cursor", ['""', "null"])
async def test_an_empty_cursor_is_none(fake: FakeWeixin, line: Line, cursor: str) -> None:
    await line.says()
    await eventually(lambda: fake.through)
    fake.fail("getupdates", Fault(body=f'{{"ret":0,"msgs":[],"get_updates_buf":{cursor}}}'.encode()))
    await line.stop()
    polls = len(fake.answered_cursors)
    await line.start()
    async with asyncio.timeout(20):
        while len(fake.answered_cursors) == polls:
            await line.clock.advance(EMPTY_PAUSE_SECONDS)
            await asyncio.sleep(0.005)
    assert fake.answered_cursors[-1] == "cursor-1"


async def test_a_platform_that_answers_nothing_at_once_is_not_asked_without_end(fake: FakeWeixin) -> None:
    fake.hold = 0
    async with line_on(fake) as line:
        await eventually(lambda: fake.count("getupdates") >= 2)
        await line.clock.sleeping()
        polls = fake.count("getupdates")
        await line.clock.advance(1.0)
        await polled(fake, polls + 1)


# -- odd and hostile ---------------------------------------------------------------------------------------------------

DEEP = b"[" * 100_000 + b"]" * 100_000


async def test_a_process_that_was_killed_after_the_claim_loses_neither_token_nor_what_waits(fake: FakeWeixin) -> None:
    kept = MemoryCursors()
    async with line_on(fake, kept) as line:
        message = await line.says(text="one")
        for number in range(REPLIES + 1):
            await line.send(message, str(number))
    fake.says(ALICE, "two")
    line = Line(fake, kept)
    line.inbox.answers.append(Acceptance.DUPLICATE)  # as claimed by a process that got no further
    await line.start()
    (again,) = await line.inbox.heard()
    await eventually(lambda: len(fake.sent) == REPLIES + 1)
    assert fake.sent[-1].token == f"context-{again.id}"
    assert again.id.encode() in kept.values[f"peer:{ACCOUNT}:{ALICE}"]
    await line.stop()
    await line.channel.close()


async def test_a_message_that_could_not_be_claimed_keeps_its_token_when_it_comes_again(fake: FakeWeixin) -> None:
    kept = MemoryCursors()
    async with line_on(fake, kept) as line:
        line.inbox.answers.append(OSError("disk full"))
        fake.says(ALICE, "hi")
        assert isinstance(await ended(line), OSError)
        await line.start()
        (message,) = await line.inbox.heard()
        await eventually(lambda: fake.through)
        assert message.id.encode() in kept.values[f"peer:{ACCOUNT}:{ALICE}"]


async def test_a_message_that_claims_a_group_changes_nothing_for_its_sender(fake: FakeWeixin, line: Line) -> None:
    message = await line.says(text="mine")
    fake.says(ALICE, "ours", group_id="group", context_token="the group's")
    await line.inbox.heard(2)
    await line.send(message, "answer")
    assert fake.sent[-1].token == f"context-{message.id}"


@pytest.mark.parametrize("odd", [1.5, 1e300, -3, 0, 7_000.0])
async def test_no_poll_time_ends_the_link(fake: FakeWeixin, odd: float) -> None:
    fake.longpolling_timeout_ms = odd
    async with line_on(fake) as line:
        for count in (1, 2):
            await line.says()
            assert len(line.inbox.messages) == count


@pytest.mark.parametrize("fields", [
    {"message_id": None, "item_list": None}, {"item_list": [None]}, {"item_list": {}}, {"from_user_id": None},
    {"context_token": 7}, {"message_type": "1"}, {"create_time_ms": []}, {"group_id": []},
    {"item_list": [{"type": 4, "file_item": {"len": "9" * 5_000}}]}, {"item_list": [{"type": 1}] * 5_000},
    {"item_list": [{"type": 1, "text_item": {"text": "x" * 500_000}}]}, {"from_user_id": "名字 🤖\u202e\u0000"},
])  # fmt: skip
async def test_no_message_ends_the_link(fake: FakeWeixin, line: Line, fields: dict[str, object]) -> None:
    fake.says(BOB, "odd", **fields)  # type: ignore[arg-type]  # none of the fields is named items
    fake.says(ALICE, "fine")
    await eventually(lambda: fake.through)
    assert line.inbox.messages[-1].text == "fine"
    assert line.task is not None
    assert not line.task.done()


@pytest.mark.parametrize("body", [b'{"msgs":[' + DEEP + b"]}", b'{"get_updates_buf":"\\ud800"}', b'{"errcode":"-14"}'])
async def test_no_answer_to_a_poll_is_more_than_a_failed_poll(fake: FakeWeixin, body: bytes) -> None:
    fake.fail("getupdates", Fault(body=body))
    async with line_on(fake) as line:
        assert isinstance(await ended(line), Unanswered)
        await line.start()
        assert (await line.says()).text == "hi"

"""DingTalk: the webhook while it lasts, the API after it, and what each refusal means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from bridges.delivery import Delivery, End
from bridges.dingtalk.outbox import MARGIN_SECONDS, SLOWER_SECONDS, UNREACHED_SECONDS, sendable
from bridges.dingtalk.rest import RENEW_SECONDS
from bridges.http import CALL_SECONDS
from bridges.message import (
    EditsMessages,
    FetchesAttachments,
    InboundMessage,
    NotSent,
    PublishesCommands,
    RationsReplies,
    RetryAfter,
    SendOutcome,
    Sent,
    ShowsTyping,
    StreamsAnswers,
)
from bridges.split import split_lossless
from tests.bridges.bench import eventually
from tests.channels.dingtalk import GROUP, Line, line_on, platform
from tests.fakes.dingtalk import FakeDingTalk, Fault, Said


@pytest.fixture
async def fake() -> AsyncIterator[FakeDingTalk]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeDingTalk) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


async def late(line: Line, group: str | None = None) -> InboundMessage:
    """Return a message whose webhook is over."""
    message = await line.says(group=group)
    await expire(line)
    return message


async def expire(line: Line) -> None:
    """Let the webhooks given out so far end, and the link stay: time moves where nothing measures it."""
    line.clock._now += line.fake.lasts - MARGIN_SECONDS + 1


async def test_the_channel_can_what_the_platform_can(line: Line) -> None:
    assert isinstance(line.channel, StreamsAnswers)
    assert isinstance(line.channel, FetchesAttachments)
    for capability in (EditsMessages, ShowsTyping, PublishesCommands, RationsReplies):
        assert not isinstance(line.channel, capability)


@pytest.mark.parametrize("group", [None, GROUP])
async def test_a_reply_goes_to_the_webhook_of_its_session(fake: FakeDingTalk, line: Line, group: str | None) -> None:
    message = await line.says(group=group)
    assert await line.channel.send(message.reply_to, "hello") == Sent(None)
    assert fake.said == [Said("webhook", group or "cid-alice", "hello")]
    assert not fake.tokens, "no token is needed for it"


@pytest.mark.parametrize(("group", "way", "chat"), [(None, "private", "cid-alice"), (GROUP, "group", GROUP)])
async def test_after_its_end_the_bot_writes_of_its_own_accord(
    fake: FakeDingTalk, line: Line, group: str | None, way: str, chat: str
) -> None:
    message = await late(line, group)
    outcome = await line.channel.send(message.reply_to, "hello")
    assert isinstance(outcome, Sent)
    assert outcome.id is not None
    assert fake.said == [Said(way, chat, "hello")]
    assert line.hidden == fake.tokens


async def test_a_webhook_that_ended_early_is_no_loss(fake: FakeDingTalk, line: Line) -> None:
    message = await line.says()
    fake.fail("webhook", Fault(errcode=300001))
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert fake.said == [Said("private", "cid-alice", "hello")]


@pytest.mark.parametrize("errcode", [-1, 300001, 310000, 460101, 400801, 99999999])
async def test_whatever_else_the_webhook_refuses_goes_the_other_way_once(
    fake: FakeDingTalk, line: Line, errcode: int
) -> None:
    message = await line.says()
    fake.fail("webhook", Fault(errcode=errcode))
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert fake.said == [Said("private", "cid-alice", "hello")]


@pytest.mark.parametrize("expired", [None, 0, -1, 1, "1790000000000", 1e300])
@pytest.mark.parametrize("webhook", [None, "", "no address", "file:///etc/passwd"])
async def test_no_webhook_however_odd_keeps_a_reply_away(
    fake: FakeDingTalk, line: Line, webhook: str | None, expired: object
) -> None:
    data = fake.message(sessionWebhook=webhook, sessionWebhookExpiredTime=expired)
    await fake.gateway.taken(await fake.gateway.callback(data))
    assert isinstance(await line.channel.send(line.inbox.messages[0].reply_to, "hello"), Sent)
    assert fake.said == [Said("private", "cid-alice", "hello")]


@pytest.mark.parametrize("days", [-400, 400])
async def test_a_clock_that_jumps_loses_no_reply(fake: FakeDingTalk, line: Line, days: int) -> None:
    message = await line.says()
    line.clock._now += days * 86_400
    fake.fail("webhook", Fault(errcode=300001))
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert fake.texts() == ["hello"]


async def test_an_outsider_is_reached_by_webhook_only(fake: FakeDingTalk, line: Line) -> None:
    data = fake.message(senderStaffId=None)
    await fake.gateway.taken(await fake.gateway.callback(data))
    (message,) = line.inbox.messages
    assert isinstance(await line.channel.send(message.reply_to, "in time"), Sent)
    await expire(line)
    assert await line.channel.send(message.reply_to, "too late") is NotSent.WINDOW_CLOSED


async def test_a_webhook_elsewhere_is_not_used(fake: FakeDingTalk, line: Line) -> None:
    data = fake.message(sessionWebhook="https://example.com/robot/sendBySession?session=x")
    await fake.gateway.taken(await fake.gateway.callback(data))
    assert isinstance(await line.channel.send(line.inbox.messages[0].reply_to, "hello"), Sent)
    assert [said.way for said in fake.said] == ["private"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(errcode=130101), RetryAfter(SLOWER_SECONDS)),
        (Fault(status=429, headers=(("Retry-After", "7"),)), RetryAfter(7)),
        (Fault(status=500), NotSent.UNKNOWN),
        (Fault(status=502, body=b"<html>"), NotSent.UNKNOWN),
        (Fault(body=b"<html>"), NotSent.UNKNOWN),
        (Fault(body=b"{}"), NotSent.UNKNOWN),
        (Fault(body=b'{"errmsg": "ok"}'), NotSent.UNKNOWN),
        (Fault(drop=True, accepted=True), NotSent.UNKNOWN),
    ],
)
async def test_what_the_webhook_says_that_ends_a_send(
    fake: FakeDingTalk, line: Line, fault: Fault, outcome: SendOutcome
) -> None:
    message = await line.says()
    fake.fail("webhook", fault)
    assert await line.channel.send(message.reply_to, "hello") == outcome
    assert fake.calls.count("webhook") == 1
    assert "private" not in fake.calls


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(status=429, code="Throttling.User"), RetryAfter(SLOWER_SECONDS)),
        (Fault(status=403, code="Forbidden.AccessDenied.QpsLimitForAppkeyAndApi"), RetryAfter(SLOWER_SECONDS)),
        (Fault(status=403, code="Forbidden.AccessDenied.AccessTokenPermissionDenied"), NotSent.REJECTED),
        (Fault(status=400, code="staffId.notExisted"), NotSent.BLOCKED),
        (Fault(status=400, code="resource.not.found"), NotSent.REJECTED),
        (Fault(status=400, code="chatbot.notExist"), NotSent.BLOCKED),
        (Fault(status=413), NotSent.TOO_LONG),
        (Fault(status=400), NotSent.REJECTED),
        (Fault(status=302, headers=(("Location", "http://127.0.0.1:9/"),)), NotSent.REJECTED),
        (Fault(status=503, code="ServiceUnavailable"), NotSent.UNKNOWN),
        (Fault(status=500), NotSent.UNKNOWN),
        (Fault(drop=True), NotSent.UNKNOWN),
    ],
)
async def test_what_the_api_says(fake: FakeDingTalk, line: Line, fault: Fault, outcome: SendOutcome) -> None:
    message = await late(line)
    fake.fail("private", fault)
    assert await line.channel.send(message.reply_to, "hello") == outcome
    assert not fake.said


async def test_people_who_do_not_want_it_are_named_in_an_answer_that_looks_fine(fake: FakeDingTalk, line: Line) -> None:
    message = await late(line)
    fake.blocked.add("alice")
    assert await line.channel.send(message.reply_to, "hello") is NotSent.BLOCKED
    fake.blocked.clear()
    fake.hasty.add("alice")
    assert await line.channel.send(message.reply_to, "hello") == RetryAfter(SLOWER_SECONDS)


async def test_no_answer_in_time_is_unknown_and_nothing_is_repeated(fake: FakeDingTalk, line: Line) -> None:
    message = await line.says()
    fake.fail("webhook", Fault(hang=True, accepted=True))
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, ("one", "two")))
    await eventually(lambda: fake.texts() == ["one"])
    await line.clock.advance(CALL_SECONDS + 1)
    assert (await delivering).end is End.UNKNOWN
    assert fake.texts() == ["one"]
    await delivery.close(0)


async def test_an_unreachable_platform_took_nothing(fake: FakeDingTalk, line: Line) -> None:
    message = await line.says()
    await line.stop()
    await fake.__aexit__()
    assert await line.channel.send(message.reply_to, "hello") == RetryAfter(UNREACHED_SECONDS)


async def test_nothing_is_sent_after_the_end(line: Line) -> None:
    message = await line.says()
    await line.stop()
    assert isinstance(await line.channel.send(message.reply_to, "the last one"), Sent)
    await line.channel.close()
    await line.channel.close()
    assert await line.channel.send(message.reply_to, "too late") is NotSent.REJECTED
    assert await line.channel.begin(message.reply_to) is None


# -- tokens ------------------------------------------------------------------------------------------------------------


async def test_a_token_is_kept_and_renewed_before_its_end(fake: FakeDingTalk, line: Line) -> None:
    message = await late(line)
    for _ in range(2):
        await line.channel.send(message.reply_to, "hello")
    assert len(fake.tokens) == 1
    line.clock._now += fake.life - RENEW_SECONDS + 1
    await line.channel.send(message.reply_to, "hello")
    assert len(fake.tokens) == 2


async def test_a_dead_token_is_replaced_before_the_message_goes_out(fake: FakeDingTalk, line: Line) -> None:
    message = await late(line)
    await line.channel.send(message.reply_to, "one")
    fake.revoke()
    assert isinstance(await line.channel.send(message.reply_to, "two"), Sent)
    assert (fake.texts(), len(fake.tokens)) == (["one", "two"], 2)


async def test_a_token_that_stays_dead_is_no_loop(fake: FakeDingTalk, line: Line) -> None:
    message = await late(line)
    fake.fail("private", *[Fault(status=401, code="InvalidAuthentication")] * 9)
    assert await line.channel.send(message.reply_to, "hello") is NotSent.REAUTHENTICATE
    assert fake.calls.count("private") == 2


async def test_a_secret_that_gives_no_token(fake: FakeDingTalk, line: Line) -> None:
    message = await late(line)
    fake.secret = "rotated-fake"
    assert await line.channel.send(message.reply_to, "hello") is NotSent.REAUTHENTICATE


@pytest.mark.parametrize("body", [b"{}", b'{"accessToken":"x-fake","expireIn":0}', b"<html>"])
async def test_a_token_that_is_none(fake: FakeDingTalk, line: Line, body: bytes) -> None:
    message = await late(line)
    fake.fail("token", Fault(body=body))
    assert await line.channel.send(message.reply_to, "hello") is NotSent.UNKNOWN
    assert "private" not in fake.calls


async def test_two_bots_have_two_tokens(fake: FakeDingTalk, line: Line) -> None:
    message = await late(line)
    await line.channel.send(message.reply_to, "one")
    async with line_on(fake) as other:
        await expire(other)
        await other.channel.send(message.reply_to, "two")
    assert (line.hidden, other.hidden) == (fake.tokens[:1], fake.tokens[1:])


# -- size and pace -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["字" * 9_000, '"\n' * 5_000, "🤖" * 4_000, "\x01x" * 9_000])
@pytest.mark.parametrize("over", [False, True])
async def test_no_text_is_longer_than_either_way_takes(fake: FakeDingTalk, line: Line, text: str, over: bool) -> None:
    message = await (late(line) if over else line.says())
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    assert (await delivery.deliver(message.reply_to, (text,))).end is End.SENT
    assert "".join(fake.texts()) == sendable(text)
    assert max(len(json.dumps({"content": part}, ensure_ascii=False).encode()) for part in fake.texts()) <= 15_000
    await delivery.close(0)


def test_what_no_message_can_hold_is_left_out() -> None:
    assert sendable("a\x00b\x07c\td\ne\ud800") == "abc\td\ne?"


async def test_twenty_a_minute_and_the_rest_waits(fake: FakeDingTalk, line: Line) -> None:
    message = await line.says()
    for number in range(20):
        assert isinstance(await line.channel.send(message.reply_to, str(number)), Sent)
    assert await line.channel.send(message.reply_to, "20") == RetryAfter(60)
    other = await line.says(group=GROUP)
    assert isinstance(await line.channel.send(other.reply_to, "elsewhere"), Sent)
    line.clock._now += 60
    assert isinstance(await line.channel.send(message.reply_to, "20"), Sent)

"""Odd and hostile things on Discord's wire: none ends the bot, loses the next message, or tells what was said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridges.delivery import Delivery, End
from bridges.message import NotSent, RetryAfter, Sent
from bridges.split import split_lossless
from bridges.state import BotKey
from bridges.supervise import Link, Supervisor
from bridges.text.discord_calls import ATTEMPT_SECONDS, BANNED_SECONDS
from tests.bridges.bench import eventually
from tests.channels.around import RecordingInbox
from tests.channels.discord import HOME, channel_at, connected, pass_pause, place, running
from tests.fakes.clock import FakeClock
from tests.fakes.discord import GENERAL, ME, FakeDiscord, Obj
from tests.fakes.discord.payloads import thread

SEND = r"POST /channels/\d+/messages$"
SECRET = "what nobody may read in a log"


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as made:
        yield made


@pytest.fixture
def inbox() -> RecordingInbox:
    return RecordingInbox()


def texts(inbox: RecordingInbox) -> list[str]:
    return [message.text for message in inbox.messages]


# -- what comes in -----------------------------------------------------------------------------------------------------

ODD: list[tuple[str, Obj]] = [
    ("MESSAGE_CREATE", {}),
    ("MESSAGE_CREATE", {"id": "1", "content": SECRET}),
    ("MESSAGE_CREATE", {"id": "x", "channel_id": "1", "content": SECRET}),
    ("MESSAGE_CREATE", {"author": None}),
    ("MESSAGE_CREATE", {"author": {"id": "5"}}),
    ("MESSAGE_CREATE", {"content": None}),
    ("MESSAGE_CREATE", {"content": 7}),
    ("MESSAGE_CREATE", {"mentions": None}),
    ("MESSAGE_CREATE", {"mentions": [{"id": "5"}]}),
    ("MESSAGE_CREATE", {"attachments": [{}]}),
    ("MESSAGE_CREATE", {"attachments": [{"id": "1", "filename": 5, "size": "big", "url": None, "proxy_url": None}]}),
    ("MESSAGE_CREATE", {"sticker_items": [{"id": "1"}]}),
    ("MESSAGE_CREATE", {"type": "default"}),
    ("MESSAGE_CREATE", {"type": 4_000}),
    ("MESSAGE_CREATE", {"type": 19, "message_reference": {}, "referenced_message": {}}),
    ("MESSAGE_CREATE", {"guild_id": "77", "member": None}),
    ("MESSAGE_CREATE", {"timestamp": "yesterday"}),
    ("INTERACTION_CREATE", {}),
    ("INTERACTION_CREATE", {"id": "1", "type": 2, "data": None}),
    ("INTERACTION_CREATE", {"id": "1", "type": 99, "token": SECRET}),
    ("THREAD_CREATE", {}),
    ("CHANNEL_CREATE", {"id": "1", "type": 77}),
    ("GUILD_CREATE", {"id": "5"}),
    ("GUILD_DELETE", {}),
    ("USER_UPDATE", {"id": "not me"}),
    ("NEVER_HEARD_OF", {"content": SECRET}),
]


@pytest.mark.parametrize("number", range(len(ODD)))
async def test_an_event_that_makes_no_sense_costs_at_most_the_link(
    fake: FakeDiscord, inbox: RecordingInbox, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, fields = ODD[number]
    whole = fake.write.message(SECRET) if kind == "MESSAGE_CREATE" and "id" not in fields and fields else {}
    channel = channel_at(fake)
    supervisor = Supervisor(BotKey("discord", "ops"), channel, inbox, redact=str, chance=lambda: 0.0)
    task = asyncio.create_task(supervisor.run())
    try:
        await inbox.until(lambda: inbox.ups == 1)
        await fake.gateway.dispatch(kind, whole | fields)
        await fake.gateway.taken()
        await eventually(lambda: supervisor.health.link is Link.UP)
        await fake.until(lambda: any(session.link is not None for session in fake.gateway.sessions.values()))
        await fake.deliver(fake.write.message("next"))
        await inbox.until(lambda: "next" in texts(inbox))
    finally:
        task.cancel()
        await asyncio.wait({task})
    told = capsys.readouterr()
    assert SECRET not in told.out + told.err + str(supervisor.health.error)


@pytest.mark.parametrize("raw", ["no json", "[]", "null", '{"op": "x"}', '{"op": 0, "t": 5, "d": 5}', "{" * 10_000])
async def test_a_frame_that_is_none_costs_at_most_the_link(fake: FakeDiscord, inbox: RecordingInbox, raw: str) -> None:
    channel = channel_at(fake)
    supervisor = Supervisor(BotKey("discord", "ops"), channel, inbox, redact=str, chance=lambda: 0.0)
    task = asyncio.create_task(supervisor.run())
    try:
        await inbox.until(lambda: inbox.ups == 1)
        for link in list(fake.gateway.links):
            await link.send_str(raw)
        await fake.gateway.taken()
        await eventually(lambda: supervisor.health.link is Link.UP)
        await fake.until(lambda: any(session.link is not None for session in fake.gateway.sessions.values()))
        await fake.deliver(fake.write.message("next"))
        await inbox.heard(1)
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_an_answer_to_a_message_that_is_gone_is_not_addressed_and_quotes(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    reference = {"type": 0, "message_id": "5", "channel_id": str(GENERAL)}
    async with connected(fake, inbox=inbox):
        for resolved in ({"referenced_message": None}, {}):
            answer = fake.write.message("yes", where=GENERAL, type=19, message_reference=reference)
            await fake.deliver(answer | resolved)
        first, second = await inbox.heard(2)
    assert [(each.addressed, each.quoted) for each in (first, second)] == [(False, True)] * 2


@pytest.mark.parametrize("kind", [10, 11, 12])
async def test_a_post_in_a_forum_and_threads_of_all_kinds_are_answered_where_they_are(
    fake: FakeDiscord, inbox: RecordingInbox, kind: int
) -> None:
    """Its parent is none the session was told of, as a forum may be."""
    post = 9_009_000_000_000_009
    fake.threads[post] = {**thread(post, parent=5, owner=1), "type": kind}
    async with connected(fake, inbox=inbox) as channel:
        await fake.deliver(fake.write.message(f"<@{ME}> hello", where=post))
        (message,) = await inbox.heard(1)
        assert isinstance(await channel.send(message.reply_to, "hi"), Sent)
    assert (message.chat.chat, message.addressed) == (str(post), True)
    assert fake.texts(post) == ["hi"]


async def test_a_thread_that_is_deleted_blocks_and_nothing_else(fake: FakeDiscord, inbox: RecordingInbox) -> None:
    async with connected(fake, inbox=inbox) as channel:
        at = fake.write.message(f"<@{ME}> hello", where=GENERAL)
        await fake.deliver(at)
        (message,) = await inbox.heard(1)
        assert isinstance(await channel.send(message.reply_to, "hi"), Sent)
        fake.fail(SEND, status=404, code=10003)
        assert await channel.send(message.reply_to, "again") is NotSent.BLOCKED
        assert isinstance(await channel.send(place(), "elsewhere"), Sent)


# -- what goes out -----------------------------------------------------------------------------------------------------


async def test_a_send_that_is_cancelled_in_a_global_limit_holds_no_other_back(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    limit: Obj = {"retry_after": 25.0, "global": True}
    async with connected(fake, inbox=inbox) as channel:
        fake.fail(SEND, status=429, headers={"Via": "1.1 google"}, body=limit)
        sending = asyncio.create_task(channel.send(place(), "one"))
        await fake.until(lambda: fake.count(SEND) == 1)
        await eventually(lambda: _limited(channel))
        sending.cancel()
        await asyncio.wait({sending})
        async with asyncio.timeout(5):
            assert isinstance(await channel.send(place(), "two"), Sent)
    assert fake.texts(HOME) == ["two"]


async def test_an_attempt_that_ends_in_a_global_limit_is_followed_by_one_that_arrives(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    clock = FakeClock()
    async with connected(fake, clock, inbox=inbox) as channel:
        fake.fail(SEND, status=429, headers={"Via": "1.1 google"}, body={"retry_after": 25.0, "global": True})
        sending = asyncio.create_task(channel.send(place(), "one"))
        await eventually(lambda: _limited(channel))
        await clock.advance(ATTEMPT_SECONDS)
        await pass_pause(clock, sending)
        async with asyncio.timeout(5):
            assert isinstance(await sending, Sent)


def _limited(channel: object) -> bool:
    client = channel._api._client  # type: ignore[attr-defined]  # the SDK shows this nowhere
    return not client.http._global_over.is_set()


async def test_a_page_of_the_network_in_front_is_a_limit_without_an_end(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    async with connected(fake, inbox=inbox) as channel:
        fake.fail(SEND, status=429, html="<html>error code: 1015</html>", headers={"Retry-After": "3600"})
        assert await channel.send(place(), "hi") == RetryAfter(BANNED_SECONDS)
        fake.fail(SEND, status=403, html="<html>error code: 1020</html>")
        assert await channel.send(place(), "hi") is NotSent.BLOCKED
    fake.fail("GET /users/@me", status=429, html="<html>error code: 1015</html>")
    banned = channel_at(fake)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        await banned.run(inbox)
    await banned.close()


@pytest.mark.parametrize("body", [{}, {"id": "1"}, {"id": "x", "channel_id": None}])
async def test_a_send_whose_answer_makes_no_sense_is_repeated_and_arrives_once(
    fake: FakeDiscord, inbox: RecordingInbox, body: Obj
) -> None:
    clock = FakeClock()
    async with connected(fake, clock, inbox=inbox) as channel:
        fake.fail(SEND, status=201, body=body, effect=True)
        sending = asyncio.create_task(channel.send(place(), "hi"))
        await pass_pause(clock, sending)
        assert isinstance(await sending, Sent)
    assert fake.texts(HOME) == ["hi"]


async def test_a_token_that_dies_in_the_middle_ends_the_delivery_and_is_tried_once_more(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    async with connected(fake, inbox=inbox) as channel:
        delivery = Delivery(channel, split_lossless)
        assert (await delivery.deliver(place(), ["one"])).end is End.SENT
        fake.token = "another"
        assert (await delivery.deliver(place(), ["two", "three"])).end is End.UNAUTHENTICATED
        await delivery.close(0)
    assert fake.count(SEND) == 3
    assert fake.texts(HOME) == ["one"]


async def test_a_program_that_is_told_to_end_in_the_middle_of_a_send_ends_in_time(
    fake: FakeDiscord, inbox: RecordingInbox
) -> None:
    channel = channel_at(fake)
    hold = asyncio.Event()
    async with running(channel, inbox):
        delivery = Delivery(channel, split_lossless)
        fake.fail(SEND, hold=hold, after=1)
        delivering = asyncio.create_task(delivery.deliver(place(), ["one", "two", "three"]))
        await fake.until(lambda: fake.count(SEND) == 2)
        async with asyncio.timeout(5):
            await delivery.close(0.1)
            assert (await delivering).end is End.UNKNOWN
    async with asyncio.timeout(5):
        await channel.close()
    hold.set()
    assert fake.texts(HOME) == ["one"]

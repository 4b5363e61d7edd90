"""WhatsApp: who gets in through the webhook, what it answers, and how runs begin and end."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiohttp
import pytest
from multidict import CIMultiDict

from bridges.doors import MAX_CONNECTIONS
from bridges.message import Acceptance, ChannelStopped, InboundMessage, Sent, Stop
from bridges.text.whatsapp_webhook import LARGEST_POST, MAX_POSTS, READ_SECONDS
from tests.bridges.bench import eventually
from tests.channels.around import RecordingInbox
from tests.channels.whatsapp import Line, platform
from tests.fakes.whatsapp import (
    ACCESS_TOKEN,
    APP_SECRET,
    VERIFY_TOKEN,
    FakeWhatsApp,
    Fault,
    change,
    message,
    post,
    status,
    value,
)


@pytest.fixture
async def fake() -> AsyncIterator[FakeWhatsApp]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeWhatsApp) -> AsyncIterator[Line]:
    async with Line(fake).started() as line:
        yield line


async def test_the_verification_gets_its_challenge_back(fake: FakeWhatsApp, line: Line) -> None:
    assert await fake.verify(line.webhook) == (200, "1158201444")


@pytest.mark.parametrize("query", [{"hub.verify_token": "wrong"}, {"hub.verify_token": "é"}, {"hub.mode": "other"}])
async def test_a_wrong_verification_gets_nothing(fake: FakeWhatsApp, line: Line, query: dict[str, str]) -> None:
    assert await fake.verify(line.webhook, **query) == (403, "")


async def test_what_is_signed_over_the_raw_bytes_is_taken(line: Line) -> None:
    message = await line.says("héllo https://example.org/ 👋")
    assert message.text == "héllo https://example.org/ 👋"


@pytest.mark.parametrize("signature", ["", "sha256=", "sha256=" + "0" * 64, "sha1=abc", "sha256=ü"])
async def test_what_is_not_signed_is_not_even_parsed(fake: FakeWhatsApp, line: Line, signature: str) -> None:
    assert await fake.deliver(line.webhook, b"no json", signature=signature) == 403
    assert await fake.deliver(line.webhook, post(change(value(message("hi")))), signature=signature) == 403
    assert line.inbox.messages == []


async def test_signed_nonsense_is_acknowledged_for_it_never_gets_better(fake: FakeWhatsApp, line: Line) -> None:
    assert await fake.deliver(line.webhook, b"no json") == 200
    assert await fake.deliver(line.webhook, {"entry": [{"changes": [{"field": "messages", "value": 3}]}]}) == 200


async def test_three_megabytes_are_taken_and_more_than_we_hold_is_not(fake: FakeWhatsApp, line: Line) -> None:
    large = post(change(value(message("x" * (3 * 1024 * 1024)))))
    assert await fake.deliver(line.webhook, large) == 200
    assert len(line.inbox.messages[0].text) == 3 * 1024 * 1024
    assert await fake.deliver(line.webhook, b"x" * (LARGEST_POST + 1)) == 413


@pytest.mark.parametrize(("method", "path", "expected"), [("PUT", "/webhook", 405), ("GET", "/other", 404)])
async def test_nothing_else_is_there(line: Line, method: str, path: str, expected: int) -> None:
    url = line.webhook.removesuffix("/webhook") + path
    async with aiohttp.ClientSession() as session, session.request(method, url) as answer:
        assert answer.status == expected


async def test_a_post_is_acknowledged_only_when_all_of_it_is_safe(line: Line) -> None:
    """Both are delivered again then; the one that was safe already is a duplicate."""
    line.inbox.answers.extend([Acceptance.ACCEPTED, OSError("disk full")])
    first, second = message("first"), message("second")
    assert await line.posted(first, second) == 503
    assert await line.posted(first, second) == 200
    assert [each.text for each in line.inbox.messages] == ["first", "first", "second"]


async def test_the_answer_waits_for_the_claim(fake: FakeWhatsApp) -> None:
    claiming, claimed = asyncio.Event(), asyncio.Event()

    class SlowInbox(RecordingInbox):
        async def accept(self, message: object) -> Acceptance:
            claiming.set()
            await claimed.wait()
            return Acceptance.ACCEPTED

    line = Line(fake)
    line.inbox = SlowInbox()
    await line.start()
    posting = asyncio.create_task(line.posted(message("hi")))
    await claiming.wait()
    assert not posting.done()
    claimed.set()
    assert await posting == 200
    await line.stop()
    await line.channel.close()


async def test_posts_beside_each_other_keep_their_order(fake: FakeWhatsApp) -> None:
    free = asyncio.Event()

    class Slow(RecordingInbox):
        async def accept(self, message: InboundMessage) -> Acceptance:
            if message.text == "0":
                self.changed.set()
                await free.wait()
            return await super().accept(message)

    line = Line(fake)
    line.inbox = Slow()
    async with line.started():
        line.inbox.changed.clear()
        first = asyncio.create_task(line.posted(message("0")))
        await line.inbox.changed.wait()
        others = [asyncio.create_task(line.posted(message(str(number)))) for number in range(1, 5)]
        for _ in range(10):  # more than a post needs
            await fake.verify(line.webhook)
        assert line.inbox.messages == []
        free.set()
        assert await asyncio.gather(first, *others) == [200] * 5
        assert line.inbox.messages[0].text == "0"


async def _half_a_post(webhook: str) -> asyncio.StreamWriter:
    parts = urlsplit(webhook)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    signed = "X-Hub-Signature-256: sha256=" + "0" * 64
    writer.write(f"POST /webhook HTTP/1.1\r\nHost: x\r\n{signed}\r\nContent-Length: 10\r\n\r\n12345".encode())
    await writer.drain()
    return writer


async def test_bodies_that_never_end_hold_nothing_for_long(line: Line) -> None:
    halves = [await _half_a_post(line.webhook) for _ in range(MAX_POSTS)]
    await line.clock.sleeping(MAX_POSTS)
    assert await line.posted(message("hi")) == 503
    await line.clock.advance(READ_SECONDS)
    for writer in halves:
        writer.close()
    await eventually(lambda: line.clock.sleepers == 0)
    assert await line.posted(message("hi")) == 200


def signed(body: bytes) -> str:
    return "sha256=" + hmac.new(APP_SECRET.encode(), body, hashlib.sha256).hexdigest()


async def put(line: Line, body: bytes, *headers: tuple[str, str]) -> int:
    """Post with exactly these headers; return the status."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(line.webhook, data=body, headers=CIMultiDict(headers)) as answer,
    ):
        return answer.status


async def test_whoever_opens_connections_and_says_nothing_gets_only_so_many(line: Line) -> None:
    parts = urlsplit(line.webhook)
    idle = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(MAX_CONNECTIONS)]
    with pytest.raises(aiohttp.ClientConnectionError):
        await line.posted(message("hi"))
    for _, writer in idle[:8]:
        writer.close()
        await writer.wait_closed()
    assert any([await _reached(line) for _ in range(20)]), "there is room again once the server has noticed"
    for _, writer in idle:
        writer.close()


async def _reached(line: Line) -> bool:
    try:
        return await line.posted(message("hi")) == 200
    except aiohttp.ClientConnectionError:
        return False


async def test_a_body_without_a_signature_is_not_waited_for(line: Line) -> None:
    parts = urlsplit(line.webhook)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
    assert b"403" in await reader.readline()
    writer.close()


async def test_of_two_signatures_the_first_one_counts(line: Line) -> None:
    body = json.dumps(post(change(value(message("hi"))))).encode()
    good, bad = ("X-Hub-Signature-256", signed(body)), ("X-Hub-Signature-256", "sha256=" + "0" * 64)
    assert await put(line, body, bad, good) == 403
    assert line.inbox.messages == []
    assert await put(line, body, good, bad) == 200
    assert [each.text for each in line.inbox.messages] == ["hi"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x", ""])
async def test_what_the_body_says_it_is_does_not_matter(line: Line, kind: str) -> None:
    body = json.dumps(post(change(value(message("hi"))))).encode()
    assert await put(line, body, ("X-Hub-Signature-256", signed(body)), ("Content-Type", kind)) == 200
    assert [each.text for each in line.inbox.messages] == ["hi"]


async def test_a_body_that_grows_when_it_is_unpacked_is_bounded_too(line: Line) -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    headers = (("X-Hub-Signature-256", signed(bomb)), ("Content-Encoding", "gzip"))
    assert await put(line, bomb, *headers) in {400, 403, 413}
    assert await line.posted(message("hi")) == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{}", b"\xff", b'{"entry": null}', b"[" * 100_000, b'{"entry": ' + b"[" * 100_000],
)
async def test_whatever_is_signed_gets_an_answer(fake: FakeWhatsApp, line: Line, body: bytes) -> None:
    assert await fake.deliver(line.webhook, body) == 200
    assert await line.posted(message("hi")) == 200


async def test_a_thousand_messages_in_one_post_are_acknowledged_together(line: Line) -> None:
    assert await line.posted(*(message(str(number)) for number in range(1_000))) == 200
    assert [each.text for each in line.inbox.messages] == [str(number) for number in range(1_000)]


async def test_a_status_may_come_before_the_answer_to_the_send(fake: FakeWhatsApp, line: Line) -> None:
    """Also one of a message that this program never sent."""
    said = await line.says()
    for state in ("read", "delivered", "sent", "failed"):
        assert await line.posted(statuses=(status("wamid.OUT00000001", state, 131026 if state == "failed" else None),))
    assert isinstance(await line.channel.send(said.reply_to, "hello"), Sent)
    assert fake.texts(said.sender) == ["hello"]


async def test_direct_messages_that_were_taken_are_marked_as_read(fake: FakeWhatsApp, line: Line) -> None:
    line.inbox.answers.extend([Acceptance.DENIED, Acceptance.ACCEPTED, Acceptance.ACCEPTED])
    await line.says("denied")
    await line.says("in a group", group_id="G")
    taken = await line.says("taken")
    await eventually(lambda: bool(fake.read))
    assert fake.read == [taken.id]
    assert fake.typed == []


async def test_a_read_mark_that_fails_changes_nothing(fake: FakeWhatsApp, line: Line) -> None:
    fake.fail("read", Fault(status=500), Fault(drop=True))
    await line.says()
    await line.says()
    await eventually(lambda: fake.calls.count("read") == 2)
    taken = await line.says()
    await eventually(lambda: fake.read == [taken.id])


# -- runs --------------------------------------------------------------------------------------------------------------


async def test_five_starts_hear_and_answer_a_message_once(fake: FakeWhatsApp) -> None:
    line = Line(fake)
    for _ in range(4):
        await line.start()
        await line.stop()
    await line.start()
    message = await line.says()
    await line.channel.send(message.reply_to, "hello")
    assert (len(line.inbox.messages), fake.texts(message.sender)) == (1, ["hello"])
    assert line.inbox.ups == 5
    await line.stop()
    await line.channel.close()
    await line.channel.close()


async def test_when_a_run_is_over_nobody_listens_and_replies_still_go_out(fake: FakeWhatsApp, line: Line) -> None:
    message = await line.says()
    await line.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await fake.verify(line.webhook)
    await line.channel.send(message.reply_to, "late")
    assert fake.texts(message.sender) == ["late"]


async def test_a_post_that_is_open_when_the_run_ends_is_not_acknowledged(fake: FakeWhatsApp) -> None:
    claiming = asyncio.Event()

    class StuckInbox(RecordingInbox):
        async def accept(self, message: object) -> Acceptance:
            claiming.set()
            await asyncio.Event().wait()
            raise AssertionError

    line = Line(fake)
    line.inbox = StuckInbox()
    await line.start()
    posting = asyncio.create_task(line.posted(message("hi")))
    await claiming.wait()
    async with asyncio.timeout(4):
        await line.stop()
    with pytest.raises(aiohttp.ClientError):
        await posting
    await line.channel.close()


async def test_a_port_that_is_taken_ends_the_run(fake: FakeWhatsApp, line: Line) -> None:
    second = Line(fake, port=urlsplit(line.webhook).port or 0)
    await second.start()
    assert isinstance(await second.ended(), OSError)
    await second.channel.close()


@pytest.mark.parametrize("code", [190, 10, 0, 200, 299])
async def test_a_token_that_is_refused_stops_the_bot(fake: FakeWhatsApp, code: int) -> None:
    fake.fail("number", Fault(status=400, code=code))
    line = Line(fake)
    await line.start()
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert stopped.why is Stop.NEEDS_LOGIN
    assert "access token" in str(stopped)
    assert line.inbox.ups == 0
    await line.channel.close()


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(code=2), Fault(code=100), Fault(drop=True)])
async def test_trouble_that_says_nothing_of_the_token_keeps_nobody_from_being_heard(
    fake: FakeWhatsApp, fault: Fault
) -> None:
    fake.fail("number", fault)
    async with Line(fake).started() as line:
        assert (await line.says()).text == "hi"


async def test_a_failed_delivery_is_recorded(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    assert await line.posted(statuses=(status("wamid.1", "failed", 131047),)) == 200
    said = capsys.readouterr()
    assert "131047" in said.out + said.err
    assert line.task is not None
    assert not line.task.done()


async def test_an_account_that_is_restricted_stops_the_bot_after_the_post_is_acknowledged(line: Line) -> None:
    assert await line.posted(message("hi"), statuses=(status("wamid.1", "failed", 131031),)) == 200
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert (stopped.why, "131031" in str(stopped)) == (Stop.MISCONFIGURED, True)
    assert [each.text for each in line.inbox.messages] == ["hi"]


async def test_no_secret_and_no_text_gets_into_the_log(
    fake: FakeWhatsApp, line: Line, capsys: pytest.CaptureFixture[str]
) -> None:
    await fake.verify(line.webhook, **{"hub.verify_token": "a wrong word"})
    await fake.deliver(line.webhook, b'{"entry": "private words"}')
    await fake.deliver(line.webhook, json.dumps({"private words": 1}).encode(), signature="sha256=0")
    said = await line.says("private words")
    fake.fail("send", Fault(code=100), Fault(drop=True))
    await line.channel.send(said.reply_to, "private words")
    await line.channel.send(said.reply_to, "private words")
    logged = "".join(capsys.readouterr())
    assert "not signed with app_secret" in logged
    for secret in (ACCESS_TOKEN, APP_SECRET, VERIFY_TOKEN, "a wrong word", "private words", said.sender):
        assert secret not in logged

"""WhatsApp: what is sent and how, what each refusal means, and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridges.delivery import Delivery, End
from bridges.http import CALL_SECONDS
from bridges.message import (
    ChannelStopped,
    EditsMessages,
    InboundAttachment,
    NotSent,
    RetryAfter,
    SendOutcome,
    Sent,
    Stop,
)
from bridges.split import joined, split_lossless
from bridges.text.whatsapp import WhatsAppChannel
from bridges.text.whatsapp_codes import MEANINGS, MOST_REFUSALS, Slower
from bridges.text.whatsapp_graph import UNREACHED_SECONDS
from commands.model import AttachmentKind
from i18n import Language
from tests.bridges.bench import eventually
from tests.channels.whatsapp import ALICE, Line, platform
from tests.contract.desk import desk_at
from tests.contract.rows.whatsapp import WhatsAppPlatform
from tests.fakes.harness import FakeHarness
from tests.fakes.whatsapp import FakeWhatsApp, Fault

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
USER = "US.13491208655302741918"
TAKEN_BUT_UNHEARD = Fault(status=200, accepted=True, drop=True)


@pytest.fixture
async def fake() -> AsyncIterator[FakeWhatsApp]:
    async with platform() as fake:
        yield fake


@pytest.fixture
async def line(fake: FakeWhatsApp) -> AsyncIterator[Line]:
    async with Line(fake).started() as line:
        yield line


async def send(line: Line, text: str = "hello") -> SendOutcome:
    return await line.channel.send((await line.says()).reply_to, text)


async def test_a_person_is_written_to_in_plain_text_without_previews(fake: FakeWhatsApp, line: Line) -> None:
    outcome = await send(line, "see https://example.org")
    (sent,) = fake.sent
    assert outcome == Sent(sent.id)  # type: ignore[arg-type]  # the fake's ids are plain strings
    assert sent.body == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": ALICE,
        "type": "text",
        "text": {"body": "see https://example.org", "preview_url": False},
    }


@pytest.mark.parametrize(
    ("sender", "fields", "expected"),
    [
        (None, {"from_user_id": USER}, {"recipient_type": "individual", "recipient": USER}),
        (ALICE, {"from_user_id": USER}, {"recipient_type": "individual", "to": ALICE, "recipient": USER}),
        (ALICE, {"group_id": "G", "from_user_id": USER}, {"recipient_type": "group", "to": "G"}),
    ],
)
async def test_where_a_reply_goes(
    fake: FakeWhatsApp, line: Line, sender: str | None, fields: dict[str, str], expected: dict[str, str]
) -> None:
    message = await line.says(sender=sender, **fields)
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    body = fake.sent[-1].body
    assert {name: body[name] for name in ("recipient_type", "to", "recipient") if name in body} == expected


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(code=131047), NotSent.WINDOW_CLOSED),
        (Fault(code=131049), NotSent.BLOCKED),
        (Fault(code=131026), NotSent.BLOCKED),
        (Fault(code=131030), NotSent.BLOCKED),
        (Fault(code=131021), NotSent.BLOCKED),
        (Fault(code=131020), NotSent.BLOCKED),
        (Fault(code=131208), NotSent.BLOCKED),
        (Fault(code=100), NotSent.REJECTED),
        (Fault(code=131008), NotSent.REJECTED),
        (Fault(code=131009), NotSent.REJECTED),
        (Fault(code=131062), NotSent.REJECTED),
        (Fault(code=999999), NotSent.REJECTED),
        (Fault(status=404, body=b"<html>"), NotSent.REJECTED),
        (Fault(status=400, code=4), RetryAfter(120)),
        (Fault(status=400, code=80007), RetryAfter(120)),
        (Fault(status=429), RetryAfter(120)),
        (Fault(status=429, headers=(("Retry-After", "300"),)), RetryAfter(300)),
        (Fault(code=131056), RetryAfter(6)),
        (Fault(code=131056, headers=(("Retry-After", "9"),)), RetryAfter(9)),
        (Fault(code=130429), RetryAfter(1)),
        (Fault(status=500, code=131000), RetryAfter(2)),
        (Fault(status=503, code=2), RetryAfter(2)),
        (Fault(status=500, code=131016), RetryAfter(2)),
        (Fault(status=500), NotSent.UNKNOWN),
        (Fault(status=502, body=b"<html>"), NotSent.UNKNOWN),
        (Fault(status=200, body=b"<html>"), NotSent.UNKNOWN),
        (Fault(drop=True), NotSent.UNKNOWN),
        (TAKEN_BUT_UNHEARD, NotSent.UNKNOWN),
        (Fault(status=200, body=b"{}"), Sent(None)),
        (Fault(status=200, code=131047), NotSent.WINDOW_CLOSED),
    ],
)
async def test_what_an_answer_means(fake: FakeWhatsApp, line: Line, fault: Fault, outcome: SendOutcome) -> None:
    fake.fail("send", fault)
    assert await send(line) == outcome
    assert fake.calls.count("send") == 1
    assert line.task is not None
    assert not line.task.done()


@pytest.mark.parametrize(
    ("code", "outcome", "why"),
    [
        (190, NotSent.REAUTHENTICATE, Stop.NEEDS_LOGIN),
        (10, NotSent.REAUTHENTICATE, Stop.NEEDS_LOGIN),
        (0, NotSent.REAUTHENTICATE, Stop.NEEDS_LOGIN),
        (230, NotSent.REAUTHENTICATE, Stop.NEEDS_LOGIN),
        (368, NotSent.BLOCKED, Stop.MISCONFIGURED),
        (131031, NotSent.BLOCKED, Stop.MISCONFIGURED),
        (131042, NotSent.BLOCKED, Stop.MISCONFIGURED),
        (131048, NotSent.BLOCKED, Stop.MISCONFIGURED),
    ],
)
async def test_what_only_a_person_can_mend_stops_the_bot(
    fake: FakeWhatsApp, line: Line, code: int, outcome: SendOutcome, why: Stop
) -> None:
    fake.fail("send", Fault(code=code))
    assert await send(line) == outcome
    stopped = await line.ended()
    assert isinstance(stopped, ChannelStopped)
    assert (stopped.why, str(code) in str(stopped)) == (why, True)


@pytest.mark.parametrize(("code", "waits"), [(131056, [6, 12, 18]), (130429, [1, 4, 16]), (131016, [2, 4, 8])])
async def test_refusals_in_a_row_wait_longer_and_a_success_ends_the_row(
    fake: FakeWhatsApp, line: Line, code: int, waits: list[float]
) -> None:
    message, other = await line.says(), await line.says(sender="16505550000")
    fake.fail("send", *[Fault(code=code)] * 4, None, Fault(code=code))
    outcomes = [await line.channel.send(message.reply_to, "hello") for _ in waits]
    assert outcomes == [RetryAfter(seconds) for seconds in waits]
    assert await line.channel.send(other.reply_to, "hello") == RetryAfter(waits[0])
    assert isinstance(await line.channel.send(message.reply_to, "hello"), Sent)
    assert await line.channel.send(message.reply_to, "hello") == RetryAfter(waits[0])


@pytest.mark.parametrize("code", [131056, 130429, 131016, 4])
def test_however_many_refusals_there_are_the_wait_has_a_bound(code: int) -> None:
    slower = MEANINGS[code].outcome
    assert isinstance(slower, Slower)
    assert slower.wait(100_000) == slower.wait(MOST_REFUSALS) < 86_400


async def test_what_may_have_arrived_is_never_sent_again(fake: FakeWhatsApp, line: Line) -> None:
    message = await line.says()
    fake.fail("send", TAKEN_BUT_UNHEARD)
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    report = await delivery.deliver(message.reply_to, ["one", "two"])
    assert report.end is End.UNKNOWN
    assert fake.texts(ALICE) == ["one"]


async def test_an_answer_that_never_comes_leaves_the_outcome_open(fake: FakeWhatsApp, line: Line) -> None:
    message = await line.says()
    fake.fail("send", Fault(hang=True))
    sending = asyncio.create_task(line.channel.send(message.reply_to, "hello"))
    await eventually(lambda: "send" in fake.calls)
    await line.clock.advance(CALL_SECONDS)
    assert await sending is NotSent.UNKNOWN


async def test_what_never_left_may_be_sent_again(fake: FakeWhatsApp) -> None:
    async with Line(fake).started() as line:
        target = (await line.says()).reply_to
    line = Line(fake, api="http://127.0.0.1:1/v25.0")
    await line.start()
    assert await line.channel.send(target, "hello") == RetryAfter(UNREACHED_SECONDS)
    await line.stop()
    await line.channel.close()
    assert await line.channel.send(target, "hello") is NotSent.REJECTED


async def test_a_pair_that_is_too_fast_is_waited_for(fake: FakeWhatsApp, line: Line) -> None:
    message = await line.says()
    fake.fail("send", Fault(code=131056), Fault(code=131056))
    delivery = Delivery(line.channel, split_lossless, clock=line.clock)
    delivering = asyncio.create_task(delivery.deliver(message.reply_to, ["hello"]))

    async def refused(times: int) -> None:
        await eventually(lambda: fake.calls.count("send") == times and line.clock.soonest < CALL_SECONDS)

    await refused(1)
    await line.clock.advance(5.9)
    await refused(1)
    await line.clock.advance(0.1)
    await refused(2)
    await line.clock.advance(11.9)
    await refused(2)
    await line.clock.advance(0.1)
    assert (await delivering).end is End.SENT
    assert fake.texts(ALICE) == ["hello"]


async def test_a_cancelled_send_leaves_the_channel_whole(fake: FakeWhatsApp, line: Line) -> None:
    message = await line.says()
    fake.fail("send", Fault(hang=True))
    sending = asyncio.create_task(line.channel.send(message.reply_to, "lost"))
    await eventually(lambda: "send" in fake.calls)
    sending.cancel()
    await asyncio.wait({sending})
    assert isinstance(await line.channel.send(message.reply_to, "next"), Sent)


def test_segments_of_a_command_go_out_as_one_message() -> None:
    limits = WhatsAppChannel.limits
    assert joined(("a" * 1800, "b" * 1800), limits) == ("a" * 1800 + "b" * 1800,)
    parts = joined(("a" * 1800, "b" * 1800, "c" * 1800), limits)
    assert [len(part) for part in parts] == [4096, 5400 - 4096]


async def test_the_longest_text_fits(fake: FakeWhatsApp, line: Line) -> None:
    assert isinstance(await send(line, "x" * WhatsAppChannel.limits.text), Sent)
    assert await send(line, "x" * (WhatsAppChannel.limits.text + 1)) is NotSent.REJECTED


async def test_the_typing_sign_also_marks_the_message_as_read(fake: FakeWhatsApp, line: Line) -> None:
    message = await line.says()
    await line.channel.typing(message.reply_to)
    assert fake.typed == [message.id]
    group = await line.says(group_id="G")
    await line.channel.typing(group.reply_to)
    assert fake.typed == [message.id]
    fake.fail("read", Fault(drop=True))
    await line.channel.typing(message.reply_to)


async def test_nothing_can_be_edited(line: Line) -> None:
    assert not isinstance(line.channel, EditsMessages)


# -- files -------------------------------------------------------------------------------------------------------------


async def test_an_image_reaches_the_model(fake: FakeWhatsApp, tmp_path: Path) -> None:
    platform = WhatsAppPlatform(fake)
    async with FakeHarness() as host, desk_at(host, platform, tmp_path, Language.EN) as desk:
        host.world.image_models.add(host.dialect.model)
        fake.files["1"] = PNG
        await platform.says("what is it?", attachment=AttachmentKind.IMAGE)
        await eventually(lambda: platform.heard() == ["You said: what is it?"])
        await desk.settled()
        assert "image/png" in str([list(session.log) for session in host.world.sessions.values()])


async def test_a_whole_history_is_one_message_to_a_person_who_may_be_sent_one_every_six_seconds(
    fake: FakeWhatsApp, tmp_path: Path
) -> None:
    platform = WhatsAppPlatform(fake)
    async with FakeHarness() as host, desk_at(host, platform, tmp_path, Language.EN) as desk:
        await desk.bind(messages=10, length=490)
        (history,) = await desk.ask("/history 5")
        assert len(history) > 1_800, "elsewhere it would be several"
        assert all(f"{number}. " in history for number in range(1, 6))


def image(handle: str = "m1") -> InboundAttachment:
    return InboundAttachment(AttachmentKind.IMAGE, handle)


async def test_a_file_is_fetched_with_the_token_in_the_header_only(fake: FakeWhatsApp, line: Line) -> None:
    fake.files["m1"] = b"picture"
    assert await line.channel.fetch(image(), 7) == b"picture"
    assert fake.calls[-2:] == ["media", "file"]


async def test_a_file_that_is_too_large_is_not_fetched(fake: FakeWhatsApp, line: Line) -> None:
    fake.files["m1"] = b"picture"
    with pytest.raises(OSError, match="too large"):
        await line.channel.fetch(image(), 6)
    assert "file" not in fake.calls


@pytest.mark.parametrize(
    "url", ["http://lookaside.fbsbx.com/x", "https://evil.example/x", "https://fbsbx.com.evil.example/x", ""]
)
async def test_the_token_goes_to_no_other_host(fake: FakeWhatsApp, line: Line, url: str) -> None:
    fake.files["m1"] = b"picture"
    fake.file_url = url
    with pytest.raises(OSError, match="host"):
        await line.channel.fetch(image(), 100)


@pytest.mark.parametrize("fault", [Fault(code=100), Fault(status=500), Fault(drop=True)])
@pytest.mark.parametrize("call", ["media", "file"])
async def test_a_file_that_cannot_be_had_is_an_error(fake: FakeWhatsApp, line: Line, call: str, fault: Fault) -> None:
    fake.files["m1"] = b"picture"
    fake.fail(call, fault, fault)  # aiohttp itself asks again when a connection it kept turns out to be closed
    with pytest.raises(OSError):  # noqa: PT011 - whatever it says
        await line.channel.fetch(image(), 100)


@pytest.mark.parametrize("handle", ["", "../1/messages"])
async def test_what_is_no_file_is_not_asked_for(fake: FakeWhatsApp, line: Line, handle: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - whatever it says
        await line.channel.fetch(image(handle), 100)
    assert set(fake.calls) <= {"number", "media"}

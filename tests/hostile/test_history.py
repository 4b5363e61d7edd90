"""``/history`` against hosts that go wrong in every way, over real sockets and the real client.

Each ends in the right phrase; nothing of the host's answer is shown; the host counts no call that is not a read.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from commands.model import CommandResult
from harness_client.client import Address, HarnessClient
from i18n import Key, Language, Words
from tests.commands.history_cases import BROKEN, CASES, HARMLESS, Case, Pages
from tests.commands.reading import bodies, check_form
from tests.commands.rig import SECRET, SESSION, Rig
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Cut, FakeHarness, How, Session, say
from tests.fakes.harness.dialect import DIALECTS, Flavour
from tests.wire_events import page_body, text, user

ZH = Words(Language.ZH)
FLAVOURS: tuple[Flavour, ...] = ("0.1.0", "0.1.2", "0.1.5", "0.2")
LEAK = f"{SECRET} <html>".encode()
MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def _the_fake_itself_does_not_crash(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [record for record in caplog.get_records("call") if record.name == "aiohttp.server"]


@pytest.fixture(params=FLAVOURS)
async def host(request: pytest.FixtureRequest) -> AsyncIterator[FakeHarness]:
    flavour: Flavour = request.param
    async with FakeHarness(DIALECTS[flavour].generation, flavour=flavour) as host:
        yield host
        assert host.writes == []


@pytest.fixture(params=["0.1.0", "0.2"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[FakeHarness]:
    """One host of each generation, where versions make no difference."""
    flavour: Flavour = request.param
    async with FakeHarness(DIALECTS[flavour].generation, flavour=flavour) as host:
        yield host
        assert host.writes == []


def page_method(host: FakeHarness) -> str:
    return "session.history" if host.dialect.flavour == "0.1.0" else "session/page"


def cold(host: FakeHarness) -> Session:
    session = host.session(SESSION)
    session.attached = False
    return session


async def ask(host: FakeHarness, typed: str = "/history", *, clock: FakeClock | None = None) -> CommandResult:
    clock = clock or FakeClock()
    async with HarnessClient(Address.parse(host.url), clock=clock) as client:
        result = await Rig(client, clock=clock).ask(typed)
    check_form(result)
    assert SECRET not in "".join(result.segments)
    return result


def cursors(host: FakeHarness) -> list[object]:
    """The ``beforeSeq`` of the pages read; asking how far a log goes (0.1.2, 0.1.5) reads no page."""
    found: list[object] = []
    for call in host.calls:
        payload = call.payload
        assert isinstance(payload, dict)
        request = payload if call.name == "session.history" else (payload.get("args") or {}).get("request") or {}
        if call.name == page_method(host) and request.get("throughSeq") != 2**53 - 1:
            assert request["maxMessages"] == 50
            found.append(request.get("beforeSeq"))
    return found


def script(host: FakeHarness, pages: Pages) -> None:
    cold(host).script_pages(*(Cut(events, has_more=more) for events, more in pages))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_what_is_shown(either: FakeHarness, case: Case) -> None:
    script(either, case.pages)
    result = "".join((await ask(either, case.typed)).segments)
    if isinstance(case.shown, Key):
        assert result == ZH(case.shown)
    else:
        assert bodies(result) == case.shown
    assert cursors(either) == case.cursors
    assert case.cursors or either.calls == []


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_pages(either: FakeHarness, name: str) -> None:
    script(either, BROKEN[name])
    assert (await ask(either, "/history 5")).segments == (ZH(Key.HISTORY_UNAVAILABLE, reference="H-000001"),)


@pytest.mark.parametrize("name", HARMLESS)
async def test_damage_that_concerns_nobody(either: FakeHarness, name: str) -> None:
    script(either, HARMLESS[name])
    assert bodies("".join((await ask(either)).segments))


async def test_a_long_cold_session_stays_cold(host: FakeHarness) -> None:
    session = host.session(SESSION)
    session.dialogue(100)
    session.attached = False
    assert bodies("".join((await ask(host, "/history 5")).segments)) == ["a98", "u99", "a99", "u100", "a100"]
    assert not session.attached
    assert len(cursors(host)) == 1


async def test_a_session_the_host_does_not_have(host: FakeHarness) -> None:
    assert (await ask(host)).segments == (ZH(Key.HISTORY_GONE),)
    assert SESSION not in host.world.sessions


UNAVAILABLE: dict[str, How] = {
    "401": {"status": 401, "body": LEAK},
    "403": {"status": 403, "body": LEAK},
    "413": {"status": 413, "body": LEAK},
    "500": {"status": 500, "body": LEAK},
    "502": {"status": 502, "body": LEAK},
    "302": {"status": 302, "body": LEAK, "headers": {"Location": "/elsewhere"}},
    "204": {"status": 204, "body": b""},
    "text": {"content_type": "text/plain"},
    "html": {"content_type": "text/html", "body": LEAK},
    "no JSON": {"body": LEAK},
    "an empty body": {"body": b""},
    "half a body": {"body": page_body([user(1, SECRET)])[:-3]},
    "two bodies": {"body": page_body([user(1, SECRET)]) * 2},
    "NaN": {"body": page_body([user(1, SECRET)]).replace(b'"seq": 1', b'"seq": NaN')},
    "repeated keys": {"body": page_body([user(1, SECRET)]).replace(b'"seq": 1', b'"seq": 1, "seq": 1')},
    "endless nesting": {"body": b"[" * 200_000},
    "an endless number": {"body": page_body([user(1, SECRET)]).replace(b'"seq": 1', b'"seq": ' + b"1" * 5_000)},
    "no UTF-8": {"body": page_body([user(1, SECRET)]).replace(SECRET.encode(), b"\xff\xfe")},
    "another envelope": {
        "body": json.dumps({"type": "client-request", "result": {"ok": True, "value": SECRET}}).encode()
    },
    "null": {"value": None},
    "no page": {"value": {"text": SECRET}},
    "hasMore is no boolean": {"value": {"events": [], "records": [], "hasMore": "true"}},
    "a refusal": {"error": {"code": "internal", "message": SECRET}},
    "a refusal of a strange code": {"error": {"code": SECRET * 20, "message": SECRET}},
    "reset before the answer": {"drop": "before"},
    "reset in the body": {"drop": "mid"},
    "a wrong encoding": {"headers": {"Content-Encoding": "gzip"}, "body": LEAK},
}


@pytest.mark.parametrize("name", UNAVAILABLE)
@pytest.mark.parametrize("after", [0, 1], ids=["first page", "second page"])
async def test_what_cannot_be_read_right_now(either: FakeHarness, name: str, after: int) -> None:
    script(either, (([user(50, SECRET)], True), ([user(40, SECRET)], True), ([user(30, SECRET)], False)))
    how: How = {**UNAVAILABLE[name], "after": after}
    either.fail(page_method(either), **how)
    result = await ask(either, "/history 5")
    assert result.segments == (ZH(Key.HISTORY_UNAVAILABLE, reference="H-000001"),)


async def test_a_host_without_the_call(host: FakeHarness) -> None:
    host.session(SESSION).dialogue(2)
    host.fail(page_method(host), status=404)
    assert (await ask(host)).segments == (ZH(Key.HISTORY_UNSUPPORTED),)


async def test_nobody_listens(either: FakeHarness) -> None:
    await either.stop()
    assert (await ask(either)).segments == (ZH(Key.HISTORY_UNAVAILABLE, reference="H-000001"),)


@pytest.mark.parametrize("compressed", [True, False])
async def test_a_body_over_the_cap(either: FakeHarness, compressed: bool) -> None:
    huge = page_body([user(1, SECRET + "x" * 33 * MIB)])
    either.session(SESSION)
    if compressed:
        either.fail(page_method(either), body=gzip.compress(huge, 1), headers={"Content-Encoding": "gzip"})
    else:
        either.fail(page_method(either), body=huge)
    assert (await ask(either)).segments == (ZH(Key.HISTORY_UNAVAILABLE, reference="H-000001"),)


async def test_a_large_body_within_the_cap(either: FakeHarness) -> None:
    script(either, (([user(1, "u1"), user(2, "x" * 12 * MIB)], False),))
    first, second = bodies("".join((await ask(either)).segments))
    assert (first, second) == ("u1", "x" * 495 + "（已截断）")


@pytest.mark.parametrize("how", ["silence", "a drip"])
async def test_what_takes_more_than_ten_seconds(either: FakeHarness, how: str) -> None:
    clock, stuck = FakeClock(), asyncio.Event()
    script(either, (([user(50, SECRET * 3_000)], True), ([user(40, SECRET * 3_000)], False)))
    if how == "silence":
        either.fail(page_method(either), delay=stuck, after=1)
    else:
        either.fail(page_method(either), drip=stuck, after=1)
    asking = asyncio.create_task(ask(either, clock=clock))
    await either.until_called(page_method(either), 2)
    await clock.advance(9.9)
    assert not asking.done()
    await clock.advance(0.2)
    assert (await asking).segments == (ZH(Key.HISTORY_TIMED_OUT),)
    stuck.set()


@pytest.mark.parametrize("method", ["login", "session/projections"])
async def test_the_deadline_spans_what_comes_before_the_pages(method: str) -> None:
    clock, stuck = FakeClock(), asyncio.Event()
    async with FakeHarness() as host:
        cold(host)
        host.fail(method, delay=stuck)
        asking = asyncio.create_task(ask(host, clock=clock))
        await host.until_called(method)
        await clock.advance(10.1)
        assert (await asking).segments == (ZH(Key.HISTORY_TIMED_OUT),)
        stuck.set()


async def test_a_running_turn_is_noted_and_left_alone(host: FakeHarness) -> None:
    session, gate = host.session(SESSION), asyncio.Event()
    session.dialogue(1)
    host.model.script(say("half an answer", gate))
    session.prompt([text("u2")], "r2", "queue")
    await host.until(lambda: session.partial == "half an answer")
    reply = "".join((await ask(host)).segments)
    assert bodies(reply) == ["u1", "a1", "u2"]
    assert reply.endswith("\n\n当前任务仍在进行中\n以上为历史记录，不是本次新回复。")
    assert session.running
    gate.set()
    await host.settle()
    reply = "".join((await ask(host)).segments)
    assert bodies(reply) == ["a1", "u2", "half an answer"]
    assert ZH(Key.HISTORY_RUNNING) not in reply


async def test_a_failed_running_check_leaves_the_note_out(either: FakeHarness) -> None:
    script(either, (([user(1, "u1"), {"type": "turn/start", "seq": 2, "data": {"turn": 1}}], False),))
    either.fail("session.list", status=500)
    either.fail("session/list", status=500)
    reply = "".join((await ask(either)).segments)
    assert bodies(reply) == ["u1"]
    assert ZH(Key.HISTORY_RUNNING) not in reply

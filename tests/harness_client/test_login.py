"""Which generation answers, and the login of modern hosts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from harness_client.client import Address, HarnessClient
from harness_client.errors import Forbidden, HarnessError, Malformed, TooLarge, Unauthorized, Unreachable, WrongHost
from harness_client.streams import Snapshot
from harness_client.types import RequestId, SessionId, TextPart
from tests.fakes.harness import FakeHarness, How
from tests.harness_client.conftest import connect


def names(host: FakeHarness) -> list[str]:
    return [call.name for call in host.calls]


async def test_one_question_tells_the_generation(legacy: FakeHarness, modern: FakeHarness) -> None:
    for host, expected in ((legacy, ["host.describe", "session.list"]), (modern, ["login", "session/list"])):
        async with connect(host) as client:
            await client.sessions()
            await client.sessions()
        assert names(host) == [*expected, expected[-1]]


async def test_calls_that_come_during_the_login_wait_for_the_one_login(modern: FakeHarness) -> None:
    async with connect(modern) as client:
        await asyncio.gather(*(client.sessions() for _ in range(10)))
    assert names(modern).count("login") == 1


async def test_a_login_gone_stale_is_renewed_once_for_all_that_meet_it(modern: FakeHarness) -> None:
    session = SessionId(modern.session().id)
    async with connect(modern) as client:
        await client.sessions()
        modern.login.expire()
        await asyncio.gather(*(client.page(session) for _ in range(5)))
        modern.login.expire()
        await client.prompt(session, [TextPart("once")], request=RequestId("r"))
        await modern.settle()
    assert names(modern).count("login") == 3
    assert names(modern).count("session/prompt") == 1


async def test_a_stale_login_is_renewed_for_a_stream_too(modern: FakeHarness) -> None:
    session = SessionId(modern.session().id)
    async with connect(modern) as client:
        await client.sessions()
        modern.login.expire()
        async with client.follow(session) as items:
            assert isinstance(await anext(aiter(items)), Snapshot)
    assert names(modern).count("login") == 2


async def test_a_host_that_always_says_401_is_asked_no_more_than_twice(modern: FakeHarness) -> None:
    modern.fail("session/list", status=401)
    async with connect(modern) as client:
        with pytest.raises(Unauthorized):
            await client.sessions()
    assert names(modern).count("login") == 2


async def test_a_restarted_host_still_knows_the_login_but_not_the_token(modern: FakeHarness) -> None:
    async with connect(modern) as client:
        await client.sessions()
        await modern.restart()
        await client.sessions()
    assert names(modern).count("login") == 1


async def test_a_host_that_changed_its_generation_is_found_out_again(legacy: FakeHarness) -> None:
    async with connect(legacy) as client:
        await client.sessions()
        await legacy.stop()
        async with HarnessTwin(legacy.port) as twin:
            with pytest.raises(Unauthorized, match="token"):
                await client.sessions()
            assert names(twin) == []


@pytest.mark.parametrize("token", [None, "fake-wrong-token"])
async def test_no_token_or_a_wrong_one_is_unauthorized(modern: FakeHarness, token: str | None) -> None:
    async with HarnessClient(Address(modern.base, token)) as client:
        with pytest.raises(Unauthorized) as refused:
            await client.health()
    assert "fake-wrong-token" not in str(refused.value)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        (How(status=403), Forbidden),
        (How(status=200, body=b"<html></html>"), WrongHost),
        (How(status=303, headers={"Location": "./"}), WrongHost),
        (How(status=500), Malformed),
        (How(status=503), Unreachable),
        (How(drop="before"), Unreachable),
    ],
)
async def test_a_login_that_goes_wrong(modern: FakeHarness, how: How, error: type[HarnessError]) -> None:
    modern.fail("login", **how)
    async with connect(modern) as client:
        with pytest.raises(error) as failed:
            await client.health()
    token = modern.login.token
    chain: BaseException | None = failed.value
    while chain is not None:
        assert token not in f"{chain!r} {chain}"
        chain = chain.__cause__


@asynccontextmanager
async def answering(response: web.Response) -> AsyncIterator[str]:
    """Serve one answer to everything."""

    async def handle(_: web.Request) -> web.Response:
        return response

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (web.Response(text="<html>hello</html>", content_type="text/html"), WrongHost),
        (web.Response(text="not found", status=404), WrongHost),
        (web.Response(status=302, headers={"Location": "/login"}), WrongHost),
        (web.json_response({"hello": "world"}), WrongHost),
        (web.json_response([]), WrongHost),
        (web.json_response({"type": "server-response", "rpcId": "1", "result": {"ok": False}}), WrongHost),
        (
            web.json_response(
                {"type": "server-response", "rpcId": "1", "result": {"ok": False, "error": {"code": "bad-request"}}}
            ),
            WrongHost,
        ),
        (web.Response(status=403), Forbidden),
        (web.Response(status=502), Unreachable),
        (web.Response(body=b" " * (33 * 2**20), content_type="application/json"), TooLarge),
    ],
)
async def test_what_is_no_harness_is_told_apart(response: web.Response, error: type[HarnessError]) -> None:
    async with answering(response) as url, HarnessClient(Address.parse(url)) as client:
        with pytest.raises(error):
            await client.health()


async def test_nobody_listening_is_unreachable(modern: FakeHarness) -> None:
    await modern.stop()
    async with connect(modern) as client:
        with pytest.raises(Unreachable):
            await client.health()


class HarnessTwin(FakeHarness):
    """A modern host on a port of one's choice."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

"""A client follows a host that came back elsewhere."""

from __future__ import annotations

from harness_client.client import Address, HarnessClient
from tests.fakes.harness import FakeHarness
from tests.harness_client.conftest import connect, serve


async def test_an_open_client_goes_on_at_the_new_address(host: FakeHarness) -> None:
    async with serve(host.dialect.flavour) as elsewhere, connect(host) as client:
        await client.sessions()
        session = elsewhere.session().id
        client.move(Address.parse(elsewhere.url))
        assert [row.id for row in await client.sessions()] == [session]


async def test_a_client_not_yet_open_starts_at_the_new_address(host: FakeHarness) -> None:
    client = HarnessClient(Address.parse("http://127.0.0.1:9/"))
    client.move(Address.parse(host.url))
    async with client:
        await client.health()


async def test_a_new_token_is_used_when_the_login_is_lost(modern: FakeHarness) -> None:
    async with connect(modern) as client:
        await client.sessions()
        await modern.restart()
        modern.login.expire()
        client.move(Address.parse(modern.url))
        await client.sessions()

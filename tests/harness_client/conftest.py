"""A fake host of every release line, and a client that talks to it over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import pytest

from harness_client.client import Address, HarnessClient
from harness_client.events import StreamReset, TextDelta
from harness_client.streams import FollowItem, HostEvent, Snapshot
from tests.fakes.harness import FakeHarness
from tests.fakes.harness.dialect import DIALECTS, Flavour

FLAVOURS: tuple[Flavour, ...] = ("0.1.0", "0.1.2", "0.1.5", "0.2")
T = TypeVar("T")

MODERN: tuple[Flavour, ...] = ("0.1.2", "0.1.5", "0.2")


def serve(flavour: Flavour) -> AbstractAsyncContextManager[FakeHarness]:
    return FakeHarness(DIALECTS[flavour].generation, flavour=flavour)


def connect(host: FakeHarness) -> HarnessClient:
    return HarnessClient(Address.parse(host.url))


async def wait_for(events: AsyncIterator[HostEvent], kind: type[T]) -> T:
    """Return the next host event of a kind."""
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError("the stream ended")


def seqs(items: list[FollowItem]) -> list[int]:
    """Return the seqs of the events among what a follow yielded."""
    return [item.seq for item in items if not isinstance(item, Snapshot | TextDelta | StreamReset)]


@pytest.fixture(params=FLAVOURS)
async def host(request: pytest.FixtureRequest) -> AsyncIterator[FakeHarness]:
    async with serve(request.param) as host:
        yield host


@pytest.fixture
async def client(host: FakeHarness) -> AsyncIterator[HarnessClient]:
    async with connect(host) as client:
        yield client


@pytest.fixture
async def legacy() -> AsyncIterator[FakeHarness]:
    async with serve("0.1.0") as host:
        yield host


@pytest.fixture
async def modern() -> AsyncIterator[FakeHarness]:
    async with serve("0.2") as host:
        yield host

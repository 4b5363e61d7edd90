"""``harness-im run`` killed and started again: the real program on Feishu and DingTalk, where answers grow in cards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.test_run import Service, configure, service
from tests.fakes import dingtalk, feishu
from tests.fakes.dingtalk.cards import TEMPLATE
from tests.fakes.harness import FakeHarness, say

EN = Words(Language.EN)
SECONDS = 30.0
ROUNDS = 3
FAR = 4_000_000_000.0
"""A time behind every end of a webhook."""


@dataclass(frozen=True, slots=True)
class Place:
    """One platform. ``texts`` are a person's messages and cards as they read now; ``growing`` counts open cards."""

    table: str
    says: Callable[[str, str], Awaitable[object]]
    again: Callable[[], Awaitable[None]]
    texts: Callable[[str], list[str]]
    growing: Callable[[], int]


@asynccontextmanager
async def at_feishu() -> AsyncIterator[Place]:
    async with feishu.FakeFeishu() as fake:
        yield Place(
            f'channel = "feishu"\napp_id = "{feishu.APP_ID}"\napp_secret = "{feishu.SECRET}"\n'
            f'endpoints = {{ api = "{fake.url}" }}\n',
            says=lambda who, text: fake.says(text, sender=who),
            again=fake.gateway.again,
            texts=lambda who: fake.texts(feishu.private(who)),
            growing=lambda: sum(card.growing for card in fake.cards.values()),
        )
        assert not fake.violations


@asynccontextmanager
async def at_dingtalk() -> AsyncIterator[Place]:
    async with dingtalk.FakeDingTalk() as fake:
        yield Place(
            f'channel = "dingtalk"\nclient_id = "{dingtalk.CLIENT_ID}"\nclient_secret = "{dingtalk.SECRET}"\n'
            f'card_template = "{TEMPLATE}"\nendpoints = {{ api = "{fake.url}" }}\n',
            says=lambda who, text: fake.gateway.callback(fake.message(text, sender=who, now=FAR)),
            again=fake.gateway.again,
            texts=lambda who: fake.texts(f"cid-{who}"),
            growing=lambda: sum(not card.ended for card in fake.cards.all.values()),
        )
        assert not fake.violations


PLACES = {"feishu": at_feishu, "dingtalk": at_dingtalk}


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


@pytest.fixture(params=PLACES)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    async with PLACES[request.param]() as made:
        yield made


def children(service_: Service) -> list[int]:
    """Return the processes that the program started."""
    pid = service_.child.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def kill(service_: Service) -> None:
    """Kill the program, and see that nothing it started outlives it."""
    left = children(service_)
    service_.child.kill()
    await service_.child.wait()
    await eventually(lambda: not any(Path(f"/proc/{pid}/fd").exists() for pid in left), SECONDS)


def configured(folder: Path, host: FakeHarness, place: Place) -> Path:
    return configure(folder, host, f'[[bot]]\nname = "ops"\naccess = {{ direct = "open" }}\n{place.table}')


async def test_nobody_is_forgotten_and_nothing_runs_twice(place: Place, host: FakeHarness, tmp_path: Path) -> None:
    """Killed while people write, again and again: all of them hear in the end what became of their message."""
    config = configured(tmp_path, host, place)
    people = [f"person-{number}" for number in range(ROUNDS)]
    for person in people:
        async with service(tmp_path, config) as running:
            await running.ready()
            await place.again()
            await place.says(person, "hello")
            await kill(running)
    async with service(tmp_path, config) as running:
        await running.ready()
        await place.again()
        await eventually(lambda: all(map(place.texts, people)), SECONDS)
        await place.again()
        assert await running.stop() == 0
    prompts = [call for call in host.calls if call.name in {"session.prompt", "session/prompt"}]
    assert len(prompts) <= ROUNDS, "one each"
    assert place.growing() == 0


@pytest.mark.parametrize("killed", [True, False])
async def test_no_card_is_left_growing(place: Place, host: FakeHarness, tmp_path: Path, *, killed: bool) -> None:
    hold = asyncio.Event()
    host.model.script(say("slow", hold, " answer"))
    config = configured(tmp_path, host, place)
    async with service(tmp_path, config) as running:
        await running.ready()
        await place.says("alice", "hello")
        await eventually(lambda: place.texts("alice") == ["slow"], SECONDS)
        if killed:
            await kill(running)
        else:
            assert await running.stop() == 0
    assert place.growing() == int(killed)
    async with service(tmp_path, config) as running:
        await running.ready()
        hold.set()
        await eventually(lambda: len(place.texts("alice")) == 2 and not place.growing(), SECONDS)
    assert place.texts("alice") == ["slow", EN(Key.CHAT_LATE, text="slow answer")]

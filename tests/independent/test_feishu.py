"""Feishu beside the vendor's other client: the SDK for Node against our fake."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.bridges.bench import eventually
from tests.fakes.feishu import ALICE, APP_ID, SECRET, FakeFeishu, message
from tests.independent.installs import NODE, node_in, node_modules, started

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

SDK = ("@larksuiteoapi/node-sdk@1.74.0",)


async def test_the_vendors_other_bot_talks_through_our_fake(tmp_path: Path) -> None:
    modules = node_modules(NODE, *SDK)
    script = tmp_path / "bot.mjs"
    script.write_text((Path(__file__).parent / "feishu_bot.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(modules)
    async with FakeFeishu() as fake:
        environ = {"API": fake.url, "APP_ID": APP_ID, "APP_SECRET": SECRET}
        async with started(node_in(modules), str(script), folder=tmp_path, **environ) as child:
            await eventually(lambda: len(fake.gateway.sockets) == 1, 60)
            assert child.stdout is not None

            async def printed() -> object:
                assert child.stdout is not None
                return json.loads(await asyncio.wait_for(child.stdout.readline(), 30))

            await fake.says("a < b 👋")
            assert await printed() == {
                "from": ALICE,
                "same": True,
                "filled": 0,
                "late": 300317,
                "over": 300309,
                "elsewhere": 230002,
            }
            assert fake.texts() == ["heard: a < b 👋", "in its topic", "grown"]
            assert [shown.topic is not None for shown in fake.shown] == [False, True, False]

            in_parts = await fake.deliver(message({"text": "长" * 9_000}), parts=3)
            assert await printed() == {"heard": 9_000}
            await asyncio.wait_for(in_parts.acknowledged.wait(), 10)
            assert in_parts.code == 200
            assert fake.gateway.pings >= 1

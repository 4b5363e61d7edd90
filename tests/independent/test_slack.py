"""Slack beside another vendor's client: Bolt for JavaScript against our fake."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.fakes.slack import BOT_USER, TELLER, FakeSlack, direct
from tests.independent.installs import NODE, node_in, node_modules, started

pytestmark = [pytest.mark.independent, pytest.mark.timeout(400)]

BOLT = ("@slack/bolt@5.1.0", "undici@7.30.2")  # the second one is a peer, which has to be named


async def test_another_vendors_bot_talks_through_our_fake(tmp_path: Path) -> None:
    modules = node_modules(NODE, *BOLT)
    script = tmp_path / "bot.mjs"
    script.write_text((Path(__file__).parent / "slack_bot.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(modules)
    async with FakeSlack() as fake:
        environ = {"API": fake.api, "BOT_TOKEN": fake.bot_token, "APP_TOKEN": fake.app_token}
        async with started(node_in(modules), str(script), folder=tmp_path, **environ) as child:
            await fake.until(lambda: len(fake.sockets.open) == 1, 30)
            await fake.taken(await fake.deliver(fake.write.message("a < b 👋", thread_ts="1.000001")))
            await fake.until(lambda: fake.texts(direct()) == ["edited: a < b 👋"])
            assert fake.said[0].thread == "1.000001"
            assert child.stdout is not None
            async with asyncio.timeout(30):
                assert json.loads(await child.stdout.readline()) == {
                    "me": BOT_USER,
                    "long": "msg_too_long",
                    "gone": "message_not_found",
                    "private": True,
                }
            await fake.taken(await fake.pick("/history", "4"))
            await fake.until(lambda: fake.texts(direct())[-1:] == ["picked: 4"])
            assert fake.said[-1].only_for == TELLER
            await _survives_its_links(fake)


async def _survives_its_links(fake: FakeSlack) -> None:
    """Let the client lose its link in both ways; what was not acknowledged comes again on the next one."""
    await fake.sockets.disconnect("refresh_requested")
    await fake.until(lambda: fake.sockets.handshakes == 2, 30)
    await fake.until(lambda: len(fake.sockets.open) >= 1, 30)
    fake.sockets.cut()
    await fake.until(lambda: not fake.sockets.open)
    pending = await fake.deliver(fake.write.message("still there?"))
    await fake.until(lambda: pending.acknowledged, 30)
    await fake.until(lambda: fake.texts(direct())[-1:] == ["edited: still there?"])

"""``harness-im run`` with a Slack bot, killed, stopped and started twice: the real program on the fake platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bridges.test_run import configure, service
from tests.fakes.harness import FakeHarness
from tests.fakes.slack import FakeSlack, direct


@pytest.fixture
async def host() -> AsyncIterator[FakeHarness]:
    async with FakeHarness() as made:
        yield made


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as made:
        yield made


def bot(fake: FakeSlack) -> str:
    return (
        f'[[bot]]\nname = "ops"\nchannel = "slack"\nbot_token = "{fake.bot_token}"\napp_token = "{fake.app_token}"\n'
        f'access = {{ direct = "open" }}\nendpoints = {{ api = "{fake.api}" }}\n'
    )


async def test_a_message_whose_acknowledgement_a_kill_swallowed_is_not_run_twice(
    host: FakeHarness, slack: FakeSlack, tmp_path: Path
) -> None:
    config = configure(tmp_path, host, bot(slack))
    async with service(tmp_path, config) as running:
        await running.ready()
        slack.sockets.deaf = True
        lost = await slack.deliver(slack.write.message("hello"))
        await slack.until(lambda: slack.texts(direct()) == ["You said: hello"])
        running.child.kill()
        await running.child.wait()
    slack.sockets.deaf = False
    assert not lost.acknowledged
    async with service(tmp_path, config) as running:
        await running.ready()
        await slack.taken(lost)
        await slack.say("again")
        await slack.until(lambda: slack.texts(direct())[-1] == "You said: again")
    assert slack.texts(direct()).count("You said: hello") == 1


async def test_a_reply_under_way_at_the_end_arrives(host: FakeHarness, slack: FakeSlack, tmp_path: Path) -> None:
    hold = asyncio.Event()
    async with service(tmp_path, configure(tmp_path, host, bot(slack))) as running:
        await running.ready()
        slack.fail("chat.postMessage", hold=hold)
        await slack.say("!help")
        await slack.until(lambda: slack.count("chat.postMessage") == 1)
        stopping = asyncio.create_task(running.stop())
        await slack.until(lambda: not slack.sockets.open)
        late = await slack.deliver(slack.write.message("too late"))
        hold.set()
        assert await stopping == 0
    assert not late.acknowledged
    assert slack.count("chat.postMessage") == 1
    assert len(slack.texts(direct())) == 1


async def test_two_programs_with_one_app_share_its_messages_and_answer_each_once(
    host: FakeHarness, slack: FakeSlack, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    configs = [configure(folder, host, bot(slack)) for folder in folders]
    async with service(folders[0], configs[0]) as first, service(folders[1], configs[1]) as second:
        await first.ready()
        await second.ready()
        await slack.until(lambda: len(slack.sockets.open) == 2)
        await slack.say("one")
        await slack.until(lambda: slack.texts(direct()) == ["You said: one"])
        assert await second.stop() == 0
        await slack.until(lambda: len(slack.sockets.open) == 1)
        await slack.say("two")
        await slack.until(lambda: slack.texts(direct())[1:] == ["You said: two"])
